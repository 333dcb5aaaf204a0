"""Durations, to the nanosecond (cel-go's common/types/duration.go and Go's time.Duration)."""

import re
from typing import Final

import msgspec

from gateway.cel.values.faults import Fault
from gateway.cel.values.numbers import INT64_DIGITS, LARGEST_INT, SMALLEST_INT
from gateway.cel.values.strconv import go_quoted

NANOSECONDS: Final = 1_000_000_000
"""In a second."""


class Duration(msgspec.Struct, frozen=True, order=True, gc=False):
    """``nanoseconds`` is an int64: some 292 years."""

    nanoseconds: int

    @property
    def seconds(self) -> float:
        """As Go's Duration.Seconds."""
        whole = _quotient(self.nanoseconds, NANOSECONDS)
        return whole + (self.nanoseconds - whole * NANOSECONDS) / 1e9

    def count(self, unit: int) -> int:
        """How many whole units of so many nanoseconds it has; towards zero."""
        return _quotient(self.nanoseconds, unit)


def duration(nanoseconds: int) -> Duration:
    """A duration; a Fault if no int64 can hold it (cel-go adds durations as integers, hence the words)."""
    if not SMALLEST_INT <= nanoseconds <= LARGEST_INT:
        raise Fault("integer overflow")
    return Duration(nanoseconds)


# ------------------------------------------------------------------------------------------------- text
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": NANOSECONDS,
    "m": 60 * NANOSECONDS,
    "h": 3600 * NANOSECONDS,
}
_DURATION_PART: Final = re.compile(r"(\d*)(?:\.(\d*))?([^\d.]*)", re.ASCII)


class DurationError(ValueError):
    """A text that is no duration; the words are Go's."""


def parse_duration(text: str) -> Duration:
    """``1h30m``, ``-1.5s``: Go's time.ParseDuration; raises DurationError."""
    negative = text[:1] == "-"
    rest = text[1:] if text[:1] in {"-", "+"} else text
    if rest == "0":
        return Duration(0)
    total, parts = 0, list(_DURATION_PART.finditer(rest))[:-1]
    for whole, fraction, unit in (part.groups("") for part in parts):
        digits = whole.lstrip("0")
        if not (whole or fraction) or len(digits) > INT64_DIGITS + 1 or total > -SMALLEST_INT:
            break
        if unit not in _UNITS:
            wrong = f"unknown unit {go_quoted(unit)}" if unit else "missing unit"
            raise DurationError(f"time: {wrong} in duration {go_quoted(text)}")
        # Go reads the fraction up to what an int64 holds, and multiplies it as a double.
        read = fraction[:INT64_DIGITS].rstrip("0") or "0"
        total += int(digits or 0) * _UNITS[unit] + int(int(read) * (_UNITS[unit] / 10 ** len(read)))
    else:
        if parts and total <= LARGEST_INT + negative:
            return Duration(-total if negative else total)
    raise DurationError(f"time: invalid duration {go_quoted(text)}")


def _quotient(number: int, divisor: int) -> int:
    """Division that drops the rest, as in Go."""
    quotient = abs(number) // divisor
    return -quotient if number < 0 else quotient
