"""Failures without a call, in kube-apiserver's own words: it has a status for each, whatever failurePolicy is."""

from gateway.engine.verdicts import Failure
from gateway.matching.outcomes import Undecidable
from gateway.matching.status_messages import not_found
from gateway.policies.model import Policy
from gateway.reasons import Reason
from gateway.review.request import UnreadError


def undecided(matching: Undecidable) -> Failure:
    """Matching failed: whether the policy judges the request is unknown."""
    return Failure(
        reason=matching.reason,
        message=matching.message,
        hint=matching.hint,
        details=matching.details,
        ignorable=matching.ignorable,
    )


def unread(error: UnreadError) -> Undecidable:
    """The policy's selectors or conditions need a member that is too large to be read."""
    return Undecidable(reason=error.reason, message=str(error))


def dry_run_unsupported(policy: Policy) -> Failure:
    """A dry run of a policy that has side effects even then (NewDryRunUnsupportedErr)."""
    return Failure(
        reason=Reason.DRY_RUN_UNSUPPORTED,
        message=f'admission webhook "{policy.name}" does not support dry run',
        hint=f"sideEffects is {policy.side_effects}; None or NoneOnDryRun would permit it",
        details={},
        # kube-apiserver returns a status error here, not an error of the call: refused under Ignore as well.
        ignorable=False,
    )


def namespace_unknown(policy: Policy, namespace: str) -> Failure:
    """The policy's inputs include the namespace's object, and there is no such namespace."""
    message, details = not_found("", "namespaces", namespace)
    return Failure(
        reason=Reason.NAMESPACE_UNKNOWN,
        message=message,
        details=details,
        hint=(
            f"the inputs of policy {policy.name} need the labels of namespace {namespace!r}, which is unknown here; "
            "serve with --cluster, or add a Namespace document for it"
        ),
        # As where a namespaceSelector needs them: kube-apiserver refuses under Ignore as well.
        ignorable=False,
    )
