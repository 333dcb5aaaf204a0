"""Write a Kubernetes admission policy as a Python function; serve it to the admission gateway over gRPC.

The names below and ``admission_worker.testing`` are the public API. README.md is the guide.
"""

from admission_worker.answers import (
    NO_STORE,
    Allow,
    Answer,
    Cause,
    Deny,
    Details,
    Failure,
    allow,
    deny,
    fail,
    merge,
    mutated,
    patch,
)
from admission_worker.certificates import Tls
from admission_worker.claims import EVERYTHING
from admission_worker.errors import (
    AddressError,
    CertificateError,
    InvalidAnswerError,
    InvalidDocumentError,
    InvalidSettingsError,
    SettingsError,
    SettingsWarning,
)
from admission_worker.limits import Limits
from admission_worker.pointers import pointer
from admission_worker.request import GroupVersionKind, GroupVersionResource, Request, UserInfo
from admission_worker.worker import Worker

__all__ = [
    "EVERYTHING",
    "NO_STORE",
    "AddressError",
    "Allow",
    "Answer",
    "Cause",
    "CertificateError",
    "Deny",
    "Details",
    "Failure",
    "GroupVersionKind",
    "GroupVersionResource",
    "InvalidAnswerError",
    "InvalidDocumentError",
    "InvalidSettingsError",
    "Limits",
    "Request",
    "SettingsError",
    "SettingsWarning",
    "Tls",
    "UserInfo",
    "Worker",
    "allow",
    "deny",
    "fail",
    "merge",
    "mutated",
    "patch",
    "pointer",
]
