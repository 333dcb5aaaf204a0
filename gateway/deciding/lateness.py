"""What is said when time has run out: whose time it was, how much, and what to do about it.

The end of the budget is a failure like any other, and goes to failurePolicy: under Ignore the chain goes on through the
policies that can no longer be asked, and what was judged before counts. kube-apiserver says of its own deadline that
"parent context is canceled or timed out, no point in continuing", and ends in a timeout even under Ignore. That is
another deadline: the budget ends before it, just so that there still is an answer, and if it passes all the same, the
API server says its timeout itself, whatever was answered here.
"""

from gateway.conditions import AuthorizationCheck
from gateway.deciding.steps import AuthorizationAsk, Lookup, NamespaceLookup
from gateway.deciding.verdicts import Failure
from gateway.policies import Policy
from gateway.reasons import Reason


def worker_late(policy: Policy) -> Failure:
    """The policy's own timeoutSeconds ended."""
    return Failure(
        reason=Reason.WORKER_TIMEOUT,
        message=(
            f"worker {policy.worker!r} gave no answer for policy {policy.policy!r} within {policy.timeout:g} s; "
            "see why it is slow, or raise timeoutSeconds"
        ),
    )


def lookup_late(policy: Policy, lookup: Lookup) -> Failure:
    """The policy's own timeoutSeconds ended before a fact was found that its matching needs."""
    return Failure(
        reason=Reason.NAMESPACE_UNKNOWN if isinstance(lookup, NamespaceLookup) else Reason.CONDITION_ERROR,
        message=f"it was not known within {policy.timeout:g} s {wanted(lookup)}",
    )


def wanted(lookup: Lookup) -> str:
    """What a lookup is to find, in a few words."""
    match lookup:
        case NamespaceLookup(namespace=namespace):
            return f"which labels namespace {namespace!r} has, for the namespaceSelector"
        case AuthorizationAsk(check=check):
            return f"whether {_asked(check)} is authorized, for the matchConditions"


def _asked(check: AuthorizationCheck) -> str:
    if check.path:
        return f"{check.verb} {check.path}"
    resource = f"{check.resource}.{check.group}" if check.group else check.resource
    subresource = f"/{check.subresource}" if check.subresource else ""
    return f"{check.verb} {resource}{subresource}" + (f" {check.name!r}" if check.name else "")


def budget_over(seconds: float, when: str) -> Failure:
    """The review's budget of so many seconds ended."""
    return Failure(
        reason=Reason.BUDGET_EXHAUSTED,
        message=(
            f"the {seconds:.3g} s that kube-apiserver left for this review ended {when}; "
            "try again, and see which policy is slow"
        ),
    )
