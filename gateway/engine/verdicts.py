"""What a worker can answer: allow, deny, or failure. There is no fourth, and a failure is never a denial.

``Allow`` and ``Deny`` are verdicts: functions of the policy and its document, so they may be kept in the memo. A
``Failure`` says that there is no verdict; it goes to the policy's failurePolicy and is never kept.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from gateway.enums import StrEnum
from gateway.reasons import Reason


class ChangeKind(StrEnum):
    """In which form a worker says what to change: one of three; the fourth is an existing webhook's."""

    JSON_PATCH = "json_patch"
    MERGE_PATCH = "merge_patch"
    OBJECT = "object"
    KUBERNETES_PATCH = "kubernetes_patch"
    """A JSON Patch by the rules of kube-apiserver's library, not of the standard (``PatchDialect.KUBERNETES``)."""


class Change(Struct, frozen=True, kw_only=True):
    """What an allow wants changed: ``content`` is JSON text as the worker sent it, not yet looked at."""

    kind: ChangeKind
    content: bytes


class Allow(Struct, frozen=True, kw_only=True):
    """The request may pass. ``change`` only in the mutating phase.

    ``reuse``: for how many seconds at most the worker lets the verdict be reused, 0 for never; None: as configured.
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
    """No verdict. ``message`` says who, what, limit, observed, next step, without the reason code in front.

    Where kube-apiserver itself has words for it, ``message`` is exactly these, ``details`` the StatusDetails that it
    gives with them, and ``hint`` says what to do about it here. ``ignorable`` is False for what it refuses whatever
    failurePolicy says: an error of matching or of the dry run, not of a call. ``warnings`` and ``audit_annotations``
    are those of an answer that was heard and whose change cannot be applied.
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
"""What an answer is called in metrics and reports, by its type."""
