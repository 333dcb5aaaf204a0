"""The nesting depth of a JSON text, and an upper bound of its number of values, without parsing.

A JSON parser recurses once per level, so a few hundred kilobytes of ``[`` can crash a process without a limit. RFC
8259, section 9: "An implementation may set limits on the maximum depth of nesting." The limit must be checked before
the parser runs, on every text from outside, at a negligible cost. The steps:

1. A text with no more opening brackets than the limit cannot nest deeper: two counts at memory speed. Almost all texts
   end here.
2. Brackets inside strings do not nest. First escaped backslashes are removed, then escaped quotes, so that each
   remaining quote begins or ends a string; then everything that is neither quote nor bracket. ``{}`` becomes ``[]``,
   which is the same for depth.
3. The rest is read in short pieces. A piece whose opening brackets cannot exceed the limit even if none of them is
   closed is only counted; the other pieces are summed up bracket by bracket.

There is no recursion, memory is that of a few copies of the text, and time is linear: in the worst case (only brackets,
just under the limit) some 40 ns for each bracket, which is less than the parser takes for them.
"""

from itertools import accumulate

_PIECE = 256
"""Bytes of a piece: with at most 256 brackets in it, half of them closing, a piece exceeds a limit of 256 only if it
begins at a depth above 100, which no Kubernetes object has; and counting a piece costs no more than summing up 20
brackets."""

_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_ALL_BUT_QUOTES_AND_BRACKETS = bytes(set(range(256)) - set(b'"[]{}'))
_STEPS = bytes.maketrans(b"[]", b"\x01\xff")
"""``[`` is +1 and ``]`` is -1, as signed bytes."""


_BEFORE_VALUES = (b",", b"[", b"{")
"""Each value of a JSON text, except the outermost, follows one of these."""


def most_values(text: bytes) -> int:
    """An upper bound of the number of values in a JSON text, without the outermost. (Commas and brackets in strings
    count too.)
    """
    return sum(map(text.count, _BEFORE_VALUES))


def too_deep(text: bytes, limit: int) -> bool:
    """Whether arrays and objects nest more than ``limit`` levels deep in a JSON text; ``[]`` and ``{}`` are one level.

    Exact for JSON. For other texts it never raises, and False still means that a parser which stops at the first syntax
    error does not go deeper than ``limit`` before that.
    """
    if text.count(b"[") + text.count(b"{") <= limit:
        return False
    if b"\\" in text:
        # In this order: in ``\\"`` the quote ends the string, in ``\"`` it does not.
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    text = text.translate(_ONE_KIND, _ALL_BUT_QUOTES_AND_BRACKETS)
    # Two quotes side by side, whether they are an empty string or the end of one and the start of the next, do not
    # change what is inside a string and what is outside.
    return _passes(text.replace(b'""', b""), limit)


def _passes(skeleton: bytes, limit: int) -> bool:
    """Whether the depth of a text of quotes, ``[`` and ``]`` ever exceeds ``limit``."""
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
    """The greatest depth that these brackets reach, relative to their start."""
    return max(accumulate(memoryview(brackets.translate(_STEPS)).cast("b")), default=0)
