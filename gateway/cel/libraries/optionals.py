"""Optionals (cel-go's cel/library.go), and the maps that transformMap makes (ext/comprehensions.go).

``or`` and ``orValue`` evaluate their argument only if they need it: they are part of the plan, as are the maps.
"""

from typing import Any, Final

from gateway.cel.libraries.overloads import Library, function, member
from gateway.cel.values.containers import NONE, Optional, is_map
from gateway.cel.values.display import display
from gateway.cel.values.durations import Duration
from gateway.cel.values.faults import Fault
from gateway.cel.values.numbers import adapted, is_number
from gateway.cel.values.reflection import Opaque
from gateway.cel.values.timestamps import Timestamp

_ZERO_TIME: Final = -62_135_596_800
"""The first second of the year 1 is Go's zero time."""


def is_zero(value: Any) -> bool:
    """Whether a value is the zero value of its kind: null, false, 0, "", an empty list or map, no time at all."""
    if value is None or value is False or (is_number(value) and value == 0):
        return True
    if isinstance(value, str | bytes | list) or is_map(value):
        return len(value) == 0
    if isinstance(value, Timestamp):
        return value.seconds == _ZERO_TIME and value.nanos == 0
    return isinstance(value, Duration) and value.nanoseconds == 0


def _of_non_zero(value: Any) -> Optional:
    if not isinstance(value, Opaque | Optional) and is_zero(value):
        return NONE
    return Optional(value)


def dereference(optional: Optional) -> Any:
    """``o.value()``."""
    if not optional.present:
        raise Fault("optional.none() dereference")
    return optional.value


def _unwrap(values: list[Any]) -> list[Any]:
    for value in values:
        if not isinstance(value, Optional):
            raise Fault(f"value {display(value)} is not optional")
    return [value.value for value in values if value.present]


def _first(values: list[Any]) -> Optional:
    return Optional(adapted(values[0])) if values else NONE


def _last(values: list[Any]) -> Optional:
    return Optional(adapted(values[-1])) if values else NONE


OPTIONALS: Final = Library(
    overloads=(
        function("optional_of", "optional.of(V) -> optional_type(V)", Optional),
        function("optional_ofNonZeroValue", "optional.ofNonZeroValue(V) -> optional_type(V)", _of_non_zero),
        function("optional_none", "optional.none() -> optional_type(V)", lambda: NONE),
        member("optional_value", "optional_type(V).value() -> V", dereference),
        member("optional_hasValue", "optional_type(V).hasValue() -> bool", lambda optional: optional.present),
        member("optional_or_optional", "optional_type(V).or(optional_type(V)) -> optional_type(V)"),
        member("optional_orValue_value", "optional_type(V).orValue(V) -> V"),
    ),
)

EXTENDED_OPTIONALS: Final = Library(
    overloads=(
        function("optional_unwrap", "optional.unwrap(list(optional_type(V))) -> list(V)", _unwrap),
        member("optional_unwrapOpt", "list(optional_type(V)).unwrapOpt() -> list(V)", _unwrap),
        member("list_first", "list(V).first() -> optional_type(V)", _first),
        member("list_last", "list(V).last() -> optional_type(V)", _last),
    ),
)
"""Version 2 of cel-go's library of optionals."""

MAP_INSERTS: Final = Library(
    overloads=(
        function("@mapInsert_map_key_value", "cel.@mapInsert(map(K, V), K, V) -> map(K, V)"),
        function("@mapInsert_map_map", "cel.@mapInsert(map(K, V), map(K, V)) -> map(K, V)"),
    ),
)
