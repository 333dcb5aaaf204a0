"""Values in error messages, as Go prints cel-go's values and the names of their types."""

from collections.abc import Iterator
from typing import Any, Final

from gateway.cel.values.containers import Optional, is_map, items
from gateway.cel.values.numbers import Uint
from gateway.cel.values.reflection import named
from gateway.cel.values.strconv import go_double

_GO_NAMES: Final = {
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "bool": "types.Bool",
    "string": "types.String",
    "bytes": "types.Bytes",
    "null_type": "types.Null",
    "google.protobuf.Timestamp": "types.Timestamp",
    "google.protobuf.Duration": "types.Duration",
    "list": "*types.baseList",
    "map": "*types.baseMap",
    "type": "*types.Type",
    "optional_type": "*types.Optional",
    "net.IP": "cel.IP",
    "net.CIDR": "cel.CIDR",
    "kubernetes.URL": "cel.URL",
    "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.Semver": "cel.Semver",
    "kubernetes.NamedFormat": "cel.Format",
}


def go_type_name(value: Any) -> str:
    """The type of a value, as ``%T`` prints it."""
    return _GO_NAMES.get(named(value), named(value))


_LONGEST: Final = 10_000
"""Characters of a value in a message. A list may stand in a list twice, and that one in another twice."""


def display(value: Any) -> str:
    """A value as ``%v`` prints it: a key, an index. What is longer than 10,000 characters ends in an ellipsis."""
    pieces, length = [], 0
    for piece in _pieces(value):
        pieces.append(piece)
        length += len(piece)
        if length > _LONGEST:
            return "".join(pieces)[:_LONGEST] + "…"
    return "".join(pieces)


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield "["
        for index, element in enumerate(value):
            yield ", " if index else ""
            yield from _pieces(element)
        yield "]"
    elif is_map(value):
        yield "{"
        for index, (key, found) in enumerate(items(value)):
            yield ", " if index else ""
            yield from _pieces(key)
            yield ": "
            yield from _pieces(found)
        yield "}"
    elif isinstance(value, Optional) and value.present:
        yield "optional("
        yield from _pieces(value.value)
        yield ")"
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Uint):
        return str(int(value))
    if isinstance(value, float):
        return go_double(value)
    if value is None:
        return "NULL_VALUE"
    if isinstance(value, bytes):
        return f"[{' '.join(map(str, value[:_LONGEST]))}]"
    return "optional.none()" if isinstance(value, Optional) else str(value)
