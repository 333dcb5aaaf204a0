"""The part of a value that a set of places shows.

It holds every declared value that exists, and every existing container on the way to one; what does not exist does not
appear. Members stand in the value's own order. Arrays keep their length and positions: an element that no place reaches
is ``{}``, ``[]`` or null, by its own kind. So each pointer means in the part what it means in the whole.
"""

from typing import Any, Final

from gateway.scopes.pointer_set import ANY, PointerSet

NOTHING: Final = object()
"""What is shown of a value that does not appear at all: one that is no container, above a declared place."""


_CONTAINERS: Final = (dict, list)

_Unfinished = list[tuple[Any, Any, PointerSet]]
"""Containers, each with the part of it that is to be filled, and what is shown of it."""


def shown_part(value: Any, places: PointerSet) -> Any:
    """What ``places`` show of a decoded JSON value, however deep.

    Returns:
        The value itself where all of it is shown; else a new one that shares what is shown whole. ``NOTHING`` for a
        value that is no container and is not in the set itself. (Of a container, no places show an empty one.)
    """
    if places.whole:
        return value
    if type(value) not in _CONTAINERS:
        return NOTHING
    part = type(value)()
    unfinished: _Unfinished = [(value, part, places)]
    while unfinished:
        container, shown, below = unfinished.pop()
        fill = _fill_object if type(container) is dict else _fill_array
        unfinished += fill(container, shown, below)
    return part


def _fill_object(value: dict[str, Any], shown: dict[str, Any], places: PointerSet) -> _Unfinished:
    """Put into ``shown`` the members that appear; those that are empty containers so far are unfinished."""
    unfinished: _Unfinished = []
    named, known = places.named, places.known
    every = known[ANY] if ANY in known else places.every  # noqa: SIM401 - a known value is not looked up
    for name, child in value.items():
        below = every
        if name in named:
            below = known[name] if name in known else places.below(name)
        if below is None:
            continue
        if below.whole:
            shown[name] = child
        elif type(child) in _CONTAINERS:
            part = shown[name] = type(child)()
            unfinished.append((child, part, below))
    return unfinished


def _fill_array(value: list[Any], shown: list[Any], places: PointerSet) -> _Unfinished:
    """The same for an array, each of whose elements keeps its place."""
    unfinished: _Unfinished = []
    named, known = places.named, places.known
    every = known[ANY] if ANY in known else places.every  # noqa: SIM401 - a known value is not looked up
    for index, child in enumerate(value):
        below = places.below(str(index)) if named else every
        if below is not None and below.whole:
            shown.append(child)
            continue
        # Nothing of it is shown, or not yet.
        part = type(child)() if type(child) in _CONTAINERS else None
        shown.append(part)
        if part is not None and below is not None:
            unfinished.append((child, part, below))
    return unfinished
