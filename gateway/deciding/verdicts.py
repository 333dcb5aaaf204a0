"""What a worker can answer: allow, deny, or failure. There is no fourth, and a failure is never a denial.

``Allow`` and ``Deny`` are verdicts: functions of the policy and its document, so they may be kept in the memo. A
``Failure`` says that there is no verdict; it goes to the policy's failurePolicy and is never kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gateway.reasons import Reason


class ChangeKind(StrEnum):
    """In which of three forms a worker says what to change."""

    JSON_PATCH = "json_patch"
    MERGE_PATCH = "merge_patch"
    OBJECT = "object"


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What an allow wants changed: ``content`` is JSON text as the worker sent it, not yet looked at."""

    kind: ChangeKind
    content: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Allow:
    """The request may pass. ``change`` only in the mutating phase."""

    change: Change | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)
    version: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Deny:
    """The request must not pass. ``details`` is a metav1.StatusDetails in its JSON shape, or None."""

    code: int = 403
    message: str = ""
    reason: str = "Forbidden"
    details: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)
    version: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """No verdict. ``message`` says who, what, limit, observed, next step, without the reason code in front."""

    reason: Reason
    message: str


Verdict = Allow | Deny
Answer = Verdict | Failure
