"""The values of a configuration text, and the line of each.

The rules, for YAML and JSON alike:

* A value that cannot be taken is no reason to lose the rest of the text: it becomes ``Broken`` where it stands, and
  the reader of that place reports it. So an error within one policy stays within that policy. A text that is not YAML
  or JSON at all is a ``TextError``, and nothing after it is known.
* Broken are: the second of two members with the same name (kubectl is strict as well), a member whose name is not a
  string, a tag that JSON has no value for, a number that no reader would agree on, a string that is not Unicode.
* Anchors and aliases may be used, and merge keys (``<<``) as YAML 1.1 defines them; an alias inside its own anchor may
  not.
* Everything is bounded before it is built: nesting, and the size *after* aliases are followed ("billion laughs").
* The line of a member is that of its name; the line of anything else is where it begins. An aliased value has the line
  of the alias, its parts have their own.
"""

import re
from typing import Final

from msgspec import Struct, field

MAX_DEPTH: Final = 256
"""Containers within containers. The deepest thing in Kubernetes is a CustomResourceDefinition's schema, about 60."""

NODE_COST: Final = 64
MAX_COST: Final = 32 * 1024 * 1024
"""Each value costs 64 plus its characters, each time it is referred to: 10,000 Namespaces as kubectl prints them (40
values and 400 characters each) cost 30 million. A text of 16 MiB reaches half of it by its characters alone."""

DOCUMENT_COST: Final = 512
"""A document costs as much besides: it is an object, with errors and a place of its own. So a text holds at most some
58,000, which takes a second or two."""

MAX_NUMBER: Final = 400
"""Characters of a number. The largest finite double has 309 digits; reading more takes time that grows with their
square."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class TextError(Exception):
    """The text cannot be read. ``line`` counts from 1; ``str(error)`` says what was found, in one line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class Broken(Struct, frozen=True, kw_only=True):
    """A value that cannot be taken, and why."""

    message: str


class Node(Struct, frozen=True):
    """One value and its line, from 1. (Positional, since a large text makes half a million of them.)"""

    value: "Value"
    line: int


Scalar = str | int | float | bool | None | Broken
Value = Scalar | list[Node] | dict[str, Node]


class Duplicate(Broken, frozen=True, kw_only=True):
    """What the second of two members with the same name makes of them; the first one stands at line ``first``."""

    message: str = "duplicate field: it is set twice in the same object"
    first: int

    @property
    def hint(self) -> str:
        """Where the first one stands."""
        return f"the first is in line {self.first}"


REPORTED: Final = Broken(message="")
"""An invalid value that has been reported: the reader of that place does not report it again."""

MERGE: Final = Broken(message="a merge key (<<) can only be the name of a member; quote it to mean the text")
"""What a plain ``<<`` is read as: as a name it merges, anywhere else it is an error."""


class _Open(Struct):
    """A container that is not closed yet. ``spent`` is the cost before it, ``height`` how many levels it holds."""

    line: int
    anchor: str | None
    broken: Broken | None
    is_mapping: bool
    spent: int
    height: int = 1
    elements: list[Node] = field(default_factory=list)
    members: dict[str, Node] = field(default_factory=dict)
    name: Node | None = None
    merge: Node | None = None


class _Anchored(Struct, frozen=True, kw_only=True):
    node: Node
    cost: int
    height: int


