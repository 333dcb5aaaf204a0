"""What the engine requests from its driver. Times are seconds on the driver's own clock."""

from msgspec import Struct

from gateway.cel.authorization import AuthorizationCheck
from gateway.engine.decision import Decision
from gateway.engine.policy_call import PolicyCall
from gateway.matching.outcomes import NeedsEvaluation
from gateway.review.request import UserInfo


class NamespaceLookup(Struct, frozen=True, kw_only=True):
    """Find the labels of this namespace and call ``found(id, labels)``, with None if there is no such namespace."""

    id: int
    namespace: str


class AuthorizationLookup(Struct, frozen=True, kw_only=True):
    """Check an authorization and call ``found(id, authorization)``.

    A matchCondition that uses ``authorizer`` needs it; it is a SubjectAccessReview. ``user`` is the user of the
    request, and the subject of the check unless the check names a service account.
    """

    id: int
    check: AuthorizationCheck
    user: UserInfo


class EvaluationLookup(Struct, frozen=True, kw_only=True):
    """Call ``need.finish``, anywhere but in the event loop, and ``found(id, evaluation)`` with what it returns."""

    id: int
    need: NeedsEvaluation


FactLookup = NamespaceLookup | AuthorizationLookup
"""A fact about the cluster."""

Lookup = FactLookup | EvaluationLookup
"""What the engine lacks."""


class Step(Struct, frozen=True, kw_only=True):
    """What the driver must do now: start ``calls`` and ``lookups``, and cancel ``cancels``.

    ``wake_at`` is when to call ``expired(now)`` unless another event comes first; it replaces the one of the Step
    before, and None means never. With ``decision`` the review has ended, and later events change nothing.
    """

    calls: tuple[PolicyCall, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    cancels: tuple[PolicyCall, ...] = ()
    wake_at: float | None = None
    decision: Decision | None = None
