"""A set of places in a JSON value, each of them with everything below it.

A place is a JSON Pointer (RFC 6901) in which a token ``*`` stands for every member of an object and every element of an
array. (A member that is really called ``*`` cannot be distinguished; ``*`` reaches it too.)

* Overlaps: the wider wins. ``/a`` and ``/a/b`` together are ``/a``, and ``/*/b`` and ``/a/b`` are ``/*/b``.
* ``below(token)`` goes one step down, as a walk over a value does; None: nothing below is in the set. An element
  of an array is looked up by ``str(index)``, so ``00``, ``+0`` and ``-`` reach none.
* Going down with ``*`` itself returns what holds for *each* child: only pointers with ``*`` do. (A child may have
  any name, also one that was never written; so this is exact, and not a guess on the safe side.)

It is kept as a tree, and a set of places that is reached by several ways (``/*/a`` and ``/b/c``, at ``/b``) as the
several branches: merging them beforehand would take exponential room for adversarial pointers. No
step looks at a branch twice, so none takes longer than there are pointers. Nothing here recurses.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gateway.scopes.pointer import Pointer, format_pointer

ANY: Final = "*"
"""The token that stands for every child."""


class _Branch:
    """The pointers below one pointer: everything, if ``pointer`` is set; else something below these tokens.

    ``places`` are those of this branch alone, once they were needed: nearly every step ends at one branch.
    """

    __slots__ = ("children", "places", "pointer")

    def __init__(self) -> None:
        self.pointer: Pointer | None = None
        self.children: dict[str, _Branch] = {}
        self.places: PointerSet | None = None


class PointerSet:
    """A set of places. A value: equal sets are equal, and none is changed after it was made.

    ``pointers`` are the widest places that were named, sorted. ``whole``: the place that was gone down to lies in the
    set with everything below it. A set is false if it is empty. ``named`` are the children with more pointers than
    of ``every`` one: for each other child, ``below`` is ``every``. ``known`` are the steps that were taken before, by
    token; a caller that takes many looks there first.
    """

    __slots__ = ("_branches", "_depth", "_hash", "_pointers", "known", "named", "whole")

    def __init__(self, pointers: Iterable[Pointer] = ()) -> None:
        root = _Branch()
        for pointer in pointers:
            _plant(root, pointer)
        self._be((root,), 0)

    @classmethod
    def _at(cls, branches: tuple[_Branch, ...], depth: int) -> "PointerSet":
        places = cls.__new__(cls)
        places._be(branches, depth)  # noqa: SLF001 - its own class
        return places

    def _be(self, branches: tuple[_Branch, ...], depth: int) -> None:
        self._branches = branches
        self._depth = depth
        self._hash: int | None = None
        self._pointers: tuple[Pointer, ...] | None = None
        self.known: dict[str, PointerSet | None] = {}
        self.whole = _whole(branches)
        self.named: frozenset[str] = frozenset(name for branch in branches for name in branch.children if name != ANY)

    @property
    def pointers(self) -> tuple[Pointer, ...]:
        """The places of the set, as seen from here, sorted; those that lie in another one are left out."""
        if self._pointers is None:
            named = {pointer[self._depth :] for pointer in _named(self._branches)}
            self._pointers = tuple(sorted(_widest(named)))
        return self._pointers

    def __bool__(self) -> bool:
        return self.whole or any(branch.children for branch in self._branches)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, PointerSet) and self.pointers == other.pointers)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.pointers)
        return self._hash

    def __repr__(self) -> str:
        return f"PointerSet({', '.join(format_pointer(pointer) or '(everything)' for pointer in self.pointers)})"

    @property
    def every(self) -> "PointerSet | None":
        """What holds for every child, whatever its name; None: nothing."""
        return self.known[ANY] if ANY in self.known else self._step(ANY)

    def below(self, token: str) -> "PointerSet | None":
        """The same set as seen from one step down; None if nothing there is in it."""
        if token not in self.named:
            token = ANY
        return self.known[token] if token in self.known else self._step(token)

    def _step(self, token: str) -> "PointerSet | None":
        if self.whole:
            return self
        found = _step(self._branches, token)
        if len(found) > 1:
            # Not kept: there can be more such sets than fit in memory.
            return PointerSet._at(tuple(found), self._depth + 1)
        places = self.known[token] = self._alone(found[0]) if found else None
        return places

    def _alone(self, branch: _Branch) -> "PointerSet":
        if branch.places is None:
            branch.places = PointerSet._at((branch,), self._depth + 1)
        return branch.places

    def at(self, pointer: Pointer) -> "PointerSet | None":
        """The same set as seen from ``pointer``; None if nothing there is in it."""
        places: PointerSet | None = self
        for token in pointer:
            if places is None or places.whole:
                break
            places = places.below(token)
        return places

    def covers(self, pointer: Pointer) -> bool:
        """Whether ``pointer`` lies in the set with everything below it; a token ``*`` in it means every child."""
        return _covered(self._branches, pointer)


def _plant(root: _Branch, pointer: Pointer) -> None:
    branch = root
    for token in pointer:
        branch = branch.children.setdefault(token, _Branch())
    branch.pointer = pointer


def _step(branches: Sequence[_Branch], token: str) -> list[_Branch]:
    tokens = (token,) if token == ANY else (token, ANY)
    return [child for branch in branches for each in tokens if (child := branch.children.get(each)) is not None]


def _whole(branches: Sequence[_Branch]) -> bool:
    return any(branch.pointer is not None for branch in branches)


def _named(branches: Iterable[_Branch]) -> Iterator[Pointer]:
    trail = list(branches)
    while trail:
        branch = trail.pop()
        if branch.pointer is not None:
            yield branch.pointer
        trail.extend(branch.children.values())


def _widest(pointers: Iterable[Pointer]) -> Iterator[Pointer]:
    root = _Branch()
    for pointer in sorted(pointers, key=_by_width):
        if not _covered((root,), pointer):
            _plant(root, pointer)
            yield pointer


def _covered(branches: Sequence[_Branch], pointer: Pointer) -> bool:
    for token in pointer:
        if not branches or _whole(branches):
            break
        branches = _step(branches, token)
    return _whole(branches)


def _by_width(pointer: Pointer) -> tuple[int, int]:
    """Short ones first, and of equally long ones those with more ``*``: whatever covers another comes before it."""
    return len(pointer), -pointer.count(ANY)
