"""From docstrings, which are written in a little reStructuredText, to Markdown; and tables."""

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Final

_LITERAL: Final = re.compile(r"``(.+?)``", re.DOTALL)
_RULER: Final = re.compile(r"=+(?: +=+)+")
_NOT_IN_ANCHOR: Final = re.compile(r"[^\w\- ]")


def prose(text: str) -> str:
    """A docstring's text as Markdown paragraphs, each on one line."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text).strip())
    return "\n\n".join(literals(" ".join(paragraph.split())) for paragraph in paragraphs)


def page_of(docstring: str) -> str:
    """A docstring with paragraphs and simple tables (two columns and more between rulers of ``=``) as Markdown."""
    parts = re.split(r"\n\s*\n", inspect.cleandoc(docstring).strip())
    return "\n\n".join(_simple_table(part) if _RULER.match(part) else prose(part) for part in parts)


def _simple_table(text: str) -> str:
    """A simple table of reStructuredText. A line goes on with the row before if its first column is blank, or if that
    row's ends in a comma.
    """
    ruler, *lines = text.splitlines()
    starts = [match.start() for match in re.finditer("=+", ruler)]
    rows: list[list[str]] = []
    for line in lines:
        if _RULER.fullmatch(line.strip()):
            continue
        cells = [line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)]
        if not rows or (cells[0] and not rows[-1][0].endswith(",")):
            rows.append(cells)
        else:
            rows[-1] = [f"{before} {cell}".strip() for before, cell in zip(rows[-1], cells, strict=True)]
    head, *body = ([literals(cell) for cell in row] for row in rows)
    return table(head, body)


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
