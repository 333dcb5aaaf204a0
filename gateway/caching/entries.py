"""One cache entry: a verdict, and the time of the call. The reader's configuration determines how long it is fresh.

    age      now - the time at which the worker was called
    life     ttl, or the worker's own hint if that is shorter
    fresh    age < life
    stale    life <= age < life + staleIfError: used only if the worker fails

The time is that of the call, not of the answer: a worker that took ten seconds may have read its data at any time in
them ("the response_delay ... is measured from the time the request was initiated", RFC 9111, section 4.2.3, does the
same). An entry has this time and the hint, not an expiry, so changing the ttl does not invalidate it.

Clocks of replicas differ. An entry slightly in the future is new; one further in the future is not used: a clock is
wrong, and the entry's age is unknown.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny, Verdict
from gateway.policies.model import Cache

_Seconds = Annotated[float, msgspec.Meta(ge=0)]


class _Allow(
    msgspec.Struct, tag="allow", array_like=True, forbid_unknown_fields=True, frozen=True, kw_only=True, gc=False
):
    kind: ChangeKind | None
    content: bytes
    warnings: tuple[str, ...]
    audit_annotations: dict[str, str]
    version: str
    reuse: _Seconds | None


class _Deny(
    msgspec.Struct, tag="deny", array_like=True, forbid_unknown_fields=True, frozen=True, kw_only=True, gc=False
):
    code: int
    message: str
    reason: str
    details: dict[str, Any] | None
    warnings: tuple[str, ...]
    audit_annotations: dict[str, str]
    version: str
    reuse: _Seconds | None


class _Record(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True, gc=False):
    called_at: float
    verdict: _Allow | _Deny


_pack: Final = msgspec.msgpack.Encoder().encode
_unpack: Final = msgspec.msgpack.Decoder(_Record).decode


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict, and when its worker was called for it, in seconds since 1970."""

    called_at: float
    verdict: Verdict


def reusable(verdict: Verdict) -> bool:
    """Whether the worker permits that the verdict is reused at all."""
    return verdict.reuse != 0


def life(verdict: Verdict, cache: Cache) -> float:
    """For how many seconds the verdict is fresh."""
    return cache.ttl if verdict.reuse is None else min(cache.ttl, verdict.reuse)


def packed(entry: Entry) -> bytes | None:
    """The entry in msgpack; None if it cannot be encoded (it has an integer of more than 64 bits)."""
    verdict = entry.verdict
    record: _Allow | _Deny
    if isinstance(verdict, Allow):
        change = verdict.change
        record = _Allow(
            kind=None if change is None else change.kind,
            content=b"" if change is None else change.content,
            warnings=verdict.warnings,
            audit_annotations=_plain(verdict.audit_annotations),
            version=verdict.version,
            reuse=verdict.reuse,
        )
    else:
        record = _Deny(
            code=verdict.code,
            message=verdict.message,
            reason=verdict.reason,
            details=None if verdict.details is None else dict(verdict.details),
            warnings=verdict.warnings,
            audit_annotations=_plain(verdict.audit_annotations),
            version=verdict.version,
            reuse=verdict.reuse,
        )
    try:
        return _pack(_Record(entry.called_at, record))
    except (msgspec.MsgspecError, ValueError, OverflowError, TypeError, RecursionError):
        return None


def unpacked(content: bytes) -> Entry | None:
    """The entry; None if the bytes are not a valid one."""
    try:
        record = _unpack(content)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    called_at, verdict = record.called_at, record.verdict
    if isinstance(verdict, _Allow):
        return Entry(
            called_at=called_at,
            verdict=Allow(
                change=None if verdict.kind is None else Change(kind=verdict.kind, content=verdict.content),
                warnings=verdict.warnings,
                audit_annotations=verdict.audit_annotations,
                version=verdict.version,
                reuse=verdict.reuse,
            ),
        )
    return Entry(
        called_at=called_at,
        verdict=Deny(
            code=verdict.code,
            message=verdict.message,
            reason=verdict.reason,
            details=verdict.details,
            warnings=verdict.warnings,
            audit_annotations=verdict.audit_annotations,
            version=verdict.version,
            reuse=verdict.reuse,
        ),
    )


def _plain(annotations: Mapping[str, str]) -> dict[str, str]:
    return annotations if isinstance(annotations, dict) else dict(annotations)
