"""A worker's patch that cannot be used, and the words in which that is told.

The words reach the user, the log and the audit log, while the object may be a Secret: they name places and kinds,
never a value of the object. And they are bounded, whatever the worker wrote.
"""

import json
from typing import Any

_SHOWN = 200
"""Characters of a path or name that a message repeats: enough for each path of a Kubernetes type, and five of them (a
path, a from, a place and a name of each) still make a message of about 1 KB."""

_KINDS = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


class PatchError(ValueError):
    """What a worker wants changed is malformed, does not apply, or passes a limit. The message says which and where."""


def kind(value: Any) -> str:
    """The JSON type of a decoded value with its article, such as ``a string``."""
    return _KINDS[type(value)]


def quoted(text: str) -> str:
    """A name or pointer token as a JSON string, cut after 200 characters; in ASCII if not all of it is printable."""
    return json.dumps(shortened(text), ensure_ascii=not text.isprintable())


def shown(pointer: str) -> str:
    """A pointer in a message: as it is, if that is short, printable and not empty, else as a JSON string."""
    if pointer and len(pointer) <= _SHOWN and pointer.isprintable():
        return pointer
    return quoted(pointer)


def shortened(text: str) -> str:
    """The first 200 characters, with an ellipsis where there are more."""
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
