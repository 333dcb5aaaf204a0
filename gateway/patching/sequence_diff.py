"""The difference between the first and the last of several objects, each made from the one before by known operations.

``difference`` has to guess which element of an array became which. Here it is known: the ownership tree has the
elements that stayed, and their indexes. So a container whose image one policy changed, and in front of which another
policy inserted one, is still the same container; and a removed container is not taken for one that another policy
added.

Equal elements at both ends of an array, and elements that were removed and added again between two elements that
stayed, are no difference. An array that was replaced as a whole has no elements that stayed: there ``difference`` is
used.

The work is bounded (see ``steps``), as that of ``difference`` is.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from gateway.patching.alignment import Aligner
from gateway.patching.difference import difference
from gateway.patching.equality import Value, equal
from gateway.patching.ownership_tree import ArrayOwnership, OwnershipNode
from gateway.patching.placement import Placed, placed
from gateway.patching.steps import OutOfStepsError, Steps, kept
from gateway.scopes.pointer import Pointer

_MEMBERS: Final = 4
"""Members or elements that are compared in a step, if they are shared."""

_CONTAINER: Final = 6
"""Steps of a container, besides those for its members or elements."""

_OPERATION: Final = 4
"""Steps of an operation, besides one for each token of its path."""


def sequence_diff(
    before: Value, after: Value, owners: OwnershipNode | None, steps: Steps | None = None
) -> Iterator[Placed]:
    """The operations that, applied in this order, turn ``before`` into ``after``.

    ``owners`` has the writes between the two. Both must be at most 256 levels deep. ``steps`` bound the work; None:
    those of one comparison.
    """
    try:
        return iter(_bounded(before, after, owners, ((), ()), steps or Steps()))
    except OutOfStepsError:
        return iter([Placed(path=(), old=(), found=before, value=after, element=False)])


def _bounded(
    before: Value, after: Value, owners: OwnershipNode | None, at: tuple[Pointer, Pointer], steps: Steps
) -> Iterable[Placed]:
    """The same below one place; if comparing two containers takes too many steps, a replacement of the one before."""
    kind = type(before)
    if kind is not type(after) or (kind is not dict and kind is not list):
        return _compared(before, after, owners, at, steps)
    floor = steps.begin(kept(len(at[1])))
    try:
        found = list(_compared(before, after, owners, at, steps))
    except OutOfStepsError:
        steps.end(floor)
        return () if equal(before, after) else (_replaced(before, after, at, steps),)
    steps.end(floor)
    return found


def _replaced(before: Value, after: Value, at: tuple[Pointer, Pointer], steps: Steps) -> Placed:
    old, path = at
    steps.take(_OPERATION + len(path))
    return Placed(path=path, old=old, found=before, value=after, element=False)


def _compared(
    before: Value, after: Value, owners: OwnershipNode | None, at: tuple[Pointer, Pointer], steps: Steps
) -> Iterator[Placed]:
    if before is after:
        return
    old, path = at
    if type(before) is dict and type(after) is dict:
        steps.take(_CONTAINER + (len(before) + len(after)) // _MEMBERS)
        for name in (*before, *[name for name in after if name not in before]):
            one, other = before.get(name, UNSET), after.get(name, UNSET)
            if one is not other:
                below = None if owners is None else owners.child(name)
                yield from _bounded(one, other, below, ((*old, name), (*path, name)), steps)
    elif type(before) is list and type(after) is list:
        elements = None if owners is None else owners.elements
        if elements is not None and elements.inherited:
            yield from _followed(before, after, elements, at, steps)
        else:
            for change in placed(before, difference(before, after, steps)):
                yield replace(change, old=(*old, *change.old), path=(*path, *change.path))
    elif before is UNSET or after is UNSET or not equal(before, after):
        yield _replaced(before, after, at, steps)


def _followed(
    before: list[Value], after: list[Value], elements: ArrayOwnership, at: tuple[Pointer, Pointer], steps: Steps
) -> Iterator[Placed]:
    """The difference between two arrays in which some elements are known to have stayed."""
    steps.take(_CONTAINER + (len(before) + len(after)) // _MEMBERS)
    old, path = at
    start, end = _equal_ends(before, after)
    last = (len(before) - end, len(after) - end)
    # An element that stayed may be equal by chance to a different one at an end.
    stayed = [each for each in elements.survivors(start, last[1]) if start <= each[0] < last[0]]
    row = column = start
    for next_row, next_column, owners in (*stayed, (*last, None)):
        for index, to, found, value in _between(before[row:next_row], after[column:next_column], steps):
            steps.take(_OPERATION + len(path))
            places = (*old, str(row + index)), (*path, str(column + to))
            yield Placed(old=places[0], path=places[1], found=found, value=value, element=True)
        if owners is not None and before[next_row] is not after[next_column]:
            places = (*old, str(next_row)), (*path, str(next_column))
            yield from _bounded(before[next_row], after[next_column], owners, places, steps)
        row, column = next_row + 1, next_column + 1


def _equal_ends(before: list[Value], after: list[Value]) -> tuple[int, int]:
    """How many elements are equal at the start, and how many of the others at the end."""
    shorter = min(len(before), len(after))
    start = end = 0
    while start < shorter and equal(before[start], after[start]):
        start += 1
    while end < shorter - start and equal(before[-1 - end], after[-1 - end]):
        end += 1
    return start, end


def _between(rows: list[Value], columns: list[Value], steps: Steps) -> Iterator[tuple[int, int, Value, Value]]:
    """Removals and additions in a stretch of which no element is known to have stayed.

    Yields the index before, the index when it is done, what was found there, and what is there then.
    """
    row = at = 0
    for one, other in Aligner(steps).align(rows, columns) if rows or columns else ():
        old, new = UNSET if one is None else rows[one], UNSET if other is None else columns[other]
        if old is not UNSET and new is not UNSET and equal(old, new):
            row, at = row + 1, at + 1
            continue
        if old is not UNSET:
            yield row, at, old, UNSET
            row += 1
        if new is not UNSET:
            yield row, at, UNSET, new
            at += 1
