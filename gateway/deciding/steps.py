"""What the heart asks of the world outside. Times are seconds on the driver's own clock.

Steps and asks are msgspec's structs: frozen dataclasses take five times as long to make, and every event makes some.
"""

from dataclasses import dataclass

from msgspec import Struct

from gateway.conditions.authorization import AuthorizationCheck
from gateway.deciding.decision import Decision
from gateway.documents.document import Document
from gateway.policies.model import Cache, Policy
from gateway.review.request import UserInfo


class Ask(Struct, frozen=True, kw_only=True):
    """Put ``document`` to ``policy``'s worker; tell ``answered(id, ...)`` what it says.

    After ``deadline`` the heart does not listen any more; the driver may pass the deadline on to the worker. ``uid``
    and ``traceparent`` travel beside the document.

    Which question it is, say phase and document, with ``version``, the policy's as its worker described it, and
    ``identity``, a content hash of what can change a verdict in the configuration (worker, policy, settings, inputs,
    writes). ``cache`` is None for a policy without one, or with side effects for this request.

    ``cancellable`` is False for a policy with side effects: its call is not broken off when nobody waits for it any
    more. (Its deadline, which the worker has known from the start, ends it all the same.)
    """

    id: int
    policy: Policy
    document: Document
    deadline: float
    uid: str
    cancellable: bool
    version: str = ""
    identity: bytes = b""
    cache: Cache | None = None
    traceparent: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class NamespaceLookup:
    """Find the labels of this namespace; tell ``found(id, labels)``, with None if there is no such namespace."""

    id: int
    namespace: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AuthorizationAsk:
    """May somebody do something? Tell ``found(id, authorization)``.

    It is asked of the cluster for ``authorizer`` in a matchCondition, as a SubjectAccessReview would. ``user`` is the
    user of the request, who is meant unless the check names a service account.
    """

    id: int
    check: AuthorizationCheck
    user: UserInfo


Lookup = NamespaceLookup | AuthorizationAsk
"""A fact that the heart lacks."""


class Step(Struct, frozen=True, kw_only=True):
    """What to do now: ``asks`` and ``lookups`` are new, ``cancels`` are ids of asks that nobody waits for any more.

    ``wake_at`` is when to call ``expired(now)`` unless another event comes first; each Step's replaces the one
    before, None means never. With ``decision`` the review is over, and later events change nothing.
    """

    asks: tuple[Ask, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    cancels: tuple[int, ...] = ()
    wake_at: float | None = None
    decision: Decision | None = None
