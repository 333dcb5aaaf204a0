"""Reason codes: why a request was refused, or a policy failed. They are the same in messages, metrics, logs and docs.

Reason codes are a public contract that dashboards, alerts and runbooks rely on: a new code extends it, a changed one
breaks it. ``DENIED`` is a worker's verdict; all others are failures, and failurePolicy applies only to failures ("an
error is not a verdict").
"""

from gateway.enums import StrEnum


class Reason(StrEnum):
    """A reason code; its value is used in messages, metrics, logs and docs."""

    DENIED = "DENIED"
    """The worker denied the request. This is no failure: failurePolicy does not apply."""

    WORKER_TIMEOUT = "WORKER_TIMEOUT"
    """The worker did not answer within the policy's timeoutSeconds."""

    WORKER_UNAVAILABLE = "WORKER_UNAVAILABLE"
    """There is no connection to the worker, or it was lost during the call."""

    WORKER_FAILURE = "WORKER_FAILURE"
    """The worker answered that it failed, or with a gRPC status other than OK."""

    INVALID_RESPONSE = "INVALID_RESPONSE"
    """The worker's answer cannot be read, has no verdict, or has a change in the validating phase."""

    INVALID_PATCH = "INVALID_PATCH"
    """The patch is malformed, does not apply, or would replace, remove or shift hidden values; the result is no object,
    has unreadable metadata, or another apiVersion or kind; or there is no object to change (DELETE)."""

    INVALID_SETTINGS = "INVALID_SETTINGS"
    """The worker refused the policy's settings in a call, after it had accepted them."""

    PATCH_CONFLICT = "PATCH_CONFLICT"
    """Another policy of the same review wrote the same field, and one of the two has onConflict deny."""

    WRITE_SCOPE = "WRITE_SCOPE"
    """The change is outside the policy's writes, or the patch tests, copies or moves hidden values."""

    WRONG_VERSION = "WRONG_VERSION"
    """The request is for the policy's resource, in an API version that its rules do not name."""

    CONDITION_ERROR = "CONDITION_ERROR"
    """A matchCondition has no value, and none is false. In kube-apiserver's words."""

    NAMESPACE_UNKNOWN = "NAMESPACE_UNKNOWN"
    """The namespaceSelector, or an input in ``/namespaceObject``, needs labels of a namespace that the gateway does not
    know. In kube-apiserver's words."""

    DRY_RUN_UNSUPPORTED = "DRY_RUN_UNSUPPORTED"
    """A dry run matched a policy whose sideEffects are Some or Unknown. In kube-apiserver's words."""

    CONFIGURATION = "CONFIGURATION"
    """The policy has an error; or its worker is unknown or not described yet, does not have the policy (in this phase),
    refused its settings when it connected, or claims more than is granted."""

    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    """The API server's time ended before the policy's own."""

    OVERLOADED = "OVERLOADED"
    """A limit was reached: of the gateway's reviews, the calls of a worker or a webhook, a queue or its Redis, or the
    processes of hooks."""

    REQUEST_TOO_LARGE = "REQUEST_TOO_LARGE"
    """The AdmissionReview is larger than the body limit, or has so many JSON values that the gateway does not read it
    for a policy that needs a part of it: more than 300,000, names of members included."""

    INTERNAL = "INTERNAL"
    """An error in the gateway."""