class Builder:
    """Puts the documents of one text together, from the order in which a parser meets their parts.

    Iterative: depth costs no stack. The cost is that of the whole text; anchors are a document's own.
    """

    def __init__(self) -> None:
        self.root: Node | None = None
        """The document, as soon as it is complete."""
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Anchored | None] = {}
        self._spent = 0

    def next(self, *, line: int = 1) -> None:
        """Another document begins."""
        self._spend(DOCUMENT_COST, line)
        self.root = None
        self._anchors = {}

    def scalar(self, value: Scalar, *, line: int, anchor: str | None = None) -> None:
        """A value without parts."""
        before = self._spent
        self._spend(NODE_COST + (len(value) if isinstance(value, str) else 0), line)
        if isinstance(value, str) and _SURROGATE.search(value):
            value = Broken(message="is not Unicode: it holds half of a surrogate pair")
        node = Node(value, self._line(line))
        if anchor is not None:
            self._anchors[anchor] = _Anchored(node=node, cost=self._spent - before, height=0)
        self._put(node, height=0)

    def open(self, *, mapping: bool, line: int, anchor: str | None = None, broken: Broken | None = None) -> None:
        """A container begins. With ``broken`` it is read, and then is that instead."""
        if len(self._stack) >= MAX_DEPTH:
            raise TextError(line, f"nested deeper than {MAX_DEPTH} levels")
        if anchor is not None:
            self._anchors[anchor] = None
        spent = self._spent
        self._spend(NODE_COST, line)
        line = self._line(line)
        self._stack.append(_Open(line=line, anchor=anchor, broken=broken, is_mapping=mapping, spent=spent))

    def close(self) -> None:
        """The container that was opened last ends."""
        done = self._stack.pop()
        if done.merge is not None:
            _merge(done.members, done.merge)
        value: Value = done.members if done.is_mapping else done.elements
        node = Node(value if done.broken is None else done.broken, done.line)
        if done.anchor is not None:
            cost = self._spent - done.spent
            self._anchors[done.anchor] = _Anchored(node=node, cost=cost, height=done.height)
        self._put(node, height=done.height)

    def alias(self, name: str, *, line: int) -> None:
        """What was anchored under this name, once more."""
        if name not in self._anchors:
            raise TextError(line, f"found undefined alias {name!r}")
        anchored = self._anchors[name]
        if anchored is None:
            raise TextError(line, f"alias {name!r} stands inside of what it refers to")
        if len(self._stack) + anchored.height > MAX_DEPTH:
            raise TextError(line, f"nested deeper than {MAX_DEPTH} levels, aliases followed")
        self._spend(anchored.cost, line)
        self._put(Node(anchored.node.value, self._line(line)), height=anchored.height)

    def _spend(self, cost: int, line: int) -> None:
        self._spent += cost
        if self._spent > MAX_COST:
            raise TextError(
                line,
                f"the text is too large: more than {MAX_COST} bytes, aliases followed and each value counted as "
                f"{NODE_COST} plus its characters, each document as {DOCUMENT_COST} besides; split it into several "
                "files",
            )

    def _line(self, line: int) -> int:
        """A member stands where its name stands."""
        name = self._stack[-1].name if self._stack else None
        return line if name is None else name.line

    def _put(self, node: Node, *, height: int) -> None:
        if not self._stack:
            self.root = node
            return
        top = self._stack[-1]
        top.height = max(top.height, height + 1)
        if not top.is_mapping:
            top.elements.append(node)
        elif top.name is None:
            top.name = node
        else:
            _add(top, top.name, node)
            top.name = None


def _add(mapping: _Open, name: Node, node: Node) -> None:
    key = name.value
    if key is MERGE and mapping.merge is None:
        mapping.merge = node
    elif key is MERGE:
        mapping.members["<<"] = Node(Broken(message='duplicate field "<<"'), name.line)
    elif isinstance(key, Broken):
        mapping.members["?"] = Node(Broken(message=f"the name of this field {key.message}"), name.line)
    elif not isinstance(key, str):
        text = "?" if isinstance(key, list | dict) else str(key)
        message = f"the name of a field must be a string, not {type_name(key)}; quote it"
        mapping.members[text] = Node(Broken(message=message), name.line)
    elif key in mapping.members:
        before = mapping.members[key]
        first = before.value.first if isinstance(before.value, Duplicate) else before.line
        mapping.members[key] = Node(Duplicate(first=first), name.line)
    else:
        mapping.members[key] = node


def _merge(members: dict[str, Node], merged: Node) -> None:
    """YAML 1.1: the merged mappings' members are added "unless the key already exists"; earlier ones in a list win."""
    sources = merged.value if isinstance(merged.value, list) else [merged]
    for source in sources:
        if not isinstance(source.value, dict):
            message = f"a merge key takes an object or an array of objects, not {type_name(source.value)}"
            members["<<"] = Node(Broken(message=message), merged.line)
            return
        for name, node in source.value.items():
            members.setdefault(name, node)


_TYPE_NAMES: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    Broken: "unreadable",
}


def type_name(value: Value) -> str:
    """JSON's word for what a value is, as the API server's schema validation names types."""
    return "null" if value is None else _TYPE_NAMES[type(value)]
