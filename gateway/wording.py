"""Texts that somebody else wrote, as our messages repeat them: short, on one line, printable."""

import json
from typing import Any, Final

SHOWN: Final = 200
"""Characters of a path or name that a message repeats: enough for each path of a Kubernetes type, and five of them (a
path, a from, a place and a name of each) still make a message of about 1 KB."""


class Redacted:
    """A mixin for values that hold secrets: ``repr`` and tracebacks with local variables name the class only."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """What structlog's tracebacks on a terminal show: no field."""
        return []


def quoted(text: str) -> str:
    """A name or pointer token as a JSON string, cut after 200 characters; in ASCII if not all of it is printable."""
    return json.dumps(shortened(text), ensure_ascii=not text.isprintable())


def shown(pointer: str) -> str:
    """A pointer in a message: as it is, if that is short, printable and not empty, else as a JSON string."""
    if pointer and len(pointer) <= SHOWN and pointer.isprintable():
        return pointer
    return quoted(pointer)


def shortened(text: str) -> str:
    """The first 200 characters, with an ellipsis where there are more."""
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
