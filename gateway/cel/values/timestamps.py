"""Timestamps, to the nanosecond, and their zones (cel-go's common/types/timestamp.go and Go's time.Time)."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from gateway.cel.values.durations import NANOSECONDS
from gateway.cel.values.faults import Fault
from gateway.cel.values.numbers import INT64_DIGITS

_FIRST: Final = -62_135_596_800
_LAST: Final = 253_402_300_799
"""The first second of the year 1 and the last of the year 9999: all others are an overflow."""

_MARGIN: Final = 2 * 86_400
"""Seconds: more than any zone is away from UTC."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400


class Timestamp(msgspec.Struct, frozen=True, gc=False):
    """``seconds`` since 1970, ``nanos`` within the second; ``offset`` from UTC in seconds, only for its text."""

    seconds: int
    nanos: int
    offset: int = 0

    @property
    def instant(self) -> int:
        """Nanoseconds since 1970: two timestamps are equal if these are, whatever zone they are written in."""
        return self.seconds * NANOSECONDS + self.nanos


class Civil(msgspec.Struct, frozen=True, gc=False):
    """A moment as a calendar and a clock show it. ``weekday`` counts from Sunday, ``yearday`` from 0."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    weekday: int
    yearday: int


def timestamp(instant: int, offset: int) -> Timestamp:
    """A timestamp; a Fault if it is not within the years 1 to 9999."""
    seconds, nanos = divmod(instant, NANOSECONDS)
    if not _FIRST <= seconds <= _LAST:
        raise Fault("timestamp overflow")
    return Timestamp(seconds, nanos, offset)


def civil(moment: Timestamp, offset: int) -> Civil:
    """What calendar and clock show ``offset`` seconds east of UTC (days to dates: Howard Hinnant's algorithm)."""
    days, rest = divmod(moment.seconds + offset, _DAY)
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9  # noqa: PLR2004 - the algorithm's years begin in March
    year = year_of_era + era * 400 + (month <= 2)  # noqa: PLR2004 - see above
    return Civil(
        year=year,
        month=month,
        day=day_of_year - (153 * shifted + 2) // 5 + 1,
        hour=rest // 3600,
        minute=rest // 60 % 60,
        second=rest % 60,
        weekday=(days + 4) % 7,
        yearday=days - _days(year, 1, 1),
    )


def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date."""
    year -= month <= 2  # noqa: PLR2004 - the algorithm's years begin in March
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1  # noqa: PLR2004 - see above
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


# ------------------------------------------------------------------------------------------------ zones
def zone_offset(moment: Timestamp, zone: str) -> int:
    """How far a zone (``Europe/Berlin``, ``+02:00``) is east of UTC, in seconds; a Fault if it is no zone."""
    if ":" in zone:
        return _written_offset(zone)
    if zone in {"", "UTC"}:
        return 0
    if ".." in zone or zone[0] in "/\\":
        raise Fault("time: invalid location name")
    # Near the ends of the calendar, local time may be beyond them; zones do not change there.
    seconds = min(max(moment.seconds, _FIRST + _MARGIN), _LAST - _MARGIN)
    try:
        offset = (_EPOCH + timedelta(seconds=seconds)).astimezone(ZoneInfo(zone)).utcoffset()
    except (KeyError, ValueError, OSError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise Fault(f"unknown time zone {zone}") from error
    return int((offset or timedelta()).total_seconds())


def _written_offset(zone: str) -> int:
    """cel-go's own reading of ``hours:minutes``: any two integers, the sign is the first character's."""
    hours, _, minutes = zone.partition(":")
    values = []
    for part in (hours, minutes):
        if not re.fullmatch(r"[+-]?[0-9]+", part):
            raise Fault(f'strconv.Atoi: parsing "{part}": invalid syntax')
        if len(part) > INT64_DIGITS:
            raise Fault(f'strconv.Atoi: parsing "{part}": value out of range')
        values.append(int(part))
    offset = values[0] * 60 - values[1] if zone[0] == "-" else values[0] * 60 + values[1]
    return offset * 60


# ------------------------------------------------------------------------------------------------- text
_RFC3339: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{1,2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:(Z)|([+-])(\d{2}):(\d{2}))", re.ASCII
)
_MONTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_timestamp(text: str) -> Timestamp | None:
    """RFC 3339 as Go's time.Parse reads it, or None; a Fault if it is not within the years 1 to 9999."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, zulu, sign, offset_hours, offset_minutes = match.groups()[6:]
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)  # noqa: PLR2004 - February
    dates = 1 <= month <= 12 and 1 <= day <= _MONTHS[month - 1] + leap  # noqa: PLR2004 - months
    if not (dates and hour < 24 and minute < 60 and second < 60):  # noqa: PLR2004 - a clock
        return None
    offset = 0
    if not zulu:
        if int(offset_hours) > 24 or int(offset_minutes) >= 60:  # noqa: PLR2004 - Go accepts 24
            return None
        offset = (int(offset_hours) * 60 + int(offset_minutes)) * (-60 if sign == "-" else 60)
    seconds = _days(year, month, day) * _DAY + hour * 3600 + minute * 60 + second - offset
    nanos = int((fraction or "0")[:9].ljust(9, "0"))
    return timestamp(seconds * NANOSECONDS + nanos, offset)


def timestamp_text(moment: Timestamp) -> str:
    """RFC 3339 with as many digits of the second as there are, in the zone in which it was written."""
    shown = civil(moment, moment.offset)
    fraction = f".{moment.nanos:09}".rstrip("0") if moment.nanos else ""
    zone = "Z"
    if moment.offset:
        minutes = abs(moment.offset) // 60
        zone = f"{'-' if moment.offset < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
    date = f"{shown.year:04}-{shown.month:02}-{shown.day:02}"
    return f"{date}T{shown.hour:02}:{shown.minute:02}:{shown.second:02}{fraction}{zone}"
