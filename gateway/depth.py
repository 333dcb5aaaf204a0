"""The nesting depth of a JSON text, and its number of values, without parsing.

A number may cost as much as many values: see ``_charge``.

A JSON parser recurses once per level, so a few hundred kilobytes of ``[`` can crash a process without a limit. RFC
8259, section 9: "An implementation may set limits on the maximum depth of nesting." The limit must be checked before
the parser runs, on every text from outside, at a negligible cost. The steps:

1. A text with no more opening brackets than the limit cannot nest deeper: one pass at memory speed. Almost all texts
   end here.
2. Brackets inside strings do not nest. First escaped backslashes are removed, then escaped quotes, so that each
   remaining quote begins or ends a string; then everything that is neither quote nor bracket. ``{}`` becomes ``[]``,
   which is the same for depth.
3. The rest, without what is in strings, is read in short pieces. A piece whose opening brackets cannot exceed the limit
   even if none of them is closed is only counted; the other pieces are summed up bracket by bracket.

There is no recursion, memory is that of a few copies of the text, and time is linear: in the worst case (only brackets,
just under the limit) some 40 ns for each bracket, which is less than the parser takes for them.

``surveyed`` does the same in slices, with both results: for a text so large that an event loop needs breaks in it.
"""

from collections.abc import Generator
from itertools import accumulate
from typing import Any, NamedTuple

_PIECE = 256
"""Bytes of a piece: with at most 256 brackets in it, half of them closing, a piece exceeds a limit of 256 only if it
begins at a depth above 100, which no Kubernetes object has; and counting a piece costs no more than summing up 20
brackets."""

_ONE_KIND = bytes.maketrans(b"{}E123456789", b"[]e000000000")
_ALL_BUT_QUOTES_AND_BRACKETS = bytes(set(range(256)) - set(b'"[]{}'))
_ALL_BUT_STRUCTURE = bytes(set(range(256)) - set(b'"[]{},:.eE0123456789'))
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]"))
_STEPS = bytes.maketrans(b"[]", b"\x01\xff")
"""``[`` is +1 and ``]`` is -1, as signed bytes."""


_SLICE = 65_536
"""Bytes of a slice of ``surveyed``, and of what is split into strings at once: at most some 5 ms of work (only quotes),
mostly 0.2 ms."""

_PASS = 1_048_576
"""Bytes of a slice of ``bounded``: some 6 ms."""

_ALL_BUT_BEFORE_VALUES = bytes(set(range(256)) - set(b",[{"))
"""Each value of a JSON text, except the outermost, follows one of the three others. (To delete in one pass takes a
quarter of the time of three counts.)"""

_ALL_BUT_OPENING = bytes(set(range(256)) - set(b"[{"))


_FRACTION_VALUES = 5
_EXPONENT_VALUES = 3
"""What a float is charged beside one. Python's parser takes 1.1 us for the worst with a fraction, 1.5 us for the worst
with an exponent too: 6 and 9 values of 0.17 us, the most that another value takes."""

_LONG_NUMBER = b"0" * 20
"""An int64 has 19 digits, and so has a double at most if its text is the shortest one."""

_DIGITS_OF_VALUE = 2
"""Digits of a longer number that are charged as a value. To read and to write an integer takes time that grows with the
square of its length, 0.4 ms for 4,300 digits (Python and msgspec read no longer one): 0.09 us for each."""

_LONG_IN_TEXTS = b"0" * 128
"""So many digits in a row are looked for where strings are not told apart: hexadecimal texts have none. 20,000 integers
with fewer are read in 12 ms."""


class Survey(NamedTuple):
    """``values``: how many values a JSON text has, and names of members, with what its numbers are charged.
    ``too_deep``: whether it nests too deep.
    """

    values: int
    too_deep: bool


def most_values(text: bytes) -> int:
    """An upper bound of the number of values in a JSON text, without the outermost. (Commas and brackets in strings
    count too.)
    """
    return len(text.translate(None, _ALL_BUT_BEFORE_VALUES))


def most_charged(text: bytes) -> int:
    """An upper bound of ``Survey.values``."""
    return most_values(text) + text.count(b":") + _charge(text.translate(_ONE_KIND))


def has_long_number(text: bytes) -> bool:
    """Whether a text has so many digits in a row, in strings or not, that they have to be charged."""
    return _LONG_IN_TEXTS in text.translate(_ONE_KIND)


def light_survey(text: bytes, limit: int) -> Survey:
    """An upper bound of the number of values, and exactly whether the text nests more than ``limit`` levels deep."""
    before = text.translate(None, _ALL_BUT_BEFORE_VALUES)
    values = len(before)
    return Survey(values, values > limit and values - before.count(b",") > limit and too_deep(text, limit))


