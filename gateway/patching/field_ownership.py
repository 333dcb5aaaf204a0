"""Which policy changed which field of an object that several policies change one after another.

Two questions, both about fields and not about operations:

* **Would this change write fields that others wrote?** (``overwritten``.) Decided per leaf: adding a label beside
  another policy's does not; replacing it, removing it, removing all labels, or adding again what another policy has
  removed does.
* **Which turns made the object differ from the original?** (``changes``.) A field with its original value is not in the
  result, however often it was written in between. Inside a container that is new as a whole, what another turn wrote is
  an entry of its own: first the container (with its final value as ``after``), then the changes inside it.

Array elements are tracked, not indexes: inserting a container in front of another changes the other one's pointer, and
its ownership moves with it (see ``sequence_diff``). So for array elements the result may differ from
``difference(original, final)``, which can only guess from the two objects; both lead from one to the other. Outside of
arrays with added or removed elements they are the same.

If the two objects agree by chance (equal elements at an array's ends that are not the same), a difference that no
policy wrote is attributed to the turn that last added to or removed from that array.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import UNSET, Struct

from gateway.patching.difference import Operation
from gateway.patching.equality import Value
from gateway.patching.ownership_tree import OwnershipNode, Writes, member
from gateway.patching.placement import Placed, placed
from gateway.patching.sequence_diff import sequence_diff
from gateway.patching.steps import OutOfStepsError, Steps
from gateway.scopes.pointer import Pointer, format_pointer

_NODE: Final = 5
"""Steps of a node inside a value that was added or removed as a whole."""


class Overwrite(Struct, frozen=True, kw_only=True):
    """A field that a change would write again: ``pointer`` over the current object, ``authors`` who wrote it before."""

    pointer: str
    authors: frozenset[int]


class ChangedField(Struct, frozen=True, kw_only=True):
    """One field in which the object differs from the original.

    ``pointer``: a JSON Pointer over the final object; over the original one for a removed field. ``op``: add, replace
    or remove. ``before`` and ``after``: decoded JSON values, shared with the objects, msgspec.UNSET for nothing;
    ``before`` is the original value, or, inside a container that is new as a whole, the value before the last turn.
    ``order``: the turn that wrote it last; ``earlier``: the turns that wrote it before, in order.
    """

    pointer: str
    op: str
    before: Value
    after: Value
    order: int
    earlier: tuple[int, ...] = ()


class FieldOwnership:
    """Keeps which turn wrote which field, starting with the original object.

    Objects are decoded JSON values, at most 256 levels deep. ``steps`` bound the writes that are recorded leaf by leaf;
    None: those of one comparison.
    """

    __slots__ = ("_last", "_now", "_original", "_root", "_steps")

    def __init__(self, original: Value, steps: Steps | None = None) -> None:
        self._steps = steps or Steps()
        self._original = original
        self._now = original
        self._root = OwnershipNode()
        self._last: Writes = ()

    def overwritten(self, operations: Sequence[Operation], *, author: int | None = None) -> tuple[Overwrite, ...]:
        """The fields that other authors wrote and these operations, of ``difference(now, ...)``, would write again.

        Fields that only ``author`` wrote are left out. Nothing is recorded. Each field appears once.
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
        """The leaves with a recorded write that this change would write."""
        for node in self._path(change.old[:-1]):
            if node.whole:
                yield change.old, node.leaf
        if change.element and change.op == "add":
            container = self._owners(change.old[:-1])
            if container is not None and container.elements is not None:
                yield change.old, container.elements.removals_of(change.value)
            return
        owners = self._owners(change.old)
        if owners is not None:
            yield from owners.leaves(change.found, change.value, change.old)

    def record(self, author: int, order: int, operations: Sequence[Operation], after: Value) -> None:
        """Record applied operations: they are ``difference(now, after)``, and ``after`` is the current object.

        ``author`` is the policy's index in the plan, ``order`` the number of the turn, which must increase.
        """
        write = (order, author)
        for change in placed(self._now, operations):
            self._last = (write,)
            if not change.path:
                self._root.rewrite(change.found, change.value, write, self._steps)
                continue
            owners, node = self._root, self._now
            for token, old in zip(change.path[:-1], change.old[:-1], strict=True):
                owners = owners.made(token, node)
                node = node[int(old) if type(node) is list else old]
            if change.element:
                elements, index = owners.opened(node), int(change.path[-1])
                if change.op == "add":
                    elements.insert(index, change.value, write, self._steps)
                else:
                    elements.remove(index, change.found, write)
            else:
                owners.made(change.path[-1], node).rewrite(change.found, change.value, write, self._steps)
        self._now = after

    def changes(self, final: Value) -> tuple[ChangedField, ...]:
        """All fields in which ``final`` (the current object) differs from the original, in the original's order."""
        fields: list[ChangedField] = []
        steps = Steps()
        for change in sequence_diff(self._original, final, self._root, steps):
            field = _field(change, change.found, self._writes_of(change))
            fields.append(field)
            owners = None if change.element and change.op == "remove" else self._owners(change.path)
            if owners is not None:
                fields.extend(_inside(owners, change, field.order, steps))
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
        """The writes to which a change is attributed; never empty."""
        gone = change.element and change.op == "remove"
        owners = None if gone else self._owners(change.path)
        if owners is not None and owners.writes:
            return owners.writes
        container = self._owners(change.path[:-1])
        if change.element and container is not None and (elements := container.elements) is not None:
            writes = elements.removals_at(int(change.old[-1]), change.found) if gone else elements.inserted
            if writes:
                return writes
        # This place has no write of its own: it was added or removed with a container or an array element.
        return next((writes for each in reversed(self._path(change.path)) if (writes := each.all_writes())), self._last)


def _inside(owners: OwnershipNode, change: Placed, order: int, steps: Steps) -> Iterator[ChangedField]:
    """The writes of turns other than ``order`` inside a value that was added or removed as a whole, while there are
    steps.
    """
    if type(change.found) is type(change.value):
        return  # Two arrays, replaced whole because of their length: not aligned.
    base = change.old if change.value is UNSET else change.path
    for token, child in owners.below():
        try:
            steps.take(_NODE + len(base))
        except OutOfStepsError:
            return
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
        yield from _inside(child, inner, last, steps)


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
