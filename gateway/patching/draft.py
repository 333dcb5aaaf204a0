"""A draft of a document: shares everything with the original except what is written (copy on write).

The original document is never mutated. A write copies the container of its target and the containers on the path to it,
each at most once per patch; the draft *owns* these copies. Everything else stays shared. The rules:

* An owned container is in exactly one place, under an owned container: it may be mutated.
* A value from the patch is not owned: it is copied when it is first written. This keeps the rules simple, and few
  patches write into what they have just added.
* ``copy`` puts one value in two places, so its owned containers are no longer owned: the next write below either place
  copies again, and the two can differ.
* ``move`` keeps ownership.
* The draft keeps owned containers alive until the patch ends, because it identifies them by ``id``, and Python reuses
  the id of a freed object.
"""

from typing import Any

import msgspec

from gateway.depth import most_values, too_deep, value_too_deep
from gateway.patching.equality import Value
from gateway.patching.errors import PatchError, PatchLimitError, json_quoted, kind, quoted
from gateway.patching.limits import PatchLimits
from gateway.scopes.pointer import Pointer, array_index, format_pointer

_ENCODER = msgspec.json.Encoder()
_ABSENT: Any = object()


class Draft:
    """A draft of a document: shares everything with the original except what it owns."""

    __slots__ = ("_copied", "_limits", "_nesting", "_owned", "_patch", "_shifted", "_values", "root")

    def __init__(self, document: Value, patch: bytes, limits: PatchLimits) -> None:
        """``patch`` is the text that the values written here come from."""
        self.root = document
        self._patch = patch
        self._nesting = -1
        self._limits = limits
        self._owned: dict[int, Value] = {}
        self._copied = 0
        self._values = 0
        self._shifted = 0

    def check_depth(self, value: Value, target: Pointer) -> None:
        """Reject a value of the patch that would nest too deep at ``target``."""
        # A value that is no container adds no level.
        if type(value) is not dict and type(value) is not list:
            return
        if self._nesting < 0:
            # No value is deeper than the number of brackets in the patch, so values are measured only in few patches.
            self._nesting = self._patch.count(b"[") + self._patch.count(b"{")
        # The text of a few long strings would take ten times as long to look at as the value.
        room = self._limits.depth - len(target)
        if self._nesting > room and value_too_deep(value, room):
            raise self._deeper(target)

    def _deeper(self, target: Pointer) -> PatchLimitError:
        return PatchLimitError(
            f"the document may nest {self._limits.depth} levels deep, and would nest deeper at {place(target)}"
        )

    def read(self, target: Pointer) -> Value:
        """The value at ``target``."""
        node = self.root
        for at, token in enumerate(target):
            child = node.get(token, _ABSENT) if type(node) is dict else _ABSENT
            node = node[_key(node, target, at)] if child is _ABSENT else child
        return node

    def _parent(self, target: Pointer) -> Any:
        """The container of ``target`` (not the root), owned, as are all containers on the path to it."""
        owned = self._owned
        node = self.root
        if id(node) not in owned:
            node = self.root = self._own(node, target, 0)
        for at in range(len(target) - 1):
            key: Any = target[at]
            if type(node) is not dict or key not in node:
                key = _key(node, target, at)
            child = node[key]
            if id(child) not in owned:
                child = node[key] = self._own(child, target, at + 1)
            node = child
        return node

    def _own(self, node: Value, target: Pointer, at: int) -> Any:
        """A copy of ``node``, which is at the first ``at`` tokens of ``target``; its children are shared."""
        if type(node) is not dict and type(node) is not list:
            raise _no_container(node, target, at)
        copy = node.copy()
        self._owned[id(copy)] = copy
        return copy

    def _disown(self, value: Value) -> None:
        """``value`` is now in two places, so it is no longer owned; nor is anything below it."""
        candidates = [value]
        while candidates:
            node = self._owned.pop(id(candidates.pop()), None)
            if node is not None:
                candidates.extend(node.values() if type(node) is dict else node)

    def put(self, value: Value, target: Pointer) -> None:
        """``add``: set a member, insert before an element, or become the document."""
        if not target:
            self.root = value
            return
        parent = self._parent(target)
        last = target[-1]
        if type(parent) is dict:
            parent[last] = value
            return
        # "The specified index MUST NOT be greater than the number of elements in the array. ... If the "-" character
        # is used to index the end of the array, this has the effect of appending the value to the array" (4.1).
        size = len(parent)
        index = size if last == "-" else array_index(last)
        if index is None or index > size:
            raise _no_element(parent, target, len(target) - 1)
        self._shift(size - index)
        parent.insert(index, value)

    def set(self, value: Value, target: Pointer) -> None:
        """``replace``: "The target location MUST exist for the operation to be successful" (section 4.3)."""
        if not target:
            self.root = value
            return
        parent = self._parent(target)
        key: Any = target[-1]
        if type(parent) is not dict or key not in parent:
            key = _key(parent, target, len(target) - 1)
        parent[key] = value

    def take(self, target: Pointer) -> Value:
        """``remove``: the value that is no longer there; "The target location MUST exist" (section 4.2)."""
        if not target:
            # The RFC does not define what would remain. Kubernetes needs an object.
            raise PatchError("the whole document cannot be removed")
        parent = self._parent(target)
        key: Any = _key(parent, target, len(target) - 1)
        if type(parent) is list:
            self._shift(len(parent) - key)
        return parent.pop(key)

    def share(self, source: Pointer, target: Pointer) -> None:
        """``copy``: put the value at ``source`` at ``target`` as well."""
        value = self.read(source)
        self._check_depth_of_copy(value, target)
        self._disown(value)
        self.put(value, target)

    def move(self, source: Pointer, target: Pointer) -> None:
        """``move``: "functionally identical to a "remove" ... followed immediately by an "add"" (section 4.4)."""
        if source == target:
            self.read(source)  # The value must exist; nothing changes.
            return
        if target[: len(source)] == source:
            # 'The "from" location MUST NOT be a proper prefix of the "path" location'.
            raise PatchError(f"{place(source)} cannot be moved into itself")
        value = self.take(source)
        if len(target) > len(source):
            self._check_depth_of_copy(value, target)
        self.put(value, target)

    def _check_depth_of_copy(self, value: Value, target: Pointer) -> None:
        """The same of a value that is copied or moved deeper, in its text; the sum of their sizes is limited."""
        text = _encoded(value)
        self._copied += len(text)
        limit = self._limits.copied_bytes
        if self._copied > limit:
            raise PatchLimitError(
                f"a patch may copy {limit} bytes in all, and with this operation copies {self._copied}"
            )
        self._values += most_values(text)
        if self._values > self._limits.values:
            raise PatchLimitError(f"a patch may copy {self._limits.values} values in all, and would copy more")
        if too_deep(text, self._limits.depth - len(target)):
            raise self._deeper(target)

    def _shift(self, elements: int) -> None:
        """Count array elements that move by one index."""
        self._shifted += elements
        if self._shifted > self._limits.shifted_elements:
            raise PatchLimitError(
                f"a patch may move {self._limits.shifted_elements} array elements by one place in all,"
                f" and with this operation moves {self._shifted}"
            )


