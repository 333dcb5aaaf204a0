"""The answers of a policy call: allow, deny, or failure. A failure is never a denial.

``Allow`` and ``Deny`` are verdicts: functions of the policy and its document, so the memo may keep them. A ``Failure``
means that there is no verdict; the policy's failurePolicy applies, and it is never kept.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from gateway.enums import StrEnum
from gateway.reasons import Reason


class ChangeKind(StrEnum):
    """The form of a change: one of three for workers, and a fourth for existing webhooks."""

    JSON_PATCH = "json_patch"
    MERGE_PATCH = "merge_patch"
    OBJECT = "object"
    KUBERNETES_PATCH = "kubernetes_patch"
    """A JSON Patch by the rules of kube-apiserver's library, not of RFC 6902 (``PatchDialect.KUBERNETES``)."""


class Change(Struct, frozen=True, kw_only=True, weakref=True):
    """The change of an allow: ``content`` is JSON text as the worker sent it, not yet parsed. A large one is charged
    as long as it is referred to.
    """

    kind: ChangeKind
    content: bytes


class Allow(Struct, frozen=True, kw_only=True):
    """The request may pass. ``change`` only in the mutating phase.

    ``reuse``: for how many seconds at most the worker permits to reuse the verdict, 0 for never; None: as configured.
    """

    change: Change | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = {}
    version: str = ""
    reuse: float | None = None


class Deny(Struct, frozen=True, kw_only=True):
    """The request must not pass. ``details`` is a metav1.StatusDetails in its JSON shape, or None; ``reuse`` as in
    Allow.
    """

    code: int = 403
    message: str = ""
    reason: str = "Forbidden"
    details: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = {}
    version: str = ""
    reuse: float | None = None


class Failure(Struct, frozen=True, kw_only=True):
    """No verdict. ``message`` has who, what, limit, observed value and next step, but not the reason code.

    If kube-apiserver has a message of its own for the failure, ``message`` is exactly that, ``details`` has its
    StatusDetails, and ``hint`` the next step. ``ignorable`` is False for what kube-apiserver refuses whatever the
    failurePolicy: an error of matching or of the dry run, not of a call. ``warnings`` and ``audit_annotations`` are
    those of an answer whose change cannot be applied.
    """

    reason: Reason
    message: str
    hint: str = ""
    details: Mapping[str, Any] | None = None
    ignorable: bool = True
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = {}


Verdict = Allow | Deny
Answer = Verdict | Failure

ANSWER_WORDS: Final = {Allow: "allow", Deny: "deny", Failure: "failure"}
"""The name of an answer in metrics and reports, by its type."""
