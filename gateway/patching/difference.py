"""The difference between two objects, as a JSON Patch of add, replace and remove operations only.

The gateway sends it to kube-apiserver, and records it as the change of each policy. It contains only what changed, in a
form on which all JSON Patch libraries agree: paths that exist, array indexes without ``-`` and without negative
numbers, no operation on an absent member. (JSON Patch libraries deviate from the RFC in different details;
kube-apiserver's in some fifteen.)

* Objects are compared member by member: first those of the object before, in its order, then new ones in theirs.
* Arrays: equal elements at both ends stay; the rest is aligned (see ``alignment``), so that an element inserted in
  front is one ``add``. An index is that at the moment when its operation is applied, after all operations before it.
* Other unequal values are replaced. The path "" appears only if the documents are not both objects or both arrays, or
  have too many different members; always as ``replace``, because kube-apiserver's library rejects ``add`` there.
* The work is bounded (see ``steps``): an object or array that would take too much is replaced whole, as are arrays in
  more than eight arrays.

A shared part (``is``) is equal and is not visited: after a patch on shared structure the cost is that of the containers
on the path to the change, however large the rest is.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from gateway.patching.alignment import Aligner, Pair
from gateway.patching.equality import Value, equal
from gateway.patching.steps import OutOfStepsError, Steps, kept
from gateway.scopes.pointer import escaped

_SHIFTED_ELEMENTS = 512
"""Array elements that are moved by one place in a step. kube-apiserver's library copies the whole array at each ``add``
and ``remove`` in it, 8 bytes an element. So all operations of a difference move at most 50 million elements: 400 MB,
some 0.1 s. 5,000 elements may be removed and 5,000 others added."""

_LEVELS = 8
"""Arrays in arrays, down to this level, are compared element by element, which compares deeper values again at each
level. No Kubernetes type nests more than four arrays."""

_MEMBERS = 8
"""Members or elements that are compared in a step, if they are shared or simple."""

_OPERATION = 4
"""Steps of an operation, besides one for each token of its path: it is placed, attributed, encoded and logged."""

_ENCODER = msgspec.json.Encoder()
_ABSENT: Any = object()


class Operation(Struct, frozen=True, kw_only=True):
    """One operation of a difference: ``op`` is add, replace or remove, ``path`` a JSON Pointer over the object.

    ``value`` is a decoded JSON value, shared with the object after; for remove it has no meaning.
    """

    op: str
    path: str
    value: Value = None


def difference(before: Value, after: Value, steps: Steps | None = None) -> tuple[Operation, ...]:
    """The operations that make ``after`` out of ``before``, both decoded JSON values; empty if they are equal.

    Applied in order by any library that follows RFC 6902 they give ``after``, in the sense of section 4.6 of the RFC
    (see ``equal``). Both must be at most 256 levels deep. ``steps`` bound the work; None: those of one comparison.
    Raises nothing.
    """
    walk = _Walk(steps or Steps())
    try:
        walk.compare("", before, after, 0)
    except OutOfStepsError:
        return (Operation(op="replace", path="", value=after),)
    return tuple(walk.operations)


def encode_patch(operations: Iterable[Operation]) -> bytes:
    """The JSON Patch document (RFC 6902) of these operations as compact JSON text; ``[]`` for none."""
    return _ENCODER.encode(
        [
            {"op": operation.op, "path": operation.path}
            if operation.op == "remove"
            else {"op": operation.op, "path": operation.path, "value": operation.value}
            for operation in operations
        ]
    )


class _Walk:
    """Compares both documents, member by member."""

    __slots__ = ("_aligner", "_steps", "operations")

    def __init__(self, steps: Steps) -> None:
        self.operations: list[Operation] = []
        self._steps = steps
        self._aligner: Aligner | None = None

    def compare(self, path: str, before: Value, after: Value, level: int) -> None:
        """``level``: how many arrays the values are in."""
        if before is after:
            return
        kind = type(before)
        if kind is type(after) and (kind is dict or (kind is list and level < _LEVELS)):
            self._parts(path, before, after, level)
        elif not equal(before, after):
            self._add("replace", path, after)

    def _parts(self, path: str, before: Value, after: Value, level: int) -> None:
        """Compare two containers; if that takes too many steps, replace the one before."""
        made = len(self.operations)
        floor = self._steps.begin(kept(path.count("/")))
        try:
            self._steps.take(3 + (len(before) + len(after)) // _MEMBERS)
            if type(before) is dict:
                self._members(path, before, after, level)
            else:
                self._elements(path, before, after, level)
        except OutOfStepsError:
            del self.operations[made:]
            self._steps.end(floor)
            if not equal(before, after):
                self._add("replace", path, after)
        else:
            self._steps.end(floor)

    def _add(self, op: str, path: str, value: Value = None) -> None:
        self._steps.take(_OPERATION + path.count("/"))
        self.operations.append(Operation(op=op, path=path, value=value))

    def _members(self, path: str, before: dict[str, Value], after: dict[str, Value], level: int) -> None:
        common = 0
        for name, old in before.items():
            new = after.get(name, _ABSENT)
            if new is _ABSENT:
                self._add("remove", f"{path}/{escaped(name)}")
                continue
            common += 1
            # Fast path: without sharing, equal strings are by far the most frequent case. No path is made for them.
            if new is not old and not (type(new) is str and new == old):
                self.compare(f"{path}/{escaped(name)}", old, new, level)
        if common < len(after):
            for name, new in after.items():
                if name not in before:
                    self._add("add", f"{path}/{escaped(name)}", new)

    def _elements(self, path: str, before: list[Value], after: list[Value], level: int) -> None:
        shorter = min(len(before), len(after))
        start = 0
        while start < shorter and equal(before[start], after[start]):
            start += 1
        end = 0
        while end < shorter - start and equal(before[-1 - end], after[-1 - end]):
            end += 1
        old = before[start : len(before) - end]
        new = after[start : len(after) - end]
        pairs = self._pairs(old, new)
        changes = sum(row is None or column is None for row, column in pairs)
        self._steps.take(changes * max(len(before), len(after)) // _SHIFTED_ELEMENTS)
        at = start
        for row, column in pairs:
            if column is None:
                self._add("remove", f"{path}/{at}")
                continue
            if row is None:
                self._add("add", f"{path}/{at}", new[column])
            elif not self._settled(old[row], new[column]):
                self.compare(f"{path}/{at}", old[row], new[column], level + 1)
            at += 1

    def _settled(self, old: Value, new: Value) -> bool:
        """Whether the alignment has found two elements equal."""
        return old is new or (self._aligner is not None and self._aligner.interner.known_equal(old, new))

    def _pairs(self, old: list[Value], new: list[Value]) -> list[Pair]:
        self._steps.take((len(old) + len(new)) // _MEMBERS)
        if not old:
            return [(None, column) for column in range(len(new))]
        if not new:
            return [(row, None) for row in range(len(old))]
        if len(old) == len(new) == 1:
            return [(0, 0)]
        if self._aligner is None:
            self._aligner = Aligner(self._steps)
        return self._aligner.align(old, new)
