"""Why a request was not allowed as it was: one word each, the same in message, metric, log, trace and docs.

This is a public contract: dashboards, alerts and people's runbooks hold these words. A new one is a change of the
contract; a changed one is a breaking change. ``DENIED`` is a worker's verdict; every other one names a failure, and
only failures go to a policy's failurePolicy ("an error is not a verdict").
"""

from gateway.enums import StrEnum


class Reason(StrEnum):
    """A reason code. Its value is the word that is shown everywhere."""

    DENIED = "DENIED"
    """The worker judged, and said no."""

    WORKER_TIMEOUT = "WORKER_TIMEOUT"
    """The policy's own timeoutSeconds ran out before its worker answered."""

    WORKER_UNAVAILABLE = "WORKER_UNAVAILABLE"
    """No connection to the worker: absent, refused, or lost in the middle of the call."""

    WORKER_FAILURE = "WORKER_FAILURE"
    """The worker was reached and said that it could not judge, or answered with a status other than OK."""

    INVALID_RESPONSE = "INVALID_RESPONSE"
    """The worker's answer cannot be read, or says what the protocol does not allow."""

    INVALID_PATCH = "INVALID_PATCH"
    """The worker's patch is malformed or does not apply to the object that it was sent."""

    INVALID_SETTINGS = "INVALID_SETTINGS"
    """The worker refused the policy's settings while it was judging."""

    PATCH_CONFLICT = "PATCH_CONFLICT"
    """Another policy of the same review wrote the same field, and onConflict is deny."""

    WRITE_SCOPE = "WRITE_SCOPE"
    """The worker changed, or tried to read through its patch, what the policy may not touch."""

    WRONG_VERSION = "WRONG_VERSION"
    """The request is about the policy's resource, in an API version that the policy does not name."""

    CONDITION_ERROR = "CONDITION_ERROR"
    """A matchCondition could not be evaluated."""

    NAMESPACE_UNKNOWN = "NAMESPACE_UNKNOWN"
    """The namespaceSelector, or an input, needs the labels of a namespace that nobody knows."""

    DRY_RUN_UNSUPPORTED = "DRY_RUN_UNSUPPORTED"
    """A dry run reached a policy that has side effects; refused as kube-apiserver refuses it."""

    CONFIGURATION = "CONFIGURATION"
    """The policy is invalid, or its worker is unknown, undescribed, or rejected its settings."""

    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    """The API server's remaining time ran out before the policy's own."""

    OVERLOADED = "OVERLOADED"
    """Something is full, so the review was refused instead of waiting: the gateway's reviews, the calls of a worker or
    a webhook, a queue or its Redis, or the processes of hooks."""

    REQUEST_TOO_LARGE = "REQUEST_TOO_LARGE"
    """The AdmissionReview is larger than the body limit."""

    INTERNAL = "INTERNAL"
    """A mistake of the gateway's own."""
