"""Calendar and clock fields of timestamps and durations (cel-go's standard library). Without a zone: UTC."""

from collections.abc import Callable
from typing import Any, Final

from gateway.cel.libraries.overloads import Library, Overload, member
from gateway.cel.values.durations import NANOSECONDS, Duration
from gateway.cel.values.timestamps import Civil, Timestamp, civil, zone_offset

_GETTERS: Final[tuple[tuple[str, str, str, Callable[[Civil], int]], ...]] = (
    ("getFullYear", "timestamp_to_year", "timestamp_to_year_with_tz", lambda shown: shown.year),
    ("getMonth", "timestamp_to_month", "timestamp_to_month_with_tz", lambda shown: shown.month - 1),
    ("getDayOfYear", "timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz", lambda shown: shown.yearday),
    ("getDayOfMonth", "timestamp_to_day_of_month", "timestamp_to_day_of_month_with_tz", lambda shown: shown.day - 1),
    (
        "getDate",
        "timestamp_to_day_of_month_1_based",
        "timestamp_to_day_of_month_1_based_with_tz",
        lambda shown: shown.day,
    ),
    ("getDayOfWeek", "timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz", lambda shown: shown.weekday),
    ("getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", lambda shown: shown.hour),
    ("getMinutes", "timestamp_to_minutes", "timestamp_to_minutes_with_tz", lambda shown: shown.minute),
    ("getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", lambda shown: shown.second),
)
"""Function, its overloads without and with a zone, and what it reads. Months, days of the year and of the month count
from 0; ``getDate`` from 1."""

_UNITS: Final = {
    "getHours": ("duration_to_hours", 3600 * NANOSECONDS),
    "getMinutes": ("duration_to_minutes", 60 * NANOSECONDS),
    "getSeconds": ("duration_to_seconds", NANOSECONDS),
    "getMilliseconds": ("duration_to_milliseconds", 1_000_000),
}
"""Of a duration: how many of these it has in all."""


def _of_timestamp(read: Callable[[Civil], int]) -> Callable[..., int]:
    def get(moment: Timestamp, zone: str = "UTC") -> int:
        return read(civil(moment, zone_offset(moment, zone)))

    return get


def _milliseconds(moment: Timestamp, zone: str = "UTC") -> int:
    zone_offset(moment, zone)  # only for the error of a zone that does not exist
    return moment.nanos // 1_000_000


def _of_duration(unit: int) -> Callable[[Duration], int]:
    return lambda length: length.count(unit)


def _overloads() -> tuple[Overload, ...]:
    getters: list[tuple[str, str, str, Callable[..., Any]]] = [
        (name, plain, zoned, _of_timestamp(read)) for name, plain, zoned, read in _GETTERS
    ]
    milliseconds = ("timestamp_to_milliseconds", "timestamp_to_milliseconds_with_tz")
    getters.append(("getMilliseconds", *milliseconds, _milliseconds))
    found = []
    for name, plain, zoned, get in getters:
        found.append(member(plain, f"timestamp.{name}() -> int", get))
        found.append(member(zoned, f"timestamp.{name}(string) -> int", get))
        if name in _UNITS:
            identity, unit = _UNITS[name]
            found.append(member(identity, f"duration.{name}() -> int", _of_duration(unit)))
    return tuple(found)


ACCESSORS: Final = Library(overloads=_overloads())
