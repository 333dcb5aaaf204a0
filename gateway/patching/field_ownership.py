"""Who changed what of an object that several policies change one after another.

Two questions, and each is about fields, not about operations:

* **Would this change write what others wrote?** (``overwritten``.) By the leaf: who adds a label beside another's does
  not; who replaces it, removes it, or removes all labels does; so does who adds again what another has removed.
* **Who made the object differ from what it was?** (``changes``.) A field that ended as it began is not in the answer,
  however often it was written in between. Inside a container that is new as a whole, what another turn wrote is an
  entry of its own: first the container (its ``after`` is what became of it in the end), then what was changed in it.

Array elements are followed, not indexes: a container that is inserted in front of another moves that one's pointer,
and everything known about it goes along (see ``sequence_diff``). So the answer may say of an array's elements something
else than ``difference(original, final)``, which has only the two objects to guess from: both lead from one to the
other. Outside of arrays of which elements came or went they say the same.

Where the two objects agree by chance (elements equal at an array's ends that are not the same), who last added or
removed in that array answers for what nobody wrote.
"""

from collections.abc import Iterator, Sequence

from msgspec import UNSET, Struct

from gateway.patching.difference import Operation
from gateway.patching.equality import Value
from gateway.patching.ownership_tree import OwnershipNode, Writes, member
from gateway.patching.placement import Placed, placed
from gateway.patching.sequence_diff import sequence_diff
from gateway.scopes.pointer import Pointer, format_pointer


class Overwrite(Struct, frozen=True, kw_only=True):
    """A place that a change would write again: ``pointer`` over the object as it is now, ``authors`` who wrote it."""

    pointer: str
    authors: frozenset[int]


class ChangedField(Struct, frozen=True, kw_only=True):
    """One field in which the object differs from the original.

    ``pointer``: a JSON Pointer over the final object; for what was removed, where it was in the original. ``op``: add,
    replace or remove. ``before`` and ``after``: decoded JSON values, shared with the objects, msgspec.UNSET for
    nothing; ``before`` is the original's, or, inside a container that is new as a whole, what the last turn found.
    ``order``: the one that wrote it last; ``earlier``: those that had written it before, in order.
    """

    pointer: str
    op: str
    before: Value
    after: Value
    order: int
    earlier: tuple[int, ...] = ()


class FieldOwnership:
    """Who wrote what, from the original object on. Objects are decoded JSON values, at most 256 levels deep."""

    __slots__ = ("_last", "_now", "_original", "_root")

    def __init__(self, original: Value) -> None:
        self._original = original
        self._now = original
        self._root = OwnershipNode()
        self._last: Writes = ()

    def overwritten(self, operations: Sequence[Operation], *, author: int | None = None) -> tuple[Overwrite, ...]:
        """What earlier authors wrote and these operations, of ``difference(now, ...)``, would write again.

        ``author`` is left out: nobody overwrites himself. Nothing is recorded. Each place once.
        """
        found: dict[Pointer, set[int]] = {}
        for change in placed(self._now, operations):
            for pointer, writes in self._written_by(change):
                found.setdefault(pointer, set()).update(each for _, each in writes if each != author)
        return tuple(
            Overwrite(pointer=format_pointer(pointer), authors=frozenset(authors))
            for pointer, authors in found.items()
            if authors
        )

    def _written_by(self, change: Placed) -> Iterator[tuple[Pointer, Writes]]:
        """The leaves that somebody wrote and this change would write."""
        if change.element and change.op == "add":
            container = self._owners(change.old[:-1])
            if container is not None and container.elements is not None:
                yield change.old, container.elements.removals_of(change.value)
            return
        owners = self._owners(change.old)
        if owners is not None:
            yield from owners.leaves(change.found, change.value, change.old)

    def record(self, author: int, order: int, operations: Sequence[Operation], after: Value) -> None:
        """These operations have been applied: they are ``difference(now, after)``, and ``after`` is what is now.

        ``author`` is the policy's place in the plan, ``order`` the number of the call; turns rise.
        """
        write = (order, author)
        for change in placed(self._now, operations):
            self._last = (write,)
            if not change.path:
                self._root.rewrite(change.found, change.value, write)
                continue
            owners, node = self._root, self._now
            for token, old in zip(change.path[:-1], change.old[:-1], strict=True):
                owners = owners.made(token, node)
                node = node[int(old) if type(node) is list else old]
            if change.element:
                elements, index = owners.opened(node), int(change.path[-1])
                if change.op == "add":
                    elements.insert(index, change.value, write)
                else:
                    elements.remove(index, change.found, write)
            else:
                owners.made(change.path[-1], node).rewrite(change.found, change.value, write)
        self._now = after

    def changes(self, final: Value) -> tuple[ChangedField, ...]:
        """Every field in which ``final`` (what is now) differs from the original, in the original's order."""
        fields: list[ChangedField] = []
        for change in sequence_diff(self._original, final, self._root):
            field = _field(change, change.found, self._writes_of(change))
            fields.append(field)
            owners = None if change.element and change.op == "remove" else self._owners(change.path)
            if owners is not None:
                fields.extend(_inside(owners, change, field.order))
        return tuple(fields)

    def _path(self, pointer: Pointer) -> list[OwnershipNode]:
        """The marks on the way to a place, its own at the end, as far as there are any."""
        way = [self._root]
        for token in pointer:
            child = way[-1].child(token)
            if child is None:
                break
            way.append(child)
        return way

    def _owners(self, pointer: Pointer) -> OwnershipNode | None:
        way = self._path(pointer)
        return way[-1] if len(way) > len(pointer) else None

    def _writes_of(self, change: Placed) -> Writes:
        """Whose a change is; not empty, since somebody wrote."""
        gone = change.element and change.op == "remove"
        owners = None if gone else self._owners(change.path)
        if owners is not None and owners.writes:
            return owners.writes
        container = self._owners(change.path[:-1])
        if change.element and container is not None and (elements := container.elements) is not None:
            writes = elements.removals_at(int(change.old[-1]), change.found) if gone else elements.inserted
            if writes:
                return writes
        # Nobody wrote this very place: it came or went by what was done to what stands around it.
        return next((writes for each in reversed(self._path(change.path)) if (writes := each.all_writes())), self._last)


def _inside(owners: OwnershipNode, change: Placed, order: int) -> Iterator[ChangedField]:
    """What others than ``order`` wrote in what came or went as a whole."""
    if type(change.found) is type(change.value):
        return  # Two arrays, replaced whole for their length: which element was which is not known.
    base = change.old if change.value is UNSET else change.path
    for token, child in owners.below():
        found, value = member(change.found, token), member(change.value, token)
        if type(change.value) is list:
            value = change.value[int(token)]
        if found is UNSET and value is UNSET:
            continue
        place = (*base, token)
        inner = Placed(path=place, old=(*change.old, token), found=found, value=value, element=False)
        writes = child.writes
        last = writes[-1][0] if writes else order
        if last != order:
            before = child.found if found is UNSET else found
            yield _field(inner, before, writes)
        yield from _inside(child, inner, last)


def _field(change: Placed, before: Value, writes: Writes) -> ChangedField:
    order = writes[-1][0]
    return ChangedField(
        pointer=format_pointer(change.old if change.value is UNSET else change.path),
        op="remove" if change.value is UNSET else "add" if before is UNSET else "replace",
        before=before,
        after=change.value,
        order=order,
        earlier=tuple(dict.fromkeys(each for each, _ in writes if each != order)),
    )
