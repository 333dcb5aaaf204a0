"""JSON settings into an author's type, and every mistake in them at its own place.

msgspec stops at the first mistake and does not say under which key of a mapping it was found. So when a conversion
fails, the value is walked beside its type: members of a struct or dataclass, values of a mapping, elements of a list,
each converted alone. What fails alone is reported at its own pointer; what fails only as a whole (a missing member, an
unknown one, a check of the author's own) is reported where the whole stands.
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
"""Levels of settings that are walked in search of mistakes; below, msgspec's own first error stands for the rest."""

_Place = tuple[str | int, ...]


def errors_of(value: Any, shape: Any, place: _Place = ()) -> Iterator[SettingsError]:
    """All that keeps a parsed JSON value from being a ``shape``.

    Args:
        value: what ``msgspec.json.decode`` gives without a type.
        shape: a type that msgspec knows.
        place: where the value stands in the settings.

    Yields:
        One error for each mistake; none if the value converts.
    """
    try:
        msgspec.convert(value, shape, str_keys=True)
    except msgspec.ValidationError as error:
        whole = str(error)
    else:
        return
    parts = () if len(place) >= DEEPEST else tuple(_errors_of_parts(value, _bare(shape), place))
    yield from parts or (_as_it_is_said(whole, place),)


def unknown_members(value: Any, shape: Any) -> tuple[str, ...]:
    """The members of an accepted settings object that its type has no field for, and so ignores."""
    members = _fields(_bare(shape))
    if members is None or not isinstance(value, Mapping):
        return ()
    return tuple(name for name in value if name not in members)


def _errors_of_parts(value: Any, shape: Any, place: _Place) -> Iterator[SettingsError]:
    """The errors of a container's parts, each at its own place; and what only the container's type can tell."""
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
            return None  # its JSON holds more, or less, than its fields: what msgspec says has to do
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
    """The type without its Annotated and without ``None`` beside it; a union of more stays one."""
    while typing.get_origin(shape) is typing.Annotated:
        shape = typing.get_args(shape)[0]
    if typing.get_origin(shape) in {typing.Union, types.UnionType}:
        others = [kind for kind in typing.get_args(shape) if kind is not type(None)]
        return _bare(others[0]) if len(others) == 1 else shape
    return shape


def _as_it_is_said(message: str, place: _Place) -> SettingsError:
    """What msgspec says, with the path that it ends with made a pointer as far as it says which."""
    found = _AT.search(message)
    if found is None:
        return SettingsError(pointer(*place), message)
    path, steps, end = found["path"], list(place), 0
    while step := _STEP.match(path, end):  # stops at "[...]", which is some key of a mapping
        steps.append(step["name"] or int(step["index"]))
        end = step.end()
    return SettingsError(pointer(*steps), message[: found.start()])
