"""What is said when time has run out: whose time it was, how much, and what to do about it.

The end of the budget is a failure like any other, and goes to failurePolicy: under Ignore the chain goes on through the
policies that can no longer be asked, and what was judged before counts. kube-apiserver says of its own deadline that
"parent context is canceled or timed out, no point in continuing", and ends in a timeout even under Ignore. That is
another deadline: the budget ends before it, just so that there still is an answer, and if it passes all the same, the
API server says its timeout itself, whatever was answered here.
"""

from typing import Final

from msgspec import Struct

from gateway.cel.authorization import AuthorizationCheck
from gateway.engine.policy_call import PolicyInvocation
from gateway.engine.steps import AuthorizationLookup, Lookup, NamespaceLookup
from gateway.engine.verdicts import Failure
from gateway.policies.model import Policy
from gateway.reasons import Reason

TOLERANCE: Final = 0.1
"""Seconds that may be missing of a policy's own time before it is the budget that was too short, and never more than a
tenth of it. An entry is registered with as many whole seconds as its policies may take, and one; of these the answer
takes 50 ms, and some pass until the first turn begins. Whoever had all the rest is late by itself."""

_ROUNDING: Final = 1e-6
"""Seconds by which sums of times on a clock may be off: a microsecond is nobody's time."""


class Budget(Struct, eq=False):
    """The time of one review: it ends at ``ends``, on the driver's clock, and ``started`` when the request came."""

    ends: float
    started: float = 0.0

    def over(self, now: float) -> bool:
        """Whether it has ended."""
        return now >= self.ends

    def deadline(self, policy: Policy, now: float) -> float:
        """When the time of a policy ends that begins now."""
        return min(now + policy.timeout, self.ends)

    def worker_timeout(self, invocation: PolicyInvocation, *, otherwise: Failure | None = None) -> Failure:
        """The turn's time ended before its worker answered.

        ``otherwise`` is how the transport has put it, should it be the policy's own time. Whether the transport or this
        notices first is chance, so what kube-apiserver has words for (``timeout_failure``) is said in them whoever
        notices.
        """
        policy = invocation.member.policy
        if invocation.failure is not None:
            return invocation.failure
        missing = invocation.called_at + policy.timeout - self.ends
        if invocation.deadline >= self.ends and missing > min(TOLERANCE, policy.timeout / 10) + _ROUNDING:
            return self._exhausted(f"before worker {policy.worker!r} answered")
        return invocation.member.timeout_failure or otherwise or _worker_timeout(policy)

    def lookup_timeout(self, invocation: PolicyInvocation, lookup: Lookup) -> Failure:
        """The turn's time ended before a fact was found that it needs."""
        if invocation.deadline >= self.ends:
            return self._exhausted(f"before it was known {_lookup_text(lookup)}")
        return Failure(
            reason=Reason.NAMESPACE_UNKNOWN if isinstance(lookup, NamespaceLookup) else Reason.CONDITION_ERROR,
            message=f"it was not known within {invocation.member.policy.timeout:g} s {_lookup_text(lookup)}",
        )

    def before_call(self) -> Failure:
        """There is no time to ask."""
        return self._exhausted("before the policy was asked")

    def _exhausted(self, when: str) -> Failure:
        return Failure(
            reason=Reason.BUDGET_EXHAUSTED,
            message=(
                f"the {self.ends - self.started:.3g} s that kube-apiserver left for this review ended {when}; "
                "try again, and see which policy is slow"
            ),
        )


def _worker_timeout(policy: Policy) -> Failure:
    return Failure(
        reason=Reason.WORKER_TIMEOUT,
        message=(
            f"worker {policy.worker!r} gave no answer for policy {policy.policy!r} within {policy.timeout:g} s; "
            "see why it is slow, or raise timeoutSeconds"
        ),
    )


def _lookup_text(lookup: Lookup) -> str:
    """What a lookup is to find, in a few words."""
    match lookup:
        case NamespaceLookup(namespace=namespace):
            return f"which labels namespace {namespace!r} has, for the namespaceSelector or the inputs"
        case AuthorizationLookup(check=check):
            return f"whether {_check_text(check)} is authorized, for the matchConditions"


def _check_text(check: AuthorizationCheck) -> str:
    if check.path:
        return f"{check.verb} {check.path}"
    resource = f"{check.resource}.{check.group}" if check.group else check.resource
    subresource = f"/{check.subresource}" if check.subresource else ""
    return f"{check.verb} {resource}{subresource}" + (f" {check.name!r}" if check.name else "")
