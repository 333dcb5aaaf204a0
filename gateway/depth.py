"""How deep a JSON text nests, and how many values it may have, found without parsing it.

A JSON parser recurses once for each level, so a few hundred kilobytes of ``[`` can end a process that has no limit. RFC
8259, section 9: "An implementation may set limits on the maximum depth of nesting." The limit has to be kept before the
parser runs, on every text that comes from outside, at a price that nobody notices. In this order:

1. A text with no more opening brackets than the limit cannot nest deeper than it: two counts at memory speed, and
   almost every text ends here.
2. Brackets inside strings do not nest. Escaped backslashes go first and escaped quotes then, so that every quote
   which is left begins or ends a string; then everything that is neither quote nor bracket. ``{}`` becomes ``[]``:
   for depth they are the same.
3. What remains is walked in short pieces. A piece whose opening brackets could not pass the limit even if none of them
   closed again is only counted; the others are summed up bracket by bracket.

Nothing here recurses, memory is that of a few copies of the text, and time is linear: at worst (a text of brackets
alone that stays just under the limit) some 40 ns for each bracket, which is less than what the parser takes for them.
"""

from itertools import accumulate

_PIECE = 256
"""Bytes walked at a time: with at most 256 brackets in it, half of them closing, a piece passes a limit of 256 only
if it begins at a depth above 100, which no Kubernetes object does; and a piece costs no more than 20 of its brackets
would."""

_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_ALL_BUT_QUOTES_AND_BRACKETS = bytes(set(range(256)) - set(b'"[]{}'))
_STEPS = bytes.maketrans(b"[]", b"\x01\xff")
"""``[`` is +1 and ``]`` is -1, as signed bytes."""


_BEFORE_VALUES = (b",", b"[", b"{")
"""Before each value of a JSON text, the outermost left aside, stands one of these."""


def most_values(text: bytes) -> int:
    """How many values a JSON text has at most, the outermost left aside. (Commas and brackets in strings count too.)"""
    return sum(map(text.count, _BEFORE_VALUES))


def too_deep(text: bytes, limit: int) -> bool:
    """Whether arrays and objects nest more than ``limit`` levels deep in a JSON text; ``[]`` and ``{}`` are one level.

    Exact for JSON. For what is not JSON it never raises, and False still means that a parser which stops at the first
    mistake will not have gone deeper than ``limit`` before it does.
    """
    if text.count(b"[") + text.count(b"{") <= limit:
        return False
    if b"\\" in text:
        # In this order: of ``\\"`` the quote is a real one, of ``\"`` it is not.
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    text = text.translate(_ONE_KIND, _ALL_BUT_QUOTES_AND_BRACKETS)
    # Two quotes side by side, whether they are an empty string or the end of one and the start of the next, do not
    # change what is inside a string and what is outside.
    return _passes(text.replace(b'""', b""), limit)


def _passes(skeleton: bytes, limit: int) -> bool:
    """Whether the depth of a text of quotes, ``[`` and ``]`` ever passes ``limit``."""
    depth = 0
    inside = 0  # 1 within a string
    for start in range(0, len(skeleton), _PIECE):
        parts = skeleton[start : start + _PIECE].split(b'"')
        outside = b"".join(parts[inside::2])
        inside = (inside + len(parts) - 1) & 1
        opening = outside.count(b"[")
        if depth + opening > limit and depth + _peak(outside) > limit:
            return True
        depth += opening + opening - len(outside)
    return False


def _peak(brackets: bytes) -> int:
    """The greatest depth that these brackets reach, counted from where they begin."""
    return max(accumulate(memoryview(brackets.translate(_STEPS)).cast("b")), default=0)
