"""``cache``: for how long a verdict is reused for other requests that put the same document to the policy.

Durations are written as Kubernetes writes them (metav1.Duration: ``5m``, ``1h30m``, ``500ms``), never as plain numbers:
a bare 300 would leave its unit open.

* ``ttl`` is required: no length of time is right for every policy.
* ``staleIfError`` counts from the end of ``ttl``; without it, a failing worker is a failure at once.
"""

from typing import Final

from gateway.cel.values.durations import DurationError, parse_duration
from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.model import Cache

_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR

MAX_TTL: Final = 1 * _DAY
"""Seconds. What a worker knows and the key does not (a list that it was built with, a clock) is believed for so long
at most; a verdict that costs milliseconds gains nothing from being kept longer than a day."""

MAX_STALE_IF_ERROR: Final = 7 * _DAY
"""Seconds. A worker that breaks at the beginning of a long weekend is repaired within a week."""

FIELDS: Final = ("ttl", "staleIfError")
_A_DURATION: Final = 'a duration such as "500ms", "5m" or "1h30m"'
_SYNTAX: Final = f"must be {_A_DURATION}"
_TTL: Final = 'must be the time for which a verdict may be reused, such as "5m"'


def read_cache(field: Field) -> Cache | None:
    """The cache that stands here; None if there is none, or if it cannot be read."""
    before = len(field.findings)
    if not field.mapping(FIELDS, advice="such as {ttl: 5m}"):
        return None
    if field.get("ttl").absent:
        field.get("ttl").refuse(field_errors.required(_TTL))
    ttl = _duration(field.get("ttl"))
    stale = _duration(field.get("staleIfError"))
    if ttl is not None and not 0 < ttl <= MAX_TTL:
        _refuse(field.get("ttl"), f"must be more than 0 and at most {MAX_TTL // _HOUR}h")
    if stale is not None and not 0 <= stale <= MAX_STALE_IF_ERROR:
        _refuse(field.get("staleIfError"), f"must not be negative, and at most {MAX_STALE_IF_ERROR // _HOUR}h")
    if ttl is None or len(field.findings) > before:
        return None
    return Cache(ttl=ttl, stale_if_error=stale or 0.0)


def _duration(field: Field) -> float | None:
    """The duration in seconds; None if there is none, and if it cannot be read."""
    text = field.text(advice=_A_DURATION)
    if text is None:
        return None
    try:
        return parse_duration(text).seconds
    except DurationError:
        field.refuse(field_errors.invalid(text, _SYNTAX))
        return None


def _refuse(field: Field, detail: str) -> None:
    field.refuse(field_errors.invalid(field.raw_text, detail))
