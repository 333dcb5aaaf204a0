"""A document as kube-apiserver's JSON Patch library (evanphx/json-patch v4.13) holds it: opened only where it is used.

A node is a value with a known text until it is opened; then it is an object or an array of nodes. Comparisons depend on
whether a node is opened, so this module transcribes the library name by name (lazyNode, partialDoc, partialArray). The
difference: a value of the document is kept decoded, and its text is made only for a comparison; so what a patch does
not touch stays shared with the document.

* An absent node is None. So is a ``null`` in the document; the library does not distinguish them (nil).
* ``null`` as a patch's value is a node without text.
* ``null`` that was copied is a node with the text ``null``; opened, it is an object that cannot be written (a nil map).

Go panics if such an object is written or an absent node is compared; here that is a PatchError as well.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import msgspec

from gateway.json_values import VALUES
from gateway.patching.encoding import compacted, encoded, escaped
from gateway.patching.equality import Value
from gateway.patching.errors import PatchError, json_quoted

_encode: Final = msgspec.json.Encoder().encode
_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_array: Final = msgspec.json.Decoder(list[msgspec.Raw])

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_WIDEST: Final = 19
"""Digits of the greatest int64; strconv.Atoi refuses more."""

_NULL: Final = msgspec.Raw(b"null")
_ABSENT: Final = object()


class PanicError(PatchError):
    """The library would panic and end the request's goroutine."""


class Node:
    """A lazyNode: ``raw`` is a decoded value, a ``msgspec.Raw`` text, or None; opened, ``container`` is set."""

    __slots__ = ("_decoded", "container", "raw")

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.container: Container | None = None
        self._decoded: Value = _ABSENT

    @property
    def looks_like_array(self) -> bool:
        """isArray: decided by the first character of the text that is no blank (a carriage return is no blank)."""
        if isinstance(self.raw, msgspec.Raw):
            return bytes(self.raw).lstrip(b" \n\t")[:1] == b"["
        return type(self.raw) is list

    def open_object(self) -> "Members | None":
        """What it is as an object; None if it is none (intoDoc, tryDoc)."""
        if isinstance(self.container, Members):
            return self.container
        members: Any = self.raw
        if isinstance(members, msgspec.Raw):
            try:
                members = _object.decode(members)
            except msgspec.DecodeError:
                return None
            self.container = Members(members, self.raw)
        elif type(members) is dict:
            self.container = Members(dict(members), members)
        else:
            return None
        return self.container

    def open_array(self) -> "Elements | None":
        """What it is as an array; None if it is none (intoAry, tryAry)."""
        if isinstance(self.container, Elements):
            return self.container
        elements: Any = self.raw
        if isinstance(elements, msgspec.Raw):
            try:
                elements = _array.decode(elements)
            except msgspec.DecodeError:
                return None
            self.container = Elements(elements, self.raw)
        elif type(elements) is list:
            self.container = Elements(list(elements), elements)
        else:
            return None
        return self.container

    def value(self) -> Value:
        """What it is in the end."""
        if self.container is not None:
            return self.container.value()
        if not isinstance(self.raw, msgspec.Raw):
            return self.raw
        if self._decoded is _ABSENT:
            self._decoded = VALUES.decode(self.raw)
        return self._decoded

    def text(self) -> bytes:
        """MarshalJSON."""
        if self.container is not None:
            return self.container.text()
        return escaped(compacted(bytes(self.raw))) if isinstance(self.raw, msgspec.Raw) else encoded(self.raw)

    def scalar(self) -> bytes | None:
        """The text as it compares: blanks removed, nothing escaped that was not; None if there is none."""
        if isinstance(self.raw, msgspec.Raw):
            return compacted(bytes(self.raw))
        return None if self.raw is None else encoded(self.raw)

    def copied(self) -> "Node":
        """A node of its own (deepCopy)."""
        if self.container is None and self.raw is not None and not isinstance(self.raw, msgspec.Raw):
            return Node(self.raw)
        return Node(msgspec.Raw(self.text()))

    def measured(self) -> bytes:
        """A text that is as long and as deep as its own, nearly."""
        if self.container is not None:
            # Not of its value: what came as a text stays one, and is not parsed again for each copy.
            return self.container.text()
        return bytes(self.raw) if isinstance(self.raw, msgspec.Raw) else _encode(self.raw)

    @property
    def plain(self) -> bool:
        """Whether its text is that of its value: nothing in it came as a text, or as a patch's null."""
        if self.container is not None:
            return self.container.plain
        return self.raw is not None and not isinstance(self.raw, msgspec.Raw)


Child: TypeAlias = Any
"""What stands in a container: a Node or None; or, until it is first taken out, a decoded value or a msgspec.Raw."""


def _taken(child: Child) -> Node | None:
    """The node of a child; None for null."""
    if isinstance(child, Node):
        return child
    return None if child is None or child == _NULL else Node(child)


def _finished(child: Child) -> Value:
    if isinstance(child, Node):
        return child.value()
    return VALUES.decode(child) if isinstance(child, msgspec.Raw) else child


def _text(child: Child) -> bytes:
    return (child if isinstance(child, Node) else Node(child)).text()