def _key(node: Value, target: Pointer, at: int) -> Any:
    """The key or index of the existing child of ``node`` that token ``at`` of ``target`` names."""
    token = target[at]
    if type(node) is list:
        index = array_index(token)
        if index is None or index >= len(node):
            raise _no_element(node, target, at)
        return index
    if type(node) is not dict:
        raise _no_container(node, target, at)
    if token not in node:
        raise PatchError(f"there is no member {json_quoted(token)} in {place(target[:at])}")
    return token


def _no_container(node: Value, target: Pointer, at: int) -> PatchError:
    return PatchError(f"{place(target[:at])} is {kind(node)}: there is no {json_quoted(target[at])} in it")


def _no_element(array: list[Value], target: Pointer, at: int) -> PatchError:
    """Why token ``at`` of ``target`` names no element of ``array``."""
    last, where, size = target[at], place(target[:at]), len(array)
    if last == "-":
        return PatchError(f'"-" is the place after the last of the {size} elements of {where}: there is none')
    if array_index(last) is None:
        return PatchError(f"expected an index of {where} (0, or digits without a leading 0), found {json_quoted(last)}")
    return PatchError(f"{where} has {size} elements, counted from 0: there is no {json_quoted(last)}")


def place(tokens: Pointer) -> str:
    """The place of a value, for messages."""
    return quoted(format_pointer(tokens)) if tokens else "the document"


def _encoded(value: Value) -> bytes:
    """A part of the document as JSON text, to be measured."""
    try:
        return _ENCODER.encode(value)
    except RecursionError as error:
        raise PatchError("the document nests too deep to be copied") from error
