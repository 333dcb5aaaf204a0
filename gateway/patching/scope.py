"""Whether a change keeps to what a policy may write. Judged on the difference between before and after, whatever form
the worker chose: a replacement by the same value changes nothing, so it is not outside of anything.

* Granted places (``writes``, and what the worker claims): every value that comes or goes must lie in one. A container
  above one may come and go as far as this holds for all in it: who may write ``/metadata/labels/team`` may create
  ``/metadata/labels`` to that end. Empty containers on the way to a place are part of the way.
* An element is inserted or removed only where the place of every element is granted (``/spec/containers/*``, or
  wider), since those behind it change their index, and with it the place that would be granted.
* Protected places, where nothing was granted by name: no operation touches one, nor a container that holds one.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from gateway.patching.difference import Operation
from gateway.patching.draft import place
from gateway.patching.equality import Value
from gateway.patching.errors import shown
from gateway.patching.placement import Placed, placed
from gateway.patching.pointer import Pointer, format_pointer
from gateway.scopes import ANY, Places, Writes

_TOLD: Final = 5
"""Granted places that a message names: at 200 characters each, 1 KB."""


def out_of_scope(before: Value, operations: Sequence[Operation], writes: Writes, subresource: str) -> str | None:
    """Why a change may not be made, or None if it may.

    Args:
        before: the object, a decoded JSON value at most 256 levels deep.
        operations: its difference to the object after the change, as ``difference`` gives it.
        writes: what the policy may change.
        subresource: the request's; "" for none. What is protected depends on it.

    Returns:
        The first place that lies outside, and what is granted; never a value. See DESIGN.md, "Configuration": writes.
    """
    scopes = [
        (places, told)
        for places, told in ((writes.granted, "writes grants"), (writes.narrowed, "its worker claims to write"))
        if places is not None and not places.whole
    ]
    protected = writes.protected(subresource)
    if not scopes and protected is None:
        return None
    for each in placed(before, operations):
        for places, told in scopes:
            outside = _outside(each, places)
            if outside is not None:
                return f"the policy may not change {place(outside)}: {told} {_listed(places)}"
        touched = None if protected is None else _touched(each, protected)
        if touched is not None:
            return (
                f"the policy may not change {place(touched)}, which is protected unless it is granted by name: to allow"
                f" it, list the place in the policy's writes, with all others that it changes"
            )
    return None


def _outside(change: Placed, places: Places) -> Pointer | None:
    """The first place, as it is named when the operation is applied, at which something comes or goes outside."""
    if change.element:
        container = places.at(change.path[:-1])
        return None if container is not None and container.covers((ANY,)) else change.path
    at = places.at(change.path)
    for value in (change.found, change.value):
        outside = None if value is UNSET else _uncovered(value, at, change.path)
        if outside is not None:
            return outside
    return None


def _uncovered(value: Value, places: Places | None, at: Pointer) -> Pointer | None:
    """The first place in a value that comes or goes which does not lie in ``places``, as seen from there."""
    if places is None:
        return at
    if places.whole:
        return None
    if type(value) is dict:
        below = (_uncovered(child, places.below(name), (*at, name)) for name, child in value.items())
        return next((outside for outside in below if outside is not None), None)
    if type(value) is list:
        elements = places.below(ANY)
        return None if elements is not None and (elements.whole or not value) else at
    return at


def _touched(change: Placed, protected: Places) -> Pointer | None:
    """The protected place that an operation touches."""
    at = protected.at(change.path)
    if at is None:
        return None
    for value in (change.found, change.value):
        touched = None if value is UNSET else _held(value, at, change.path)
        if touched is not None:
            return touched
    return None


def _held(value: Value, protected: Places, at: Pointer) -> Pointer | None:
    """The first protected place that exists in a value."""
    if protected.whole:
        return at
    if type(value) is not dict:
        return None
    below = (
        _held(child, places, (*at, name))
        for name, child in value.items()
        if (places := protected.below(name)) is not None
    )
    return next((touched for touched in below if touched is not None), None)


def _listed(places: Places) -> str:
    """What is granted, shortened."""
    pointers = [shown(format_pointer(pointer)) for pointer in places.pointers]
    if not pointers:
        return "nothing"
    more = f" and {len(pointers) - _TOLD} more" if len(pointers) > _TOLD else ""
    return ", ".join(pointers[:_TOLD]) + more
