"""Quotes texts of clients, workers and files in messages: short, on one line, printable."""

import json
import re
from typing import Any, Final

MAX_QUOTED: Final = 200
"""Characters of a path or name that a message repeats: enough for each path of a Kubernetes type, and five of them (a
path, a from, a place and a name of each) still make a message of about 1 KB."""


_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and those that break a line or change the direction of the text after them: with these, one name
could be displayed as another."""


class Redacted:
    """A mixin for values that hold secrets: ``repr`` and tracebacks with local variables name the class only."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """What structlog's tracebacks on a terminal show: no field."""
        return []


def json_quoted(text: str) -> str:
    """The text as a JSON string, cut after 200 characters; in ASCII if not all of it is printable."""
    return json.dumps(shortened(text), ensure_ascii=not text.isprintable())


def quoted(text: str) -> str:
    """The text unchanged if it is short, printable and not empty, else as a JSON string."""
    if text and len(text) <= MAX_QUOTED and text.isprintable():
        return text
    return json_quoted(text)


def shortened(text: str) -> str:
    """The first 200 characters, with an ellipsis where there are more."""
    return text if len(text) <= MAX_QUOTED else text[:MAX_QUOTED] + "…"


def clean(text: str) -> str:
    """The text without characters that control a terminal; line breaks and tabs stay."""
    return _CONTROL.sub("?", text)
