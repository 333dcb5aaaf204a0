"""Converts JSON settings to an author's type, and reports each error with its own JSON Pointer.

msgspec stops at the first error, and does not report the key of a mapping. So when a conversion fails, each member of a
struct or dataclass, value of a mapping and element of a list is converted alone. Its errors get its own pointer; errors
of the whole (a missing member, an unknown one, the author's own check) get the whole's pointer.
"""

import dataclasses
import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from admission_worker.errors import SettingsError
from admission_worker.pointers import pointer

_AT = re.compile(r" - at `(?:key` in `)?\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]")

DEEPEST = 64
"""Levels of settings that are searched for errors; below, only msgspec's first error is reported."""

_Place = tuple[str | int, ...]


def errors_of(value: Any, shape: Any, place: _Place = ()) -> Iterator[SettingsError]:
    """All errors in the conversion of a decoded JSON value to a ``shape``.

    Args:
        value: the result of ``msgspec.json.decode`` without a type.
        shape: a type that msgspec supports.
        place: the value's place in the settings.

    Yields:
        Each error; none if the value converts.
    """
    try:
        msgspec.convert(value, shape, str_keys=True)
    except msgspec.ValidationError as error:
        whole = str(error)
    else:
        return
    parts = () if len(place) >= DEEPEST else tuple(_errors_of_parts(value, _bare(shape), place))
    yield from parts or (_with_pointer(whole, place),)


def unknown_members(value: Any, shape: Any) -> tuple[str, ...]:
    """The members of valid settings that their type has no field for, and so ignores."""
    members = _fields(_bare(shape))
    if members is None or not isinstance(value, Mapping):
        return ()
    return tuple(name for name in value if name not in members)


def _errors_of_parts(value: Any, shape: Any, place: _Place) -> Iterator[SettingsError]:
    """The errors of a container's parts, each at its own place, and those that only the container's type shows."""
    fields = _fields(shape)
    if fields is not None and isinstance(value, Mapping):
        yield from _errors_of_members(value, shape, fields, place)
        return
    origin, arguments = typing.get_origin(shape), typing.get_args(shape)
    if origin is dict and isinstance(value, Mapping):
        for key, item in value.items():
            yield from errors_of(item, arguments[1], (*place, key))
    elif (origin in {list, set, frozenset} or (origin is tuple and arguments[-1] is Ellipsis)) and isinstance(
        value, list
    ):
        for index, item in enumerate(value):
            yield from errors_of(item, arguments[0], (*place, index))


def _errors_of_members(
    value: Mapping[str, Any], shape: Any, fields: Mapping[str, tuple[Any, bool]], place: _Place
) -> Iterator[SettingsError]:
    for name, (kind, required) in fields.items():
        if name in value:
            yield from errors_of(value[name], kind, (*place, name))
        elif required:
            yield SettingsError(pointer(*place, name), "Required value")
    if getattr(getattr(shape, "__struct_config__", None), "forbid_unknown_fields", False):
        for name in value:
            if name not in fields:
                known = ", ".join(sorted(fields)) or "none"
                yield SettingsError(pointer(*place, name), f"Unknown member; known are: {known}")


def _fields(shape: Any) -> dict[str, tuple[Any, bool]] | None:
    """The members of a struct or dataclass by their name in JSON: type, and whether it is required. None: neither."""
    if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        if shape.__struct_config__.tag is not None or shape.__struct_config__.array_like:
            return None  # its JSON differs from its fields: report msgspec's own error
        return {field.encode_name: (field.type, field.required) for field in msgspec.structs.fields(shape)}
    if isinstance(shape, type) and dataclasses.is_dataclass(shape):
        kinds = typing.get_type_hints(shape, include_extras=True)
        missing = dataclasses.MISSING
        return {
            field.name: (kinds[field.name], field.default is missing and field.default_factory is missing)
            for field in dataclasses.fields(shape)
            if field.init
        }
    return None


def _bare(shape: Any) -> Any:
    """The type without ``Annotated`` and ``None``; other unions stay."""
    while typing.get_origin(shape) is typing.Annotated:
        shape = typing.get_args(shape)[0]
    if typing.get_origin(shape) in {typing.Union, types.UnionType}:
        others = [kind for kind in typing.get_args(shape) if kind is not type(None)]
        return _bare(others[0]) if len(others) == 1 else shape
    return shape


def _with_pointer(message: str, place: _Place) -> SettingsError:
    """Msgspec's error, with the path at its end as a pointer, as far as the path is known."""
    found = _AT.search(message)
    if found is None:
        return SettingsError(pointer(*place), message)
    path, steps, end = found["path"], list(place), 0
    while step := _STEP.match(path, end):  # stops at "[...]", which is an unknown key of a mapping
        steps.append(step["name"] or int(step["index"]))
        end = step.end()
    return SettingsError(pointer(*steps), message[: found.start()])
