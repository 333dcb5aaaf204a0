"""Strict decoding, as the API server does it before anything is validated (sigs.k8s.io/json, fieldValidation=Strict).

A document and a Go type go in; what comes out is the document as the type takes it, with every mistake reported, in the
API server's words. It stops at the first value of a wrong type; here all of them are told.

* Names are case-sensitive. A name that the type does not have is ``unknown field "PATH"``, one that stands twice in an
  object ``duplicate field "PATH"``, where PATH joins names by dots.
* null is the same as nothing: as an element of a list, or as the value of a label, it is the empty value of its type.
* A value that cannot be taken becomes ``TOLD``: it has been reported, and whoever reads it takes the strictest meaning.
* A number that is whole is an integer however it is written (``10.0``): kubectl makes ``10`` of it.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from gateway.base64_text import base64_mistake
from gateway.policies import wording
from gateway.policies.fields import Field
from gateway.policies.nodes import TOLD, Broken, Duplicate, Node, Value
from gateway.policies.schema import Bytes, Deferred, Flag, GoType, Integer, ListOf, MapOf, Struct, Text, Time
from gateway.policies.suggestions import did_you_mean
from gateway.policies.timestamps import timestamp_mistake

_BYTE: Final = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class GoPlace:
    """Where Go's decoder is: the struct it is in, and the names of the fields on the way there, without indexes."""

    struct: str = ""
    fields: tuple[str, ...] = ()


def decode(field: Field, kind: GoType, at: GoPlace) -> Field:
    """What stands in ``field``, as a value of ``kind``; mistakes are reported to its findings.

    ``at`` is the place that the messages about wrong types name.
    """
    return replace(field, node=None if field.node is None else _value(field, field.node, kind, at))


_EXPECTED: Final[Mapping[type[GoType], type]] = {Struct: dict, MapOf: dict, ListOf: list, Text: str, Flag: bool}
"""The Python type of the JSON value that a Go type takes, where that alone decides."""


def _value(field: Field, node: Node, kind: GoType, at: GoPlace) -> Node:
    value = node.value
    if value is None or isinstance(kind, Deferred):
        return node
    if isinstance(value, Broken):
        return _told(field, node, value.message)
    if not isinstance(value, _EXPECTED.get(type(kind), object)):
        return _misfit(field, node, kind, at)
    read = _READERS.get(type(kind))
    return node if read is None else read(field, node, kind, at)


def _struct(field: Field, node: Node, kind: Struct, at: GoPlace) -> Node:
    members: dict[str, Node] = {}
    for name, child in field.named_members():
        known = kind.fields.get(name) or kind.embedded.get(name)
        member = field.get(name)
        value = child.value
        if isinstance(value, Duplicate) and known is not None:
            members[name] = _told(member, child, wording.duplicate_field(field.strict_path(name)), value.hint)
        elif known is None and isinstance(value, Broken) and not isinstance(value, Duplicate):
            members[name] = _told(member, child, value.message)
        elif known is None:
            hint = did_you_mean(name, (*kind.fields, *kind.embedded))
            members[name] = _told(member, child, wording.unknown_field(field.strict_path(name)), hint)
        else:
            inner = (kind.inner,) if name in kind.embedded else ()
            there = GoPlace(struct=kind.name, fields=(*at.fields, *inner, name))
            members[name] = _value(member, child, known, there)
    return Node(members, node.line)


def _map(field: Field, node: Node, kind: MapOf, at: GoPlace) -> Node:
    members: dict[str, Node] = {}
    for name, child in field.named_members():
        if isinstance(child.value, Duplicate):
            message = wording.duplicate_field(field.strict_path(name))
            members[name] = _told(field.get(name), child, message, child.value.hint)
        else:
            members[name] = _element(field.get(name), child, kind.item, at)
    return Node(members, node.line)


def _list(field: Field, node: Node, kind: ListOf, at: GoPlace) -> Node:
    elements = node.value if isinstance(node.value, list) else []
    return Node(
        [_element(field.at([i], child), child, kind.item, at) for i, child in enumerate(elements)],
        node.line,
    )


def _element(field: Field, node: Node, kind: GoType, at: GoPlace) -> Node:
    return Node(_zero(kind), node.line) if node.value is None else _value(field, node, kind, at)


def _zero(kind: GoType) -> Value:
    """What Go has where null is an element: the type's zero value."""
    match kind:
        case Struct() | Deferred():
            return {}
        case Text():
            return ""
        case _:
            return None


def _bytes(field: Field, node: Node, kind: GoType, at: GoPlace) -> Node:
    if isinstance(node.value, str):
        mistake = base64_mistake(node.value)
        return node if mistake is None else _told(field, node, f"illegal base64 data at input byte {mistake}")
    if not isinstance(node.value, list):
        return _misfit(field, node, kind, at)
    numbers = []
    for index, element in enumerate(node.value):
        number = 0 if element.value is None else element.value
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < _BYTE:
            return _misfit(field.at([index], element), element, Integer(bits=8), at, "uint8")
        numbers.append(number)
    return Node(base64.b64encode(bytes(numbers)).decode(), node.line)


def _time(field: Field, node: Node, kind: GoType, at: GoPlace) -> Node:
    if not isinstance(node.value, str):
        return _misfit(field, node, kind, at)
    mistake = timestamp_mistake(node.value)
    return node if mistake is None else _told(field, node, mistake)


def _integer(field: Field, node: Node, kind: Integer, at: GoPlace) -> Node:
    value = node.value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << kind.bits - 1) <= value < 1 << kind.bits - 1:
        return _misfit(field, node, kind, at)
    return Node(value, node.line)


_READERS: Final[Mapping[type[GoType], Callable[[Field, Node, Any, GoPlace], Node]]] = {
    Struct: _struct,
    MapOf: _map,
    ListOf: _list,
    Bytes: _bytes,
    Time: _time,
    Integer: _integer,
}
"""What reads the others. Each is handed the type that it stands beside."""


def _misfit(field: Field, node: Node, kind: GoType, at: GoPlace, go: str = "") -> Node:
    found = _found(node.value, kind)
    into = f"struct field {at.struct}.{'.'.join(at.fields)}" if at.fields else "value"
    return _told(field, node, f"json: cannot unmarshal {found} into Go {into} of type {go or kind.go}")


def _found(value: Value, kind: GoType) -> str:
    """Go's word for a JSON value; a number is shown where an integer was expected."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {wording.show(value)}" if isinstance(kind, Integer) else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _told(field: Field, node: Node, message: str, hint: str = "") -> Node:
    field.refuse(message, hint)
    return Node(TOLD, node.line)
