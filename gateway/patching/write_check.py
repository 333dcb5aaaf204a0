"""Whether a change stays within what a policy may write.

Only the difference between before and after counts, whatever the form of the change: a replacement by an equal value
changes nothing and is allowed. (The exception is a merge patch that repeats a hidden value: see
``merging.merged_unlike``.)

* Granted places (``writes``, and what the worker claims): every value that is added or removed must be in one. A
  container above one may be added or removed if this holds for everything in it: a policy that may write
  ``/metadata/labels/team`` may create ``/metadata/labels`` for it. Empty containers on the path to a granted place may
  be created too.
* An element may be inserted or removed only if the places of all elements are granted (``/spec/containers/*``, or
  wider), because the elements behind it change their index, and so their place. Insertions and removals are guesses of
  the difference; if everything that differs, place by place, is granted, there are none.
* Protected places, which must be granted by name: no operation may touch one, nor a container of one. There null counts
  as absent: Go's types write ``creationTimestamp: null`` into an object without one.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from gateway.patching.difference import Operation
from gateway.patching.draft import place
from gateway.patching.equality import Value, equal
from gateway.patching.errors import quoted
from gateway.patching.parsing import parse_pointer
from gateway.patching.placement import Placed, placed
from gateway.patching.steps import OutOfStepsError, Steps
from gateway.scopes.pointer import Pointer, format_pointer
from gateway.scopes.pointer_set import ANY, PointerSet
from gateway.scopes.writes import Writes

_MEMBERS: Final = 4
"""Members or elements that are compared in a step."""

_LISTED: Final = 5
"""Granted places that a message lists: at 200 characters each, 1 KB."""

_GRANTED: Final = ("writes grants", "if it should, add the place to its writes, else correct its worker")
_CLAIMED: Final = ("its worker claims to write", "the worker must claim what it changes, or leave it alone")
"""What bounds a change, and what to do about a change outside of it."""


def out_of_scope(
    before: Value, after: Value, operations: Sequence[Operation], writes: Writes, subresource: str
) -> str | None:
    """Why a change may not be made, or None if it may.

    Args:
        before: the object, a decoded JSON value at most 256 levels deep.
        after: the object after the change, likewise.
        operations: their difference, as ``difference`` returns it.
        writes: what the policy may change.
        subresource: the request's; "" for none. The protected places depend on it.

    Returns:
        The first place outside, and what is granted; never a value. Or that the change is too large to be compared.
    """
    try:
        return _out_of_scope(before, after, operations, writes, subresource)
    except OutOfStepsError:
        return (
            "the change is too large to be compared with what the policy may write: change less, by a JSON Patch, or"
            " grant it everything"
        )


def _out_of_scope(
    before: Value, after: Value, operations: Sequence[Operation], writes: Writes, subresource: str
) -> str | None:
    steps = Steps()
    scopes = [
        (places, *reported)
        for places, reported in ((writes.granted, _GRANTED), (writes.narrowed, _CLAIMED))
        if places is not None and not places.whole
    ]
    protected = writes.protected(subresource)
    if not scopes and (protected is None or not any(protected.at(parse_pointer(each.path)) for each in operations)):
        # Nearly always true: then the old values are not needed.
        return None
    changes = list(placed(before, operations))
    for places, reported, remedy in scopes:
        outside = next((at for each in changes if (at := _outside(each, places, steps)) is not None), None)
        if outside is not None and not _stays_in(before, after, places, steps):
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


def _outside(change: Placed, places: PointerSet, steps: Steps) -> Pointer | None:
    """The first place outside at which a value is added or removed, as it is when the operation is applied."""
    if change.element:
        container = places.at(change.path[:-1])
        return None if container is not None and container.covers((ANY,)) else change.path
    at = places.at(change.path)
    for value in (change.found, change.value):
        outside = None if value is UNSET else _uncovered(value, at, change.path, steps)
        if outside is not None:
            return outside
    return None


def _stays_in(before: Value, after: Value, places: PointerSet | None, steps: Steps) -> bool:
    """Whether everything that differs, place by place, is in ``places``; msgspec.UNSET for an absent value."""
    if before is after or (places is not None and places.whole):
        return True
    if places is None:
        return before is not UNSET and after is not UNSET and equal(before, after)
    # Containers are not compared first: that would compare their deeper values again at each level.
    if type(before) is dict and type(after) is dict:
        steps.take(1 + (len(before) + len(after)) // _MEMBERS)
        names = {**before, **after}
        return all(
            _stays_in(before.get(name, UNSET), after.get(name, UNSET), places.below(name), steps) for name in names
        )
    if type(before) is list and type(after) is list and len(before) == len(after):
        steps.take(1 + len(before) // 2)
        pairs = enumerate(zip(before, after, strict=True))
        return all(_stays_in(one, other, places.below(str(index)), steps) for index, (one, other) in pairs)
    if _is_simple(before) and _is_simple(after) and equal(before, after):
        return True
    return all(value is UNSET or _uncovered(value, places, (), steps) is None for value in (before, after))


def _is_simple(value: Value) -> bool:
    """Whether it is a value that is no container."""
    return value is not UNSET and type(value) is not dict and type(value) is not list


def _uncovered(value: Value, places: PointerSet | None, at: Pointer, steps: Steps) -> Pointer | None:
    """The first place, relative to an added or removed value, that is not in ``places``."""
    if places is None:
        return at
    if places.whole:
        return None
    if type(value) is dict:
        steps.take(1 + len(value))
        below = (_uncovered(child, places.below(name), (*at, name), steps) for name, child in value.items())
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
    """The granted places, shortened."""
    pointers = [quoted(format_pointer(pointer)) for pointer in places.pointers]
    if not pointers:
        return "nothing"
    more = f" and {len(pointers) - _LISTED} more" if len(pointers) > _LISTED else ""
    return ", ".join(pointers[:_LISTED]) + more
