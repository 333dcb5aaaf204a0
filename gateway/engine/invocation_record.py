"""The record of one policy's turn in a review: the policy, whether it matched and was called, and the result.

Times are seconds on the driver's clock; only differences between them have a meaning.
"""

from typing import Final

from msgspec import Struct

from gateway.engine.answer_source import CallRecord, Source
from gateway.engine.conflicts import Conflict
from gateway.engine.verdicts import Allow, Answer, Deny, Failure
from gateway.patching.difference import Operation
from gateway.policies.model import FailurePolicy, Mode, Policy
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs

UNDECIDED: Final = frozenset({Reason.CONDITION_ERROR, Reason.NAMESPACE_UNKNOWN})
"""Failures of matching: kube-apiserver does not call the webhook then, and never reinvokes it."""


def refuses(failure: Failure, policy: Policy) -> bool:
    """Whether a failure refuses the request: under failurePolicy Fail, or if the failure cannot be ignored."""
    return policy.failure_policy is FailurePolicy.FAIL or not failure.ignorable


class InvocationRecord(Struct, frozen=True, kw_only=True):
    """One policy's turn in one round, called or not.

    ``round`` is 0, or 1 when reinvoked; ``index`` is the policy's index in the plan. ``matched`` False: ``why`` names
    what did not match (rules, objectSelector, namespaceSelector, matchConditions: NAME, reinvocation), and all that
    follows is empty. If matching failed, ``matched`` is True with a failure as the answer; without an answer, the
    review ended before the turn did, perhaps before it was known whether the policy matches.
    ``document_key`` and ``document_size`` are the SHA-256 and the size in bytes of the policy's document, empty if the
    policy was not called. The document itself is not kept: a chain of twenty would hold the object twenty times.
    ``source`` is the source of the answer, ``age`` how many seconds ago the worker gave it; ``call`` is the call behind
    it (for ``memo``, that of the earlier turn); ``prefetched``: the call was made before the policy's turn.
    ``version`` is the policy's version in the answer, else that in its worker's description. ``inputs`` are the inputs
    that the policy received.
    ``answer`` is the turn's result, including a failure while applying a change; ``instead_of`` is the failure that a
    stale verdict replaces. ``changes`` is the difference that the policy's change made; ``would_change`` is that of a
    policy in mode warn or audit, which is not applied. ``conflicts`` are the fields that this policy wrote after
    another one, or would have written if the conflict had not made it fail.
    """

    round: int
    index: int
    label: str
    policy: Policy
    matched: bool
    why: str = ""
    source: Source = Source.NONE
    age: float = 0.0
    call: CallRecord | None = None
    prefetched: bool = False
    version: str = ""
    inputs: Inputs = Inputs.EVERYTHING
    document_key: bytes = b""
    document_size: int = 0
    started: float = 0.0
    ended: float = 0.0
    answer: Answer | None = None
    instead_of: Failure | None = None
    changes: tuple[Operation, ...] = ()
    would_change: tuple[Operation, ...] = ()
    conflicts: tuple[Conflict, ...] = ()

    @property
    def enforced(self) -> bool:
        """Whether the answer has an effect: the policy's mode is neither warn nor audit."""
        return self.policy.mode is Mode.ENFORCE

    @property
    def called(self) -> bool:
        """Whether kube-apiserver would have called a webhook in the policy's place: it matched without a failure."""
        return self.matched and not (isinstance(self.answer, Failure) and self.answer.reason in UNDECIDED)

    @property
    def failed_open(self) -> bool:
        """A failure that the policy's failurePolicy ignores."""
        return isinstance(self.answer, Failure) and self.enforced and not self.failed_closed

    @property
    def failed_closed(self) -> bool:
        """A failure that refuses the request."""
        return isinstance(self.answer, Failure) and self.enforced and refuses(self.answer, self.policy)

    @property
    def silent(self) -> bool:
        """Whether the response has nothing of this turn: no refusal, no warning and no annotation."""
        if self.answer is None:
            return True
        return (
            isinstance(self.answer, Allow)
            and not (self.answer.warnings or self.answer.audit_annotations)
            and not (self.conflicts or self.would_change or self.instead_of)
        )

    @property
    def refuses(self) -> bool:
        """Whether this turn refuses the request."""
        return self.failed_closed or (self.enforced and isinstance(self.answer, Deny))
