"""The part of a value that a set of places shows.

It holds every declared value that exists, and every existing container on the way to one; what does not exist does not
appear. Members stand in the value's own order. Arrays keep their length and positions: an element that no place reaches
is ``{}``, ``[]`` or null, by its own kind. So each pointer means in the part what it means in the whole.
"""

from typing import Any, Final

from gateway.scopes.places import Places

NOTHING: Final = object()
"""What is shown of a value that does not appear at all: one that is no container, above a declared place."""


def shown_part(value: Any, places: Places) -> Any:
    """What ``places`` show of a decoded JSON value at most 256 levels deep; that takes one frame for each level.

    Returns:
        The value itself where all of it is shown; else a new one that shares what is shown whole. ``NOTHING`` for a
        value that is no container and is not in the set itself. (Of a container, no places show an empty one.)
    """
    if places.whole:
        return value
    named, every = places.named, places.every
    if type(value) is dict:
        members = {}
        for name, child in value.items():
            below = places.below(name) if name in named else every
            if below is None:
                continue
            shown = child if below.whole else shown_part(child, below)
            if shown is not NOTHING:
                members[name] = shown
        return members
    if type(value) is list:
        elements = []
        for index, child in enumerate(value):
            below = places.below(str(index)) if named else every
            shown = NOTHING if below is None else shown_part(child, below)
            elements.append(_hidden(child) if shown is NOTHING else shown)
        return elements
    return NOTHING


def _hidden(element: Any) -> Any:
    """What stands for an element of an array of which nothing is shown."""
    if type(element) is dict:
        return {}
    return [] if type(element) is list else None
