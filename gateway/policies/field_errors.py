"""Paths of fields, and Kubernetes' words for what is wrong with one (k8s.io/apimachinery/pkg/util/validation/field).

How a value stands in a message depends on its Go type: a ``string`` as Go's %q writes it, a number as %v, and anything
else as JSON, which is how a list looks and also a word of an enumeration (``type ScopeType string`` is no ``string``).
The difference shows where a value holds ``<``, ``>``, ``&`` or what is not printable.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

from gateway.cel.values.strconv import go_escaped, go_quoted
from gateway.quoting import quoted

MAX_FEW: Final = 3
"""Pointers that one message names: enough to see what they have in common."""

MAX_QUOTED: Final = 4096
"""Characters of a value in a message, where Kubernetes knows no limit. Names have at most 253, label keys 317, an
expression some hundreds; a message ends in logs and in front of users, and one value may be wrong in several ways."""

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
_HTML: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def quote(text: str) -> str:
    """The text as Go's %q writes it: in quotation marks, on one line, what is not printable escaped."""
    return go_quoted(_cut(text))


def one_line(text: str) -> str:
    """The text with everything escaped that would break its line or a terminal."""
    return "".join(char if char.isprintable() else go_escaped(char) for char in text)


def field_path(tokens: Iterable[str], owner: str = "") -> str:
    """The path as Kubernetes writes it: ``spec.containers[0].image``, ``metadata.labels[a.b/c]``.

    Args:
        tokens: names of members and indexes of elements, from the outside in.
        owner: the path at which they begin.
    """
    for token in tokens:
        if _PLAIN.fullmatch(token):
            owner = f"{owner}.{token}" if owner else token
        else:
            owner = f"{owner}[{quote(token)[1:-1]}]"
    return owner


def go_json(value: object) -> str:
    """The value as Go's json.Marshal writes it, cut: an object's members in the order given, ``<>&`` escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _cut(text.translate(_HTML))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_QUOTED else text[:MAX_QUOTED] + "…"


def few(pointers: Sequence[str]) -> str:
    """The first pointers, and how many more there are."""
    more = f" and {len(pointers) - MAX_FEW} more" if len(pointers) > MAX_FEW else ""
    return ", ".join(map(quoted, pointers[:MAX_FEW])) + more


def show(value: str | float | bool | Sequence[object] | None) -> str:  # noqa: FBT001 - a value to show, not a switch
    """A value as it stands in a message."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _cut(repr(value))
    return go_json(value)


def _detailed(message: str, detail: str) -> str:
    return f"{message}: {detail}" if detail else message


def required(detail: str = "") -> str:
    """``Required value``: the field is absent, null or empty."""
    return _detailed("Required value", detail)


def invalid(value: str | float | bool | Sequence[object] | None, detail: str) -> str:  # noqa: FBT001 - a value to show
    """``Invalid value``: malformed, or out of bounds. A ``str`` is a Go ``string``."""
    return _detailed(f"Invalid value: {show(value)}", detail)


def invalid_typed(value: object, detail: str) -> str:
    """``Invalid value``, of a value whose Go type is neither a ``string`` nor a number: a word, an object, a list."""
    return _detailed(f"Invalid value: {go_json(value)}", detail)


def wrong_type(found: str, expected: str, advice: str = "") -> str:
    """``Invalid value``, of another JSON type than the schema's: the API server names the type in the value's place.

    ``advice`` states what is expected, for fields that Kubernetes does not know.
    """
    return invalid(found, f"must be of type {expected}" + (f", {advice}" if advice else ""))


def unsupported(value: str, supported: Iterable[str]) -> str:
    """``Unsupported value``: not one of the words that the field knows, in alphabetical order."""
    return _detailed(
        f"Unsupported value: {go_json(value)}", "supported values: " + ", ".join(map(quote, sorted(supported)))
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


def too_many(count: int, limit: int) -> str:
    """``Too many``: elements of a list."""
    return f"Too many: {count}: must have at most {limit} item{'s' if limit != 1 else ''}"


def too_long(limit: int) -> str:
    """``Too long``: a text, which is not shown."""
    return f"Too long: may not be more than {limit} bytes"


def unknown_field(path: str) -> str:
    """Strict decoding's words for a field that the type does not have."""
    return f"unknown field {quote(path)}"


def duplicate_field(path: str) -> str:
    """Strict decoding's words for a field that is set twice in the same object."""
    return f"duplicate field {quote(path)}"
