"""The places of a difference's operations in the object before all of them.

The path of an operation is valid at the moment when the operation is applied. A difference visits each array from its
first element to its last. So when an operation is applied, the elements in front of its index are those of the object
after all operations, and the elements behind it those of the object before them. Hence:

* an operation's path is its place in the object after (unless it removes an element);
* its place in the object before is computed, for each array on the path, by subtracting the elements that earlier
  operations added to that array and adding those that they removed from it.

No operation is applied for that, so the cost is that of the paths.
"""

from collections.abc import Iterable, Iterator

from msgspec import UNSET, Struct

from gateway.patching.difference import Operation
from gateway.patching.equality import Value
from gateway.patching.parsing import parse_pointer
from gateway.scopes.pointer import Pointer


class Placed(Struct, frozen=True, kw_only=True):
    """One operation of a difference: ``path`` when it is applied, ``old`` in the object before all of them.

    ``found`` is what stood there, and ``value`` what stands there afterwards: msgspec.UNSET for nothing. ``element``:
    what is added or removed is an element of an array.
    """

    path: Pointer
    old: Pointer
    found: Value
    value: Value
    element: bool

    @property
    def op(self) -> str:
        """Add, replace or remove."""
        return "add" if self.found is UNSET else "remove" if self.value is UNSET else "replace"


def placed(before: Value, operations: Iterable[Operation]) -> Iterator[Placed]:
    """The operations of ``difference(before, ...)``, in order, each with its place in ``before``."""
    shifts: dict[Pointer, int] = {}
    for operation in operations:
        path = parse_pointer(operation.path)
        value = UNSET if operation.op == "remove" else operation.value
        if not path:
            yield Placed(path=path, old=path, found=before, value=value, element=False)
            continue
        node, old = before, []
        for at, token in enumerate(path[:-1]):
            if type(node) is list:
                index = int(token) + shifts.get(path[:at], 0)
                old.append(str(index))
                node = node[index]
            else:
                old.append(token)
                node = node[token]
        last, found = path[-1], UNSET
        array = type(node) is list
        if array:
            container = path[:-1]
            index = int(last) + shifts.get(container, 0)
            last = str(index)
            if operation.op != "add":
                found = node[index]
            if operation.op != "replace":
                shifts[container] = shifts.get(container, 0) + (-1 if operation.op == "add" else 1)
        else:
            found = node.get(last, UNSET)
        yield Placed(path=path, old=(*old, last), found=found, value=value, element=array and operation.op != "replace")
