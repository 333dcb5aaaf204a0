"""What the engine asks of the world outside. Times are seconds on the driver's own clock.

Steps are msgspec's structs: frozen dataclasses take five times as long to make, and every event makes one.
"""

from msgspec import Struct

from gateway.cel.authorization import AuthorizationCheck
from gateway.engine.decision import Decision
from gateway.engine.policy_call import PolicyCall
from gateway.review.request import UserInfo


class NamespaceLookup(Struct, frozen=True, kw_only=True):
    """Find the labels of this namespace; tell ``found(id, labels)``, with None if there is no such namespace."""

    id: int
    namespace: str


class AuthorizationLookup(Struct, frozen=True, kw_only=True):
    """May somebody do something? Tell ``found(id, authorization)``.

    It is asked of the cluster for ``authorizer`` in a matchCondition, as a SubjectAccessReview would. ``user`` is the
    user of the request, who is meant unless the check names a service account.
    """

    id: int
    check: AuthorizationCheck
    user: UserInfo


Lookup = NamespaceLookup | AuthorizationLookup
"""A fact that the engine lacks."""


class Step(Struct, frozen=True, kw_only=True):
    """What to do now: ``calls`` and ``lookups`` are new, ``cancels`` are calls that no turn waits for any more.

    ``wake_at`` is when to call ``expired(now)`` unless another event comes first; each Step's replaces the one
    before, None means never. With ``decision`` the review is over, and later events change nothing.
    """

    calls: tuple[PolicyCall, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    cancels: tuple[PolicyCall, ...] = ()
    wake_at: float | None = None
    decision: Decision | None = None
