"""One policy's turn in a review, as it is kept: who, matched or not, asked or not, what came of it.

Times are seconds on the driver's clock; only differences mean something.
"""

from typing import Final

from msgspec import Struct

from gateway.engine.conflicts import Conflict
from gateway.engine.origin import Source
from gateway.engine.verdicts import Allow, Answer, Deny, Failure
from gateway.patching.difference import Operation
from gateway.policies.model import FailurePolicy, Mode, Policy
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs

UNDECIDED: Final = frozenset({Reason.CONDITION_ERROR, Reason.NAMESPACE_UNKNOWN})
"""Failures of matching: kube-apiserver calls nobody, and a webhook that is not called is never reinvoked."""


def refuses(failure: Failure, policy: Policy) -> bool:
    """Whether the policy's failurePolicy lets a failure refuse the request; what it cannot ignore always does."""
    return policy.failure_policy is FailurePolicy.FAIL or not failure.ignorable


class InvocationRecord(Struct, frozen=True, kw_only=True):
    """One policy's turn in one round, called or not.

    ``round`` is 0, or 1 when reinvoked; ``index`` is the policy's place in the plan. ``matched`` False: ``why`` names
    what said no (rules, objectSelector, namespaceSelector, matchConditions: NAME, reinvocation), and all that follows
    is empty. Where nobody can tell, ``matched`` is True with a failure, as not knowing is not allowing.
    ``document_key`` and ``document_size`` are the SHA-256 and the bytes of the document put to the policy, 0 where
    nobody was asked; the document itself is not kept: a chain of twenty would hold the object twenty times.
    ``source`` and ``age`` are where the answer comes from, and how many seconds before the worker had said it;
    ``prefetched``: it was asked before the policy's turn. ``version`` is that of the policy, as the answer says it, or
    else as its worker described it. ``inputs`` are what it was shown.
    ``answer`` is what the turn came to, a failure found while applying included; ``instead_of`` is the failure in whose
    place a stale verdict stands. ``changes`` is what it changed, as our own difference; ``would_change`` is that of a
    policy whose mode is warn or audit, which was not applied. ``conflicts`` are the fields that it wrote, or would have
    if it had not failed for that, and another policy before it.
    """

    round: int
    index: int
    label: str
    policy: Policy
    matched: bool
    why: str = ""
    source: Source = Source.NONE
    age: float = 0.0
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
        """Whether what the policy says counts: its mode is neither warn nor audit."""
        return self.policy.mode is Mode.ENFORCE

    @property
    def called(self) -> bool:
        """Whether kube-apiserver would have called a webhook: it knew that the webhook judges."""
        return self.matched and not (isinstance(self.answer, Failure) and self.answer.reason in UNDECIDED)

    @property
    def failed_open(self) -> bool:
        """A failure that the policy's failurePolicy let pass."""
        return isinstance(self.answer, Failure) and self.enforced and not refuses(self.answer, self.policy)

    @property
    def failed_closed(self) -> bool:
        """A failure that refuses the request."""
        return self.enforced and isinstance(self.answer, Failure) and refuses(self.answer, self.policy)

    @property
    def silent(self) -> bool:
        """Whether there is nothing to tell of it: it refuses nothing, and neither warns nor annotates."""
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
        answer = self.answer
        if self.policy.mode is not Mode.ENFORCE or answer is None:
            return False
        return isinstance(answer, Deny) or (isinstance(answer, Failure) and refuses(answer, self.policy))
