"""What is said when time has run out: whose time it was, how much, and what to do about it."""

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


def namespace_late(policy: Policy, namespace: str) -> Failure:
    """The policy's own timeoutSeconds ended before a namespace's labels were found."""
    return Failure(
        reason=Reason.NAMESPACE_UNKNOWN,
        message=f"the labels of namespace {namespace!r} were not found within {policy.timeout:g} s",
    )


def budget_over(seconds: float, when: str) -> Failure:
    """The review's budget of so many seconds ended."""
    return Failure(
        reason=Reason.BUDGET_EXHAUSTED,
        message=(
            f"the {seconds:.3g} s that kube-apiserver left for this review ended {when}; "
            "try again, and see which policy is slow"
        ),
    )
