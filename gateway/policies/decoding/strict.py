"""Strict decoding, as the API server does it before anything is validated (sigs.k8s.io/json, fieldValidation=Strict).

A document and a Go type go in; what comes out is the document as the type takes it, with every error reported, in the
API server's words. The API server stops at the first value of a wrong type; here all are reported.

* Names are case-sensitive. A name that the type does not have is ``unknown field "PATH"``, one that stands twice in an
  object ``duplicate field "PATH"``, where PATH joins names by dots.
* null is the same as nothing: as an element of a list, or as the value of a label, it is the empty value of its type.
* A value that cannot be taken becomes ``REPORTED``: it has been reported; its reader takes the strictest meaning.
* A number that is whole is an integer however it is written (``10.0``): kubectl makes ``10`` of it.
"""

import base64
from typing import Any

from msgspec.structs import replace

from gateway.gotypes.places import DecodeError, Place
from gateway.gotypes.types import Anything, Deferred, GoType, ListOf, MapOf, Struct
from gateway.gotypes.values import Fraction
from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.decoding.nodes import REPORTED, Broken, Duplicate, Node, Value
from gateway.policies.suggestions import did_you_mean


def decode(field: Field, kind: GoType, at: Place) -> Field:
    """What stands in ``field``, as a value of ``kind``; errors are reported to its findings.

    ``at`` is the place that the messages about wrong types name.
    """
    return replace(field, node=None if field.node is None else _value(field, field.node, kind, at))


def _value(field: Field, node: Node, kind: GoType, at: Place) -> Node:
    value = node.value
    if isinstance(value, Broken) and not isinstance(kind, Deferred):
        return _reported(field, node, value.message)
    if value is None or isinstance(kind, Anything):
        return node
    if isinstance(kind, Struct) and isinstance(value, dict):
        return _struct(field, node, kind, at)
    if isinstance(kind, MapOf) and isinstance(value, dict):
        return _map(field, node, kind, at)
    if isinstance(kind, ListOf) and isinstance(value, list):
        elements = [_element(field.at([i], child), child, kind.item, at) for i, child in enumerate(value)]
        return Node(elements, node.line)
    return _plain_value(field, node, kind, at)


def _plain_value(field: Field, node: Node, kind: GoType, at: Place) -> Node:
    """What has no parts, or a value of another type than is expected."""
    try:
        read = kind.read(_plain(node.value), at)
    except DecodeError as error:
        return _reported(field, node, error.go)
    return Node(base64.b64encode(read).decode() if isinstance(read, bytes) else read, node.line)


def _plain(value: Value) -> Any:
    """What a type reads that has no parts: a whole number is an integer, any other one has its text."""
    if isinstance(value, list):
        return [_plain(element.value) for element in value]
    if isinstance(value, dict | Broken):
        return {}
    if isinstance(value, float):
        return int(value) if value.is_integer() else Fraction(field_errors.show(value))
    return value


def _struct(field: Field, node: Node, kind: Struct, at: Place) -> Node:
    members: dict[str, Node] = {}
    for name, child in field.named_members():
        known = kind.member(name, at)
        member = field.get(name)
        value = child.value
        if isinstance(value, Duplicate) and known is not None:
            members[name] = _reported(member, child, field_errors.duplicate_field(field.strict_path(name)), value.hint)
        elif known is None and isinstance(value, Broken) and not isinstance(value, Duplicate):
            members[name] = _reported(member, child, value.message)
        elif known is None:
            hint = did_you_mean(name, (*kind.fields, *kind.embedded))
            members[name] = _reported(member, child, field_errors.unknown_field(field.strict_path(name)), hint)
        else:
            members[name] = _value(member, child, *known)
    return Node(members, node.line)


def _map(field: Field, node: Node, kind: MapOf, at: Place) -> Node:
    members: dict[str, Node] = {}
    for name, child in field.named_members():
        if isinstance(child.value, Duplicate):
            message = field_errors.duplicate_field(field.strict_path(name))
            members[name] = _reported(field.get(name), child, message, child.value.hint)
        else:
            members[name] = _element(field.get(name), child, kind.item, at)
    return Node(members, node.line)


def _element(field: Field, node: Node, kind: GoType, at: Place) -> Node:
    return Node(kind.zero, node.line) if node.value is None else _value(field, node, kind, at)


def _reported(field: Field, node: Node, message: str, hint: str = "") -> Node:
    field.refuse(message, hint)
    return Node(REPORTED, node.line)
