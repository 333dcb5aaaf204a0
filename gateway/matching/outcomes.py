"""The outcomes of matching. Matching a policy with a request returns exactly one of them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from gateway.cel.program import Evaluation, NeedsAuthorization
from gateway.reasons import Reason
from gateway.review.request import GroupVersionKind, GroupVersionResource


class Matched(Struct, frozen=True, kw_only=True):
    """The policy judges this request."""


class NotMatched(Struct, frozen=True, kw_only=True):
    """The policy does not judge this request; ``why`` names the field that does not match."""

    why: str


class WrongVersion(Struct, frozen=True, kw_only=True):
    """The policy judges this request in another version: a failure ``WRONG_VERSION``.

    kube-apiserver would convert the object to ``kind`` and call a webhook with ``resource``; the gateway has received
    another version and cannot convert. ``kind`` is None if the table of equivalent resources does not have it: it has
    the resource without a kind, or not the resource; then ``resource`` is the one received.
    """

    resource: GroupVersionResource
    kind: GroupVersionKind | None
    message: str


class NeedsNamespace(Struct, frozen=True, kw_only=True):
    """The outcome depends on the labels of this namespace."""

    namespace: str


class EvaluationSubject(Struct, frozen=True, kw_only=True, eq=False):
    """What is evaluated: ``expression``, for the ``object`` as it is now (None if the expression does not name it),
    with so many ``authorizations`` known.
    """

    expression: str
    object: Any
    authorizations: int

    def is_same(self, other: "EvaluationSubject") -> bool:
        """Whether both have the same result."""
        return (
            self.object is other.object
            and self.authorizations == other.authorizations
            and self.expression == other.expression
        )


class NeedsEvaluation(Struct, frozen=True, kw_only=True, eq=False):
    """The outcome depends on an evaluation that takes long, of the condition of this name: ``finish`` does it, in any
    thread.
    """

    condition: str
    subject: EvaluationSubject
    finish: Callable[[], Evaluation]


class Unknown(Struct, frozen=True, kw_only=True):
    """A fact that could not be looked up, although it may exist; ``message`` says why, and what to do."""

    message: str


class Undecidable(Struct, frozen=True, kw_only=True):
    """Matching failed: the policy may or may not judge the request.

    ``message`` is kube-apiserver's own message, ``details`` has its StatusDetails, and ``hint`` says what to do.
    ``ignorable`` is False for what kube-apiserver refuses whatever the failurePolicy.
    """

    reason: Reason
    message: str
    hint: str = ""
    details: Mapping[str, Any] | None = None
    ignorable: bool = True


Ruled = Matched | WrongVersion
"""The result of the rules of a policy that has a rule about the request."""

Need = NeedsNamespace | NeedsAuthorization | NeedsEvaluation
"""What is missing. ``NeedsAuthorization`` (of ``gateway.cel``): the outcome depends on the result of its ``check``."""

Matching = Matched | NotMatched | WrongVersion | Need | Undecidable
"""The outcome of matching."""

MATCHED: Final = Matched()
"""The only value of its type: outcomes are compared with it by identity."""

RULES: Final = NotMatched(why="rules")
"""No rule is about the request."""
