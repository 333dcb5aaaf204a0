"""Compile errors as text: cel-go's ``common.Errors.ToDisplayString``.

``ERROR: <input>:LINE:COLUMN: MESSAGE``, the line itself, and a line of dots that ends in ``^`` below the place; wide
characters get wide dots. Problems are sorted by line and column, at most a hundred are shown.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import msgspec

_LONGEST_LINE: Final = 16_384
"""UTF-8 bytes; longer lines are not shown (cel-go's maxSnippetLength)."""

_MOST_PROBLEMS: Final = 100
_WIDE_DOT: Final = "\uff0e"
_WIDE_HAT: Final = "\uff3e"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One error in an expression: its place (a code point, None if it has none) and its message."""

    offset: int | None
    message: str


def describe(expression: str, problems: Sequence[Problem]) -> str:
    """All problems of an expression as the API server shows them: lines of text."""
    starts = [0, *(index + 1 for index, character in enumerate(expression) if character == "\n")]
    # Sorting by place only: problems of the same place stay in the order in which they were found.
    placed = sorted(
        ((_place(starts, problem.offset), problem.message) for problem in problems), key=lambda item: item[0]
    )
    lines = expression.split("\n")
    shown = [_show(lines, line, column, message) for (line, column), message in placed[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        shown.append(f"{len(problems) - _MOST_PROBLEMS} more errors were truncated")
    return "\n".join(shown)


def _place(starts: Sequence[int], offset: int | None) -> tuple[int, int]:
    """Line from 1 and column from 0; (-1, -1) for nowhere, as cel-go's NoLocation."""
    if offset is None:
        return -1, -1
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1]


def _show(lines: Sequence[str], line: int, column: int, message: str) -> str:
    head = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if line < 1:
        return head
    text = lines[line - 1]
    if len(text.encode(errors="replace")) > _LONGEST_LINE:
        return head
    text = text.replace("\t", " ")
    dots = "".join("." if character.isascii() else _WIDE_DOT for character in text[:column])
    hat = "^" if text[column : column + 1].isascii() else _WIDE_HAT
    return f"{head}\n | {text}\n | {dots}{hat}"
