"""A policy's answers: allow, deny, or fail.

An error is not a verdict: after ``fail`` the operator's failurePolicy decides about the request, while a denial is
final whatever the failurePolicy. The values are frozen and checked: an invalid answer raises ``InvalidAnswerError`` in
the policy's function, and the outcome is then a failure.
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
"""The contract: "letters, digits, ``-``, ``_``, ``.``, at most 63"."""

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
"""A hundred years: a longer time is an error, or does not fit a protobuf Duration (10,000 years)."""


class NoStore(Enum):
    """The type of ``NO_STORE``."""

    NO_STORE = "no-store"


NO_STORE: Final = NoStore.NO_STORE
"""A value of ``cache``: the verdict must never be reused."""

CacheHint = timedelta | NoStore
"""How long a verdict may be reused; it can only shorten what the operator configured."""


class Cause(Struct, frozen=True):
    """One cause of a denial (a metav1.StatusCause).

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
    """The subject of a denial (a metav1.StatusDetails without its causes), and when the client may retry, in
    seconds.
    """

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
    """Allows the request, perhaps with a change. Made by ``allow``, ``patch``, ``merge`` and ``mutated``."""

    change: Change | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)
    cache: CacheHint | None = None

    def __post_init__(self) -> None:
        _check_common(self)


class Deny(Struct, frozen=True, kw_only=True):
    """Denies the request. Made by ``deny``."""

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
        _check_common(self)


class Failure(Struct, frozen=True, kw_only=True):
    """The policy cannot judge the request. Made by ``fail``."""

    message: str

    def __post_init__(self) -> None:
        values.text(self.message, "fail's message")


Answer = Allow | Deny | Failure
"""The return type of a policy function; None is ``allow()``."""


def allow(
    *,
    warnings: Iterable[str] = (),
    audit_annotations: Mapping[str, str] | None = None,
    cache: CacheHint | None = None,
) -> Allow:
    """Allow the request unchanged.

    Args:
        warnings: shown to the user by kubectl; each under 120 characters, without control characters.
        audit_annotations: for the API server's audit log. Keys: letters, digits, ``-``, ``_``, ``.``, at most 63. The
            values must be the same in each call with the same document.
        cache: how long the gateway may reuse the verdict, or ``NO_STORE``; None: as the operator configured.

    Raises:
        InvalidAnswerError: a value has the wrong type, or an audit key has other characters.
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
    """Allow the request with a JSON Patch (RFC 6902). Mutating policies only.

    Args:
        operations: such as ``{"op": "add", "path": "/metadata/labels/team", "value": "a"}``, paths in the object; none
            leave the object unchanged. ``admission_worker.pointer`` makes paths and escapes keys.
        warnings: as for ``allow``.
        audit_annotations: as for ``allow``.
        cache: as for ``allow``.

    Raises:
        InvalidAnswerError: an operation is not in RFC 6902 or lacks a member, or a value is not JSON.
    """
    return _changed(json_patch(operations), warnings, audit_annotations, cache)


def merge(
    changes: Mapping[str, Any],
    *,
    warnings: Iterable[str] = (),
    audit_annotations: Mapping[str, str] | None = None,
    cache: CacheHint | None = None,
) -> Allow:
    """Allow the request with a JSON Merge Patch (RFC 7386), in which null removes a member. Mutating policies only.

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
    """Allow the request with this object; the gateway compares it with the one that it sent. Mutating policies only.

    Args:
        whole: the whole new object; it may be ``request.object``, modified.
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
        message: the reason for the operator, in one sentence. With failurePolicy Fail the user sees it too.

    Raises:
        InvalidAnswerError: the message is not text.
    """
    return Failure(message=message)


def _changed(
    change: Change, warnings: Iterable[str], annotations: Mapping[str, str] | None, cache: CacheHint | None
) -> Allow:
    texts = values.tuple_of(str, warnings, "warnings")
    return Allow(change=change, warnings=texts, audit_annotations=annotations or {}, cache=cache)


def _check_common(answer: Allow | Deny) -> None:
    """Check the common fields of allow and deny, and freeze them."""
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
