"""What a policy answers: allow, deny, or that it could not judge. There is no fourth.

An error is not a verdict: ``fail`` says that there is none, and the operator's failurePolicy decides what becomes of
the request; a denial stands whatever the failurePolicy. The values are frozen and cannot be built wrong: an answer
that means nothing raises ``InvalidAnswerError`` where it is made, which makes the policy's outcome a failure.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import force_setattr

from admission_worker import values
from admission_worker.changes import Change, json_patch, merge_patch, whole_object
from admission_worker.errors import InvalidAnswerError

_AUDIT_KEY = re.compile(r"[A-Za-z0-9._-]{1,63}")
"""The contract's: "letters, digits, ``-``, ``_``, ``.``, at most 63"."""

_REASONS: Final[Mapping[int, str]] = MappingProxyType(
    {
        400: "BadRequest",
        401: "Unauthorized",
        403: "Forbidden",
        404: "NotFound",
        405: "MethodNotAllowed",
        406: "NotAcceptable",
        409: "Conflict",
        410: "Gone",
        413: "RequestEntityTooLarge",
        415: "UnsupportedMediaType",
        422: "Invalid",
        429: "TooManyRequests",
        500: "InternalError",
        503: "ServiceUnavailable",
        504: "Timeout",
    }
)
"""metav1.StatusReason of a code, in Kubernetes' own pairs (k8s.io/apimachinery/pkg/apis/meta/v1/types.go)."""


LONGEST_CACHE = timedelta(days=36500)
"""A hundred years: what is longer does not fit a protobuf Duration (10,000 years), or is a mistake."""


class NoStore(Enum):
    """The type of ``NO_STORE``."""

    NO_STORE = "no-store"


NO_STORE: Final = NoStore.NO_STORE
"""As ``cache``: this verdict must never be reused."""

CacheHint = timedelta | NoStore
"""How long a verdict may be reused; it can only shorten what the operator configured."""


class Cause(Struct, frozen=True):
    """One thing that is wrong (a metav1.StatusCause).

    Args:
        field: in Kubernetes' notation, such as ``spec.containers[0].image``.
        message: for people.
        reason: a metav1.CauseType such as ``FieldValueRequired``.
    """

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    def __post_init__(self) -> None:
        for name in ("field", "message", "reason"):
            values.text(getattr(self, name), f"a cause's {name}")


