"""A timestamp as Go's time package takes it (time.RFC3339), which is how metav1.Time decodes itself.

The layout is walked element by element; the message names the element at which the text strays, and what is left of
the text there. A value out of range is reported after all of the text was read. (time.Parse in format.go.)
"""

import calendar
import re
from typing import Final

_QUOTED: Final = 4096
"""Characters of a text in a message."""

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_ELEMENTS: Final = (
    ("2006", re.compile("[0-9]{4}")),
    ("-", re.compile("-")),
    ("01", re.compile("[0-9]{2}")),
    ("-", re.compile("-")),
    ("02", re.compile("[0-9]{2}")),
    ("T", re.compile("T")),
    ("15", re.compile("[0-9]{1,2}")),
    (":", re.compile(":")),
    ("04", re.compile("[0-9]{2}")),
    (":", re.compile(":")),
    # A fraction of a second may follow, though the layout has none.
    ("05", re.compile(r"[0-9]{2}([.,][0-9]+)?")),
    ("Z07:00", re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}")),
)
_LIMITS: Final = {"01": ("month", 1, 12), "15": ("hour", 0, 23), "04": ("minute", 0, 59), "05": ("second", 0, 59)}
_ZONE_HOURS: Final = 24
_ZONE_MINUTES: Final = 60


def timestamp_error(text: str) -> str | None:
    """Go's error for a text that is no RFC 3339 timestamp; None if it is one."""
    at = 0
    found: dict[str, str] = {}
    for element, pattern in _ELEMENTS:
        match = pattern.match(text, at)
        if match is None:
            layout, rest = _quote(_LAYOUT), _quote(text[at:])
            return f"{_parsing(text)} as {layout}: cannot parse {rest} as {_quote(element)}"
        found[element] = match[0]
        at = match.end()
        wrong = _out_of_range(element, match[0])
        if wrong:
            return f"{_parsing(text)}: {wrong} out of range"
    if at < len(text):
        return f"{_parsing(text)}: extra text: {_quote(text[at:])}"
    days = calendar.monthrange(max(int(found["2006"]), 1), int(found["01"]))[1]
    if found["2006"] == "0000" and found["01"] == "02":
        days = 29
    return None if 1 <= int(found["02"]) <= days else f"{_parsing(text)}: day out of range"


def _parsing(text: str) -> str:
    return f"parsing time {_quote(text)}"


def _out_of_range(element: str, digits: str) -> str | None:
    if element == "Z07:00" and digits != "Z":
        hours, minutes = int(digits[1:3]), int(digits[4:])
        return (
            "time zone offset hour"
            if hours > _ZONE_HOURS
            else "time zone offset minute"
            if minutes > _ZONE_MINUTES
            else None
        )
    if element not in _LIMITS:
        return None
    name, least, most = _LIMITS[element]
    return None if least <= int(digits[:2]) <= most else name


def _quote(text: str) -> str:
    """The package's own quote: every byte that is no ASCII character, or a control character, is escaped."""
    return '"' + "".join(map(_escape, text[:_QUOTED].encode())) + '"'


def _escape(byte: int) -> str:
    if chr(byte) in '"\\':
        return "\\" + chr(byte)
    return chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}"  # noqa: PLR2004 - the first and the last of ASCII
