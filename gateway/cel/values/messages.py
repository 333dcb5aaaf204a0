"""Protocol buffers' well-known types, which CEL has as messages: ``google.protobuf.Timestamp{seconds: 1}``.

Kubernetes' environment has them, and so has this one; each is the value that it stands for. (Value, Any and the
like, which stand for more than one kind, are left out.)
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from gateway.cel.values.containers import is_map, items
from gateway.cel.values.durations import NANOSECONDS, duration
from gateway.cel.values.equality import Effort
from gateway.cel.values.faults import Fault
from gateway.cel.values.numbers import Uint
from gateway.cel.values.timestamps import timestamp
from gateway.cel.values.types import Type, written

_PREFIX: Final = "google.protobuf."


class WellKnown(msgspec.Struct, frozen=True):
    """What such a message is, what members it has, and how it is made of those that are given."""

    type: Type
    members: Mapping[str, Type]
    make: Callable[[Mapping[str, Any], Effort], Any]


def _total(members: Mapping[str, Any]) -> int:
    return int(members.get("seconds", 0) * NANOSECONDS + members.get("nanos", 0))


def _timed(kind: str, make: Callable[[int], Any]) -> WellKnown:
    members = {"seconds": written("int"), "nanos": written("int")}
    return WellKnown(written(kind), members, lambda given, _effort: make(_total(given)))


def _wrapper(kind: str, default: Any, limits: tuple[int, int] | None = None) -> WellKnown:
    def make(members: Mapping[str, Any], _effort: Effort) -> Any:
        value = members.get("value", default)
        if limits is not None and not limits[0] <= value <= limits[1]:
            raise Fault("integer overflow" if kind == "int" else "unsigned integer overflow")
        return value

    return WellKnown(written(kind), {"value": written(kind)}, make)


def _as_json(value: Any, effort: Effort) -> Any:
    """A value as it is in JSON, where all numbers are doubles."""
    if isinstance(value, list):
        effort(1 + len(value))
        return [_as_json(element, effort) for element in value]
    if is_map(value):
        effort(1 + len(value))
        return {key: _as_json(found, effort) for key, found in items(value)}
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


_MESSAGES: Final = {
    "Timestamp": _timed("timestamp", lambda total: timestamp(total, 0)),
    "Duration": _timed("duration", duration),
    "BoolValue": _wrapper("bool", default=False),
    "BytesValue": _wrapper("bytes", b""),
    "DoubleValue": _wrapper("double", 0.0),
    "FloatValue": _wrapper("double", 0.0),
    "Int32Value": _wrapper("int", 0, (-(2**31), 2**31 - 1)),
    "Int64Value": _wrapper("int", 0),
    "StringValue": _wrapper("string", ""),
    "UInt32Value": _wrapper("uint", Uint(0), (0, 2**32 - 1)),
    "UInt64Value": _wrapper("uint", Uint(0)),
    "Struct": WellKnown(
        written("map(string, dyn)"),
        {"fields": written("map(string, dyn)")},
        lambda members, effort: _as_json(members.get("fields", {}), effort),
    ),
    "ListValue": WellKnown(
        written("list(dyn)"),
        {"values": written("list(dyn)")},
        lambda members, effort: _as_json(members.get("values", []), effort),
    ),
}

WELL_KNOWN: Final[Mapping[str, WellKnown]] = {_PREFIX + name: found for name, found in _MESSAGES.items()}
"""By name."""
