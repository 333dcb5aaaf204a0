"""A tree of the writes to an object. It has nodes only for the places that were written.

* A write is split into *leaves*: values without children (an empty container is one). Adding labels ``{a: 1}`` writes
  ``labels/a``; adding ``labels/b`` later writes another leaf.
* An operation writes the leaves of the old and of the new value. So removing a container writes all its leaves, and the
  node of a leaf stays when the leaf is removed: adding it again writes it again.
* For a written array the tree keeps a list of the same length, with a node for each element that was written into or
  added, and the original index for each other element. Entries are inserted and removed as in the array, so that a node
  stays with its element. Removed nodes are kept by original index and by content.
* An array that is removed or replaced is one leaf from then on: the elements of its replacement are unrelated to it.
* A write with more leaves than there are ``steps`` for is written *whole*: one node, for every place below.

The cost is proportional to what is written, plus one copy of each array that is written into.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET

from gateway.patching.equality import Value
from gateway.patching.steps import OutOfStepsError, Steps
from gateway.scopes.pointer import Pointer

Write: TypeAlias = tuple[int, int]
"""The turn of a write, and its author."""

Writes: TypeAlias = tuple[Write, ...]
"""In the order in which they came."""

_LEAF: Final = 10
"""Steps of a node."""

_encode: Final = msgspec.json.Encoder(order="sorted").encode


class ArrayOwnership:
    """The writes in one array. ``children``: for each element its node, or its original index if it was not written.

    ``inherited``: the array is in the original object.
    """

    __slots__ = ("_contents", "_indexes", "children", "inherited", "inserted", "removed")

    def __init__(self, children: "list[int | OwnershipNode]", *, inherited: bool) -> None:
        self.children = children
        self.inherited = inherited
        self.inserted: Writes = ()
        self.removed: Writes = ()
        self._indexes: dict[int, Write] = {}
        self._contents: dict[bytes, Writes] = {}

    def insert(self, index: int, element: Value, write: Write, steps: Steps) -> None:
        """An element has been added."""
        self.children.insert(index, _written(element, write, steps))
        self.inserted = _with(self.inserted, write)

    def remove(self, index: int, element: Value, write: Write) -> None:
        """An element has been removed; ``element`` as it was at last."""
        owners = self.children.pop(index)
        origin = owners if isinstance(owners, int) else owners.origin
        if origin is not None:
            self._indexes[origin] = write
        content = _encode(element)
        self._contents[content] = _with(self._contents.get(content, ()), write)
        self.removed = _with(self.removed, write)

    def made(self, index: int) -> "OwnershipNode":
        """The node of an element, created if needed."""
        owners = self.children[index]
        if isinstance(owners, int):
            owners = self.children[index] = OwnershipNode(origin=owners, original=self.inherited)
        return owners

    def survivors(self, start: int, stop: int) -> "list[tuple[int, int, OwnershipNode]]":
        """The elements that stayed: original index, current index (both increase), and node."""
        found = []
        for index, owners in enumerate(self.children[start:stop], start):
            if isinstance(owners, int):
                found.append((owners, index, _UNWRITTEN))
            elif owners.origin is not None:
                found.append((owners.origin, index, owners))
        return found

    def removals_of(self, element: Value) -> Writes:
        """Those with which an element of this content left the array."""
        return self._contents.get(_encode(element), ()) if self._contents else ()

    def removals_at(self, index: int, element: Value) -> Writes:
        """Those with which an element that once had this index, and this content, left the array, as far as is known.

        Of two equal elements the difference may call another one removed than the operations did.
        """
        write = self._indexes.get(index)
        return (write,) if write is not None else self.removals_of(element) or self.removed


class OwnershipNode:
    """The writes at one place.

    ``leaf``: the writes of the place as a leaf. ``held``: those that added or removed a container here. ``found`` is
    the value before the last of either, msgspec.UNSET for none. Below: ``members`` of an object, or ``elements`` of an
    array (None: not written into). ``origin``: the original index of an array's element. ``whole``: the writes of this
    place as a leaf are writes of all places below it. ``original``: arrays here and below that were not written are
    those of the original object.
    """

    __slots__ = ("elements", "found", "held", "leaf", "members", "origin", "original", "whole")

    def __init__(self, origin: int | None = None, *, original: bool = True) -> None:
        self.original = original
        self.whole = False
        self.leaf: Writes = ()
        self.held: Writes = ()
        self.found: Value = UNSET
        self.members: dict[str, OwnershipNode] = {}
        self.elements: ArrayOwnership | None = None
        self.origin = origin

    @property
    def writes(self) -> Writes:
        """All writes of this very place."""
        return tuple(sorted({*self.leaf, *self.held}))

    def all_writes(self) -> Writes:
        """Those, and the insertions and removals in the array that stands here."""
        if self.elements is None:
            return self.writes
        return tuple(sorted({*self.writes, *self.elements.inserted, *self.elements.removed}))

    def child(self, token: str) -> "OwnershipNode | None":
        """The mark of a member or element, if there is one."""
        if self.elements is None:
            return self.members.get(token)
        index = int(token) if token.isdecimal() else len(self.elements.children)
        owners = self.elements.children[index] if index < len(self.elements.children) else None
        return owners if isinstance(owners, OwnershipNode) else None

    def below(self) -> Iterator[tuple[str, "OwnershipNode"]]:
        """The marks of its members or elements."""
        if self.elements is None:
            yield from self.members.items()
        else:
            for index, owners in enumerate(self.elements.children):
                if isinstance(owners, OwnershipNode):
                    yield str(index), owners

    def opened(self, array: list[Value]) -> ArrayOwnership:
        """What was written in the array that stands here; ``array`` as it was before this turn."""
        if self.elements is None:
            self.elements = ArrayOwnership(list(range(len(array))), inherited=self.original)
        return self.elements

    def made(self, token: str, container: Value) -> "OwnershipNode":
        """The mark of a member or element of ``container``, which stands here; a new one, if need be."""
        if type(container) is list:
            return self.opened(container).made(int(token))
        return self.members.setdefault(token, OwnershipNode(original=self.original))

    def rewrite(self, found: Value, value: Value, write: Write, steps: Steps) -> None:
        """Something else stands here now: ``value`` instead of ``found``, msgspec.UNSET for nothing."""
        self.found = found
        self.original = False
        try:
            steps.take(_LEAF * (_size(found) + _size(value)))
        except OutOfStepsError:
            self._rewrite_whole(write)
            return
        if is_leaf(found) or is_leaf(value) or type(found) is list:
            self.leaf = _with(self.leaf, write)
        if _holds(found) or _holds(value):
            self.held = _with(self.held, write)
        if type(found) is list:
            self._collapse(write)
        for name in _names(found, value):
            node = self.members.setdefault(name, OwnershipNode(original=False))
            node.rewrite(member(found, name), member(value, name), write, steps)
        if type(value) is list:
            self.elements = ArrayOwnership([_written(element, write, steps) for element in value], inherited=False)

    def _rewrite_whole(self, write: Write) -> None:
        self.whole = True
        self._collapse(write)
        self.members = {}

    def _collapse(self, write: Write) -> None:
        """What was written in an array becomes what was written of it."""
        self.leaf = tuple(sorted({*self.leaf, *self._all(), write}))
        self.elements = None

    def _all(self) -> Iterator[Write]:
        """The writes here and below."""
        yield from self.all_writes()
        for _, owners in self.below():
            yield from owners._all()  # noqa: SLF001 - its own class

    def leaves(self, found: Value, value: Value, at: Pointer) -> Iterator[tuple[Pointer, Writes]]:
        """The leaves with a write that replacing ``found`` by ``value`` here would write again."""
        array = type(found) is list
        # An array that was removed and added again is still one leaf.
        if self.leaf and (self.whole or is_leaf(found) or is_leaf(value) or (type(value) is list and not array)):
            yield at, self.leaf
        if array:
            for token, owners in self.below():
                yield from owners.leaves(found[int(token)], UNSET, (*at, token))
        for name, owners in self.members.items():
            one, other = member(found, name), member(value, name)
            if one is not UNSET or other is not UNSET:
                yield from owners.leaves(one, other, (*at, name))


_UNWRITTEN: Final = OwnershipNode()
"""The node of an element without writes."""


def is_leaf(value: Value) -> bool:
    """Whether it is a value that holds no other."""
    return value is not UNSET and not _holds(value)


def member(value: Value, name: str) -> Value:
    """A member of what may be no object; msgspec.UNSET for none."""
    return value.get(name, UNSET) if type(value) is dict else UNSET


def _size(value: Value) -> int:
    return len(value) if type(value) is dict or type(value) is list else 0


def _holds(value: Value) -> bool:
    return (type(value) is dict or type(value) is list) and bool(value)


def _names(*values: Value) -> dict[str, None]:
    return dict.fromkeys(name for value in values if type(value) is dict for name in value)


def _written(value: Value, write: Write, steps: Steps) -> OwnershipNode:
    owners = OwnershipNode(original=False)
    owners.rewrite(UNSET, value, write, steps)
    return owners


def _with(writes: Writes, write: Write) -> Writes:
    """A turn writes a place once, however many operations it needs."""
    return writes if writes and writes[-1] == write else (*writes, write)