def _plain(children: Iterable[Child]) -> bool:
    return all(child.plain if isinstance(child, Node) else not isinstance(child, msgspec.Raw) for child in children)


def _by_name(pair: tuple[str, Child]) -> str:
    return pair[0]


class Members:
    """A partialDoc. ``members`` is None for a nil map."""

    __slots__ = ("_origin", "members")

    def __init__(self, members: dict[str, Child] | None, origin: Any) -> None:
        self.members = members
        self._origin = origin

    def get(self, key: str) -> Node | None:
        """The member, or None if there is none."""
        if not self.members:
            return None
        node = _taken(self.members.get(key))
        if node is not None:
            self.members[key] = node
        return node

    def add(self, key: str, node: Node | None) -> None:
        """Set the member, which is all that add and replace do."""
        if self.members is None:
            raise PanicError("assignment to entry in nil map")
        self.members[key] = node

    set = add

    def remove(self, key: str) -> None:
        """Remove the member, which must be there."""
        if not self.members or key not in self.members:
            raise PatchError(f"Unable to remove nonexistent key: {json_quoted(key)}: missing value")
        del self.members[key]

    def value(self) -> Value:
        """The object; the very one that it began as, if nothing in it has changed."""
        if self.members is None:
            return None
        members = {name: _finished(child) for name, child in self.members.items()}
        origin = self._origin
        if type(origin) is dict and len(origin) == len(members):
            same = all(origin.get(name, _ABSENT) is child for name, child in members.items())
            return origin if same else members
        return members

    @property
    def plain(self) -> bool:
        """Whether its text is that of its value."""
        return self.members is not None and _plain(self.members.values())

    def text(self) -> bytes:
        """Its text, members in the order of their names."""
        if self.members is None:
            return b"null"
        if self.plain:
            return encoded(self.value())
        pairs = [encoded(name) + b":" + _text(child) for name, child in sorted(self.members.items(), key=_by_name)]
        return b"{" + b",".join(pairs) + b"}"


class Elements:
    """A partialArray."""

    __slots__ = ("_origin", "elements")

    def __init__(self, elements: list[Child], origin: Any) -> None:
        self.elements = elements
        self._origin = origin

    def get(self, key: str) -> Node | None:
        """The element; counted from the end, if the index is negative."""
        index = self._existing(key)
        node = _taken(self.elements[index])
        if node is not None:
            self.elements[index] = node
        return node

    def set(self, key: str, node: Node | None) -> None:
        """Replace an element."""
        self.elements[self._existing(key)] = node

    def add(self, key: str, node: Node | None) -> None:
        """Insert before an element; ``-``, the length, and -1 append."""
        if key == "-":
            self.elements.append(node)
            return
        index, size = _atoi(key), len(self.elements) + 1
        if not -size <= index < size:
            raise _no_element(index)
        self.elements.insert(index + size if index < 0 else index, node)

    def remove(self, key: str) -> None:
        """Remove an element."""
        del self.elements[self._existing(key)]

    def _existing(self, key: str) -> int:
        index, size = _atoi(key), len(self.elements)
        if not -size <= index < size:
            raise _no_element(index)
        return index + size if index < 0 else index

    def value(self) -> Value:
        """The array; the very one that it began as, if nothing in it has changed."""
        elements = [_finished(child) for child in self.elements]
        origin = self._origin
        if type(origin) is list and len(origin) == len(elements):
            same = all(one is other for one, other in zip(origin, elements, strict=True))
            return origin if same else elements
        return elements

    @property
    def plain(self) -> bool:
        """Whether its text is that of its value."""
        return _plain(self.elements)

    def text(self) -> bytes:
        """Its text."""
        if self.plain:
            return encoded(self.value())
        return b"[" + b",".join([_text(child) for child in self.elements]) + b"]"


Container: TypeAlias = Members | Elements


def children_of(child: Child | Container) -> dict[str, Child] | list[Child] | None:
    """What stands in a container of the document, read as ``_Target.find`` reads it; None where nothing can."""
    container: Any = child
    if isinstance(child, msgspec.Raw):
        child = Node(child)
    if isinstance(child, Node):
        container = child.container or (child.open_array() if child.looks_like_array else child.open_object())
    if isinstance(container, Members):
        return container.members
    if isinstance(container, Elements):
        return container.elements
    return container if type(container) is dict or type(container) is list else None


def _atoi(key: str) -> int:
    """strconv.Atoi: a sign may stand in front, and so may zeros."""
    if not _INTEGER.fullmatch(key):
        raise PatchError(f"strconv.Atoi: parsing {json_quoted(key)}: invalid syntax")
    digits = key.lstrip("+-").lstrip("0") or "0"
    # Python refuses to read some 4,300 digits, be they zeros.
    number = int(digits) * (-1 if key[0] == "-" else 1) if len(digits) <= _WIDEST else 2**63
    if not -(2**63) <= number < 2**63:
        raise PatchError(f"strconv.Atoi: parsing {json_quoted(key)}: value out of range")
    return number


def _no_element(index: int) -> PatchError:
    return PatchError(f"Unable to access invalid index: {index}: invalid index referenced")
