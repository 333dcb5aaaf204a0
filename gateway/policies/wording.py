"""Kubernetes' words for what is wrong with a field (k8s.io/apimachinery/pkg/util/validation/field).

Values in messages are quoted as Go's %q does, lists as JSON, both cut: a message ends in logs and in front of users.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Final

MAX_QUOTED: Final = 200
"""Characters of a value in a message. A name has at most 253, a label 317; what is longer is wrong at a glance."""


MAX_LISTED: Final = 10
"""Elements of a list in a message."""


def quote(text: str) -> str:
    """The text in quotation marks, on one line, unprintable characters escaped."""
    cut = text if len(text) <= MAX_QUOTED else text[:MAX_QUOTED] + "…"
    escaped = (char if char.isprintable() and char not in '"\\' else _escape(char) for char in cut)
    return '"' + "".join(escaped) + '"'


def _escape(char: str) -> str:
    return "\\" + char if char in '"\\' else char.encode("unicode_escape").decode()


def show(value: str | float | bool | Sequence[str] | None) -> str:  # noqa: FBT001 - a value to show, not a switch
    """A value as it stands in a message."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return repr(value)[:MAX_QUOTED]
    return "[" + ",".join(quote(item) for item in value[:MAX_LISTED]) + (",…]" if len(value) > MAX_LISTED else "]")


def _detailed(message: str, detail: str) -> str:
    return f"{message}: {detail}" if detail else message


def required(detail: str = "") -> str:
    """``Required value``: the field is absent, null or empty."""
    return _detailed("Required value", detail)


def invalid(value: str | float | bool | Sequence[str] | None, detail: str) -> str:  # noqa: FBT001 - a value to show
    """``Invalid value``: malformed, or out of bounds."""
    return _detailed(f"Invalid value: {show(value)}", detail)


def wrong_type(found: str, expected: str) -> str:
    """``Invalid value``, of another JSON type than the schema's: the API server names the type in the value's place."""
    return invalid(found, f"must be of type {expected}")


def unsupported(value: str, supported: Iterable[str]) -> str:
    """``Unsupported value``: not one of the words that the field knows."""
    return _detailed(
        f"Unsupported value: {quote(value)}", "supported values: " + ", ".join(map(quote, sorted(supported)))
    )


def duplicate(value: str) -> str:
    """``Duplicate value``: it must be unique, and is not."""
    return f"Duplicate value: {quote(value)}"


def forbidden(detail: str) -> str:
    """``Forbidden``: well formed, but not permitted here."""
    return _detailed("Forbidden", detail)


def not_found(value: str) -> str:
    """``Not found``: what it refers to does not exist."""
    return f"Not found: {quote(value)}"


def unknown_field(name: str) -> str:
    """Strict decoding's words for a field that the type does not have."""
    return f"unknown field {quote(name)}"
