"""Whether a change keeps to what a policy may write. Judged on the difference between before and after, whatever form
the worker chose: a replacement by the same value changes nothing, so it is not outside of anything. (But for a merge
patch that repeats a value that was hidden: see ``merging.merged_unlike``.)

* Granted places (``writes``, and what the worker claims): every value that comes or goes must lie in one. A container
  above one may come and go as far as this holds for all in it: who may write ``/metadata/labels/team`` may create
  ``/metadata/labels`` to that end. Empty containers on the way to a place are part of the way.
* An element is inserted or removed only where the place of every element is granted (``/spec/containers/*``, or
  wider), since those behind it change their index, and with it the place that would be granted. Whether elements came
  and went is a guess of the difference; where all that differs, place by place, is granted, none did.
* Protected places, where nothing was granted by name: no operation touches one, nor a container that holds one. There
  null is as good as nothing: Go's types write ``creationTimestamp: null`` into an object that has none.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from gateway.patching.difference import Operation
from gateway.patching.draft import place
from gateway.patching.equality import Value, equal
from gateway.patching.errors import shown
from gateway.patching.parsing import parse_pointer
from gateway.patching.placement import Placed, placed
from gateway.scopes.pointer import Pointer, format_pointer
from gateway.scopes.pointer_set import ANY, PointerSet
from gateway.scopes.writes import Writes

_LISTED: Final = 5
"""Granted places that a message names: at 200 characters each, 1 KB."""

_GRANTED: Final = ("writes grants", "if it should, add the place to its writes, else correct its worker")
_CLAIMED: Final = ("its worker claims to write", "the worker must claim what it changes, or leave it alone")
"""What bounds a change, and what to do about a change beyond."""


def out_of_scope(
    before: Value, after: Value, operations: Sequence[Operation], writes: Writes, subresource: str
) -> str | None:
    """Why a change may not be made, or None if it may.

    Args:
        before: the object, a decoded JSON value at most 256 levels deep.
        after: the object after the change, likewise.
        operations: their difference, as ``difference`` gives it.
        writes: what the policy may change.
        subresource: the request's; "" for none. What is protected depends on it.

    Returns:
        The first place that lies outside, and what is granted; never a value. See DESIGN.md, "Configuration": writes.
    """
    scopes = [
        (places, *reported)
        for places, reported in ((writes.granted, _GRANTED), (writes.narrowed, _CLAIMED))
        if places is not None and not places.whole
    ]
    protected = writes.protected(subresource)
    if not scopes and (protected is None or not any(protected.at(parse_pointer(each.path)) for each in operations)):
        # Nearly always: then nobody needs to know what stood there.
        return None
    changes = list(placed(before, operations))
    for places, reported, remedy in scopes:
        outside = next((at for each in changes if (at := _outside(each, places)) is not None), None)
        if outside is not None and not _stays_in(before, after, places):
            return f"the policy may not change {place(outside)}: {reported} {_listed(places)}; {remedy}"
    touched = None
    if protected is not None:
        touched = next((at for each in changes if (at := _touched(each, protected)) is not None), None)
    if touched is None:
        return None
    return (
        f"the policy may not change {place(touched)}, which is protected unless it is granted by name: to allow it,"
        f" list the place in the policy's writes, with all others that it changes"
    )


def _outside(change: Placed, places: PointerSet) -> Pointer | None:
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


def _stays_in(before: Value, after: Value, places: PointerSet | None) -> bool:
    """Whether all that differs, place by place, lies in ``places``; msgspec.UNSET for what is not there."""
    if before is after or (places is not None and places.whole):
        return True
    if places is None:
        return before is not UNSET and after is not UNSET and equal(before, after)
    # Containers are not held for equal first: that would look at what is deep in them again at each level.
    if type(before) is dict and type(after) is dict:
        names = {**before, **after}
        return all(_stays_in(before.get(name, UNSET), after.get(name, UNSET), places.below(name)) for name in names)
    if type(before) is list and type(after) is list and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return all(_stays_in(one, other, places.below(str(index))) for index, (one, other) in pairs)
    if _is_simple(before) and _is_simple(after) and equal(before, after):
        return True
    return all(value is UNSET or _uncovered(value, places, ()) is None for value in (before, after))


def _is_simple(value: Value) -> bool:
    """Whether it is a value, and no container."""
    return value is not UNSET and type(value) is not dict and type(value) is not list


def _uncovered(value: Value, places: PointerSet | None, at: Pointer) -> Pointer | None:
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


def _touched(change: Placed, protected: PointerSet) -> Pointer | None:
    """The protected place that an operation touches."""
    at = protected.at(change.path)
    if at is None:
        return None
    for value in (change.found, change.value):
        touched = None if value is UNSET else _held(value, at, change.path)
        if touched is not None:
            return touched
    return None


def _held(value: Value, protected: PointerSet, at: Pointer) -> Pointer | None:
    """The first protected place that exists in a value, and is not null."""
    if protected.whole:
        return None if value is None else at
    if type(value) is not dict:
        return None
    below = (
        _held(child, places, (*at, name))
        for name, child in value.items()
        if (places := protected.below(name)) is not None
    )
    return next((touched for touched in below if touched is not None), None)


def _listed(places: PointerSet) -> str:
    """What is granted, shortened."""
    pointers = [shown(format_pointer(pointer)) for pointer in places.pointers]
    if not pointers:
        return "nothing"
    more = f" and {len(pointers) - _LISTED} more" if len(pointers) > _LISTED else ""
    return ", ".join(pointers[:_LISTED]) + more
