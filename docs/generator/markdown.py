"""From docstrings, which are written in a little reStructuredText, to Markdown; and tables."""

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Final

_LITERAL: Final = re.compile(r"``(.+?)``", re.DOTALL)
_NOT_IN_ANCHOR: Final = re.compile(r"[^\w\- ]")


def prose(text: str) -> str:
    """A docstring's text as Markdown paragraphs, each on one line."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text).strip())
    return "\n\n".join(literals(" ".join(paragraph.split())) for paragraph in paragraphs)


def literals(text: str) -> str:
    """Double backticks, which are a literal in reStructuredText, as Markdown's single ones."""
    return _LITERAL.sub(r"`\1`", text)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a cell is one line of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def code(text: object) -> str:
    """A literal, or nothing for an empty text."""
    return f"`{text}`" if str(text) else ""


def anchor(heading: str) -> str:
    """What a heading is linked by: lower case, punctuation gone, hyphens for blanks."""
    return _NOT_IN_ANCHOR.sub("", heading.strip().lower()).replace(" ", "-")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
