"""Deadlines of turns, and the failures for a deadline that has passed.

The end of the budget is a failure like any other and goes to failurePolicy: under Ignore the chain continues through
the policies that can no longer be called, and earlier verdicts count. kube-apiserver treats its own deadline
differently: "parent context is canceled or timed out, no point in continuing", a timeout even under Ignore. The budget
ends before that deadline, so that the gateway can still answer. If kube-apiserver's deadline passes all the same, it
reports its timeout itself.
"""

from typing import Final

from msgspec import Struct

from gateway.cel.authorization import AuthorizationCheck
from gateway.engine.policy_call import PolicyInvocation
from gateway.engine.steps import AuthorizationLookup, EvaluationLookup, Lookup, NamespaceLookup
from gateway.engine.verdicts import Failure
from gateway.policies.model import Policy
from gateway.reasons import Reason

TOLERANCE: Final = 0.1
"""Seconds by which the budget may cut a policy's timeout, at most a tenth of it, while a late call still fails with
WORKER_TIMEOUT and not BUDGET_EXHAUSTED. An entry is registered with the whole seconds that its policies may take, plus
one; of these the answer takes 50 ms, and some time passes until the first turn begins."""

_ROUNDING: Final = 1e-6
"""Seconds by which sums of floating-point times may be off."""


class Budget(Struct, eq=False):
    """The time of one review: it ends at ``ends``, on the driver's clock, and ``started`` when the request came."""

    ends: float
    started: float = 0.0

    def over(self, now: float) -> bool:
        """Whether it has ended."""
        return now >= self.ends

    def deadline(self, policy: Policy, now: float) -> float:
        """The deadline of a policy whose turn begins now."""
        return min(now + policy.timeout, self.ends)

    def worker_timeout(self, invocation: PolicyInvocation, *, otherwise: Failure | None = None) -> Failure:
        """The turn's time ended before its worker answered.

        ``otherwise`` is the transport's own failure; it is used if the policy's timeout ended and not the budget.
        Transport and engine have the same deadline, and either may notice first. So kube-apiserver's own message
        (``timeout_failure``) is used in both cases.
        """
        policy = invocation.member.policy
        if invocation.failure is not None:
            return invocation.failure
        missing = invocation.called_at + policy.timeout - self.ends
        if invocation.deadline >= self.ends and missing > min(TOLERANCE, policy.timeout / 10) + _ROUNDING:
            return self._exhausted(f"before worker {policy.worker!r} answered")
        return invocation.member.timeout_failure or otherwise or _worker_timeout(policy)

    def lookup_timeout(self, invocation: PolicyInvocation, lookup: Lookup) -> Failure:
        """The turn's time ended before a lookup that it needs returned."""
        if invocation.deadline >= self.ends:
            return self._exhausted(f"before it was known {_lookup_text(lookup)}")
        return Failure(
            reason=Reason.NAMESPACE_UNKNOWN if isinstance(lookup, NamespaceLookup) else Reason.CONDITION_ERROR,
            message=f"it was not known within {invocation.member.policy.timeout:g} s {_lookup_text(lookup)}",
        )

    def before_call(self) -> Failure:
        """The budget ended before the policy's turn."""
        return self._exhausted("before the policy was called")

    def before_applied(self) -> Failure:
        """The budget ended while the policy's change was applied."""
        return self._exhausted("before the policy's large change was applied")

    def _exhausted(self, when: str) -> Failure:
        return Failure(
            reason=Reason.BUDGET_EXHAUSTED,
            message=(
                f"the {self.ends - self.started:.3g} s that kube-apiserver left for this review ended {when}; "
                "retry, and check which policy is slow"
            ),
        )


def _worker_timeout(policy: Policy) -> Failure:
    return Failure(
        reason=Reason.WORKER_TIMEOUT,
        message=(
            f"worker {policy.worker!r} gave no answer for policy {policy.policy!r} within {policy.timeout:g} s; "
            "check why it is slow, or raise timeoutSeconds"
        ),
    )


def _lookup_text(lookup: Lookup) -> str:
    """What a lookup is to find, for messages."""
    match lookup:
        case NamespaceLookup(namespace=namespace):
            return f"which labels namespace {namespace!r} has, for the namespaceSelector or the inputs"
        case AuthorizationLookup(check=check):
            return f"whether {_check_text(check)} is authorized, for the matchConditions"
        case EvaluationLookup(need=need):
            return f"whether matchCondition {need.condition!r} is true, which takes long to evaluate for this object"


def _check_text(check: AuthorizationCheck) -> str:
    if check.path:
        return f"{check.verb} {check.path}"
    resource = f"{check.resource}.{check.group}" if check.group else check.resource
    subresource = f"/{check.subresource}" if check.subresource else ""
    return f"{check.verb} {resource}{subresource}" + (f" {check.name!r}" if check.name else "")