class Details(Struct, frozen=True, kw_only=True):
    """What a denial is about (a metav1.StatusDetails without its causes), and after how many seconds to try again."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    retry_after_seconds: int = 0

    def __post_init__(self) -> None:
        for name in ("name", "group", "kind", "uid"):
            values.text(getattr(self, name), f"details.{name}")
        values.int32(self.retry_after_seconds, "details.retry_after_seconds")


class Allow(Struct, frozen=True, kw_only=True):
    """The request may pass, perhaps changed. Made by ``allow``, ``patch``, ``merge`` and ``mutated``."""

    change: Change | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)
    cache: CacheHint | None = None

    def __post_init__(self) -> None:
        _settle(self)


class Deny(Struct, frozen=True, kw_only=True):
    """The request must not pass. Made by ``deny``."""

    message: str
    code: int = 403
    reason: str = "Forbidden"
    causes: tuple[Cause, ...] = ()
    details: Details = Details()
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)
    cache: CacheHint | None = None

    def __post_init__(self) -> None:
        values.text(self.message, "deny's message")
        values.text(self.reason, "deny's reason")
        values.int32(self.code, "deny's code")
        if not isinstance(self.details, Details):
            raise InvalidAnswerError(f"deny's details: must be Details, is {values.type_of(self.details)}")
        force_setattr(self, "causes", values.tuple_of(Cause, self.causes, "deny's causes"))
        _settle(self)


class Failure(Struct, frozen=True, kw_only=True):
    """The policy could not judge. Made by ``fail``."""

    message: str

    def __post_init__(self) -> None:
        values.text(self.message, "fail's message")


Answer = Allow | Deny | Failure
"""What a policy function returns; None is ``allow()``."""


def allow(
    *,
    warnings: Iterable[str] = (),
    audit_annotations: Mapping[str, str] | None = None,
    cache: CacheHint | None = None,
) -> Allow:
    """Let the request pass as it is.

    Args:
        warnings: shown to the user by kubectl; each under 120 characters, without control characters.
        audit_annotations: for the API server's audit log. Keys: letters, digits, ``-``, ``_``, ``.``, at most 63. The
            values must be the same whenever the same document is called again.
        cache: how long this verdict may be reused, or ``NO_STORE``; None: as the operator configured.

    Raises:
        InvalidAnswerError: one of these is of another type, or an audit key has other characters.
    """
    return Allow(
        warnings=values.tuple_of(str, warnings, "warnings"), audit_annotations=audit_annotations or {}, cache=cache
    )


def patch(
    operations: Iterable[Mapping[str, Any]],
    *,
    warnings: Iterable[str] = (),
    audit_annotations: Mapping[str, str] | None = None,
    cache: CacheHint | None = None,
) -> Allow:
    """Let the request pass changed by a JSON Patch (RFC 6902). Mutating policies only.

    Args:
        operations: such as ``{"op": "add", "path": "/metadata/labels/team", "value": "a"}``, paths over the object; no
            operation leaves the object as it is. ``admission_worker.pointer`` makes paths and escapes keys.
        warnings: as for ``allow``.
        audit_annotations: as for ``allow``.
        cache: as for ``allow``.

    Raises:
        InvalidAnswerError: an operation that RFC 6902 does not know or that lacks a member, or a value that is not
            JSON.
    """
    return _changed(json_patch(operations), warnings, audit_annotations, cache)


def merge(
    changes: Mapping[str, Any],
    *,
    warnings: Iterable[str] = (),
    audit_annotations: Mapping[str, str] | None = None,
    cache: CacheHint | None = None,
) -> Allow:
    """Let the request pass changed by a JSON Merge Patch (RFC 7386), where null removes. Mutating policies only.

    Args:
        changes: such as ``{"metadata": {"labels": {"team": "a"}}}``. Arrays are replaced whole.
        warnings: as for ``allow``.
        audit_annotations: as for ``allow``.
        cache: as for ``allow``.

    Raises:
        InvalidAnswerError: not a JSON object.
    """
    return _changed(merge_patch(changes), warnings, audit_annotations, cache)


def mutated(
    whole: Mapping[str, Any],
    *,
    warnings: Iterable[str] = (),
    audit_annotations: Mapping[str, str] | None = None,
    cache: CacheHint | None = None,
) -> Allow:
    """Let the request pass with the object as given, compared by the gateway with the one it sent. Mutating policies
    only.

    Args:
        whole: the object as it should be; ``request.object`` may be changed and returned.
        warnings: as for ``allow``.
        audit_annotations: as for ``allow``.
        cache: as for ``allow``.

    Raises:
        InvalidAnswerError: not a JSON object.
    """
    return _changed(whole_object(whole), warnings, audit_annotations, cache)


def deny(  # noqa: PLR0913 - the fields of a metav1.Status and of every answer, all but one by keyword
    message: str,
    *,
    code: int = 403,
    reason: str | None = None,
    causes: Iterable[Cause] = (),
    details: Details | None = None,
    warnings: Iterable[str] = (),
    audit_annotations: Mapping[str, str] | None = None,
    cache: CacheHint | None = None,
) -> Deny:
    """Let the request not pass.

    Args:
        message: for the person who was denied: what is wrong and what to do.
        code: an HTTP status, 400 to 599; outside of that the gateway sends 400, as kube-apiserver does.
        reason: a metav1.StatusReason; None: the one that Kubernetes pairs with ``code`` (403: ``Forbidden``), if any.
        causes: one for each thing that is wrong, for machines.
        details: which resource it is about, and when to try again.
        warnings: as for ``allow``.
        audit_annotations: as for ``allow``.
        cache: as for ``allow``.

    Raises:
        InvalidAnswerError: one of these is of another type.
    """
    return Deny(
        message=message,
        code=code,
        reason=_REASONS.get(values.int32(code, "deny's code"), "") if reason is None else reason,
        causes=values.tuple_of(Cause, causes, "deny's causes"),
        details=details or Details(),
        warnings=values.tuple_of(str, warnings, "warnings"),
        audit_annotations=audit_annotations or {},
        cache=cache,
    )


def fail(message: str) -> Failure:
    """Say that the policy could not judge; the operator's failurePolicy decides.

    Args:
        message: for the operator, what went wrong in one sentence. It reaches the user under failurePolicy Fail.

    Raises:
        InvalidAnswerError: the message is no text.
    """
    return Failure(message=message)


def _changed(
    change: Change, warnings: Iterable[str], annotations: Mapping[str, str] | None, cache: CacheHint | None
) -> Allow:
    texts = values.tuple_of(str, warnings, "warnings")
    return Allow(change=change, warnings=texts, audit_annotations=annotations or {}, cache=cache)


def _settle(answer: Allow | Deny) -> None:
    """Check what allow and deny have in common, and make it unchangeable."""
    force_setattr(answer, "warnings", values.tuple_of(str, answer.warnings, "warnings"))
    annotations = values.mapping(answer.audit_annotations, "audit_annotations")
    for key, value in annotations.items():
        if not isinstance(key, str) or not _AUDIT_KEY.fullmatch(key):
            message = f"audit_annotations: the key {key!r} must be 1 to 63 letters, digits, '-', '_', '.'"
            raise InvalidAnswerError(message)
        values.text(value, f"audit_annotations[{key!r}]")
    force_setattr(answer, "audit_annotations", MappingProxyType(dict(annotations)))
    if isinstance(answer.cache, timedelta):
        if not timedelta(0) <= answer.cache <= LONGEST_CACHE:
            raise InvalidAnswerError(f"cache: must be from 0 to {LONGEST_CACHE.days} days; NO_STORE is never")
    elif answer.cache is not None and not isinstance(answer.cache, NoStore):
        raise InvalidAnswerError(f"cache: must be a timedelta, NO_STORE or None, is {values.type_of(answer.cache)}")