def bounded(text: bytes, room: int, limit: int) -> Generator[None, None, Survey]:
    """The same as ``surveyed``; an upper bound of the values if that is at most ``room``, which takes less time.

    Yields after each slice of work.
    """
    values = opening = 0
    for start in range(0, len(text), _PASS):
        piece = text[start : start + _PASS]
        values += most_charged(piece) + _EXPONENT_VALUES  # of a number at the cut
        opening += len(piece.translate(None, _ALL_BUT_OPENING))
        yield
    if values <= room and opening <= limit:
        return Survey(values, too_deep=False)
    # Perhaps they are commas, digits and brackets in strings.
    found = yield from surveyed(text, limit)
    return Survey(min(values, found.values), found.too_deep)


def surveyed(text: bytes, limit: int) -> Generator[None, None, Survey]:
    """The number of values and of members' names in a JSON text, without the outermost value (and empty containers
    count twice), and what its numbers are charged; and whether it nests more than ``limit`` levels deep. Exact for
    JSON, outside strings (except for a number at the cut between two slices).

    Yields after each slice of work.
    """
    nesting, inside, values, at = _Nesting(limit), 0, 0, 0
    while at < len(text):
        piece = text[at : at + _SLICE]
        if (len(piece) - len(piece.rstrip(b"\\"))) & 1:
            # A backslash and what it escapes are never cut apart.
            piece = text[at : at + _SLICE + 1]
        at += len(piece)
        parts = _structure(piece, _ALL_BUT_STRUCTURE).split(b'"')
        outside = b"".join(parts[inside::2])
        inside = (inside + len(parts) - 1) & 1
        brackets = outside.translate(None, _ALL_BUT_BRACKETS)
        values += outside.count(b",") + outside.count(b":") + brackets.count(b"[") + _charge(outside)
        nesting.add(brackets)
        yield
    return Survey(values, nesting.too_deep)


def may_be_too_deep(text: bytes, limit: int) -> bool:
    """Whether the text has more opening brackets than ``limit``, in strings or not: else it is not too deep."""
    return len(text.translate(None, _ALL_BUT_OPENING)) > limit


def too_deep(text: bytes, limit: int) -> bool:
    """Whether arrays and objects nest more than ``limit`` levels deep in a JSON text; ``[]`` and ``{}`` are one level.

    Exact for JSON. For other texts it never raises, and False still means that a parser which stops at the first syntax
    error does not go deeper than ``limit`` before that.
    """
    return may_be_too_deep(text, limit) and _passes(_structure(text, _ALL_BUT_QUOTES_AND_BRACKETS), limit)


def value_too_deep(value: Any, limit: int) -> bool:
    """The same of a decoded value, whose containers are dicts and lists."""
    level, depth = [value], 0
    while level := [each for each in level if type(each) is dict or type(each) is list]:
        depth += 1
        if depth > limit:
            return True
        level = [child for each in level for child in (each.values() if type(each) is dict else each)]
    return False


def _charge(outside: bytes) -> int:
    """What numbers are charged, beside one for each. In ``outside`` each digit is 0, and each E is e."""
    charge = _FRACTION_VALUES * outside.count(b".") + _EXPONENT_VALUES * outside.count(b"0e")
    if _LONG_NUMBER in outside:
        charge += outside.count(b"0") // _DIGITS_OF_VALUE
    return charge


def _structure(text: bytes, deleted: bytes) -> bytes:
    """The quotes that begin and end strings, and all that ``deleted`` leaves; ``{}`` as ``[]``, digits as 0, E as e."""
    if b"\\" in text:
        # In this order: in ``\\"`` the quote ends the string, in ``\"`` it does not.
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    text = text.translate(_ONE_KIND, deleted)
    # Two quotes side by side, whether they are an empty string or the end of one and the start of the next, do not
    # change what is inside a string and what is outside.
    return text.replace(b'""', b"")


def _passes(skeleton: bytes, limit: int) -> bool:
    """Whether the depth of a text of quotes, ``[`` and ``]`` ever exceeds ``limit``."""
    nesting = _Nesting(limit)
    inside = 0  # 1 within a string
    for start in range(0, len(skeleton), _SLICE):
        parts = skeleton[start : start + _SLICE].split(b'"')
        nesting.add(b"".join(parts[inside::2]))
        if nesting.too_deep:
            return True
        inside = (inside + len(parts) - 1) & 1
    return False


class _Nesting:
    """The depth of a text, by its ``[`` and ``]``. ``too_deep``: it has exceeded the limit."""

    __slots__ = ("_depth", "_limit", "too_deep")

    def __init__(self, limit: int) -> None:
        self._depth = 0
        self._limit = limit
        self.too_deep = False

    def add(self, brackets: bytes) -> None:
        """The text goes on with these."""
        for start in range(0, len(brackets), _PIECE):
            piece = brackets[start : start + _PIECE]
            opening = piece.count(b"[")
            if self._depth + opening > self._limit and self._depth + _peak(piece) > self._limit:
                self.too_deep = True
            self._depth += opening + opening - len(piece)


def _peak(brackets: bytes) -> int:
    """The greatest depth that these brackets reach, relative to their start."""
    return max(accumulate(memoryview(brackets.translate(_STEPS)).cast("b")), default=0)
