"""The difference between the first and the last of several objects, each made from the one before by known operations.

``difference`` has to guess which element of an array became which. Here it is known: the ownership tree has the
elements that stayed, and their indexes. So a container whose image one policy changed, and in front of which another
policy inserted one, is still the same container; and a removed container is not taken for one that another policy
added.

Equal elements at both ends of an array, and elements that were removed and added again between two elements that
stayed, are no difference. An array that was replaced as a whole has no elements that stayed: there ``difference`` is
used.
"""

from collections.abc import Iterator

from msgspec import UNSET
from msgspec.structs import replace

from gateway.patching.alignment import Aligner
from gateway.patching.difference import difference
from gateway.patching.equality import Value, equal
from gateway.patching.ownership_tree import ArrayOwnership, OwnershipNode
from gateway.patching.placement import Placed, placed
from gateway.scopes.pointer import Pointer


def sequence_diff(before: Value, after: Value, owners: OwnershipNode | None) -> Iterator[Placed]:
    """The operations that, applied in this order, turn ``before`` into ``after``.

    ``owners`` has the writes between the two. Both must be at most 256 levels deep.
    """
    return _compared(before, after, owners, (), ())


def _compared(
    before: Value, after: Value, owners: OwnershipNode | None, old: Pointer, path: Pointer
) -> Iterator[Placed]:
    if before is after:
        return
    if type(before) is dict and type(after) is dict:
        for name in (*before, *[name for name in after if name not in before]):
            one, other = before.get(name, UNSET), after.get(name, UNSET)
            if one is not other:
                below = None if owners is None else owners.child(name)
                yield from _compared(one, other, below, (*old, name), (*path, name))
    elif type(before) is list and type(after) is list:
        elements = None if owners is None else owners.elements
        if elements is not None and elements.inherited:
            yield from _followed(before, after, elements, old, path)
        else:
            for change in placed(before, difference(before, after)):
                yield replace(change, old=(*old, *change.old), path=(*path, *change.path))
    elif before is UNSET or after is UNSET or not equal(before, after):
        yield Placed(path=path, old=old, found=before, value=after, element=False)


def _followed(
    before: list[Value], after: list[Value], elements: ArrayOwnership, old: Pointer, path: Pointer
) -> Iterator[Placed]:
    """The difference between two arrays in which some elements are known to have stayed."""
    start, end = _equal_ends(before, after)
    last = (len(before) - end, len(after) - end)
    # An element that stayed may be equal by chance to a different one at an end.
    stayed = [each for each in elements.survivors(start, last[1]) if start <= each[0] < last[0]]
    row = column = start
    for next_row, next_column, owners in (*stayed, (*last, None)):
        for index, at, found, value in _between(before[row:next_row], after[column:next_column]):
            places = (*old, str(row + index)), (*path, str(column + at))
            yield Placed(old=places[0], path=places[1], found=found, value=value, element=True)
        if owners is not None and before[next_row] is not after[next_column]:
            places = (*old, str(next_row)), (*path, str(next_column))
            yield from _compared(before[next_row], after[next_column], owners, *places)
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


def _between(rows: list[Value], columns: list[Value]) -> Iterator[tuple[int, int, Value, Value]]:
    """Removals and additions in a stretch of which no element is known to have stayed.

    Yields the index before, the index when it is done, what was found there, and what is there then.
    """
    row = at = 0
    for one, other in Aligner().align(rows, columns) if rows or columns else ():
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
