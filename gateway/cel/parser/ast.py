"""The abstract syntax tree of an expression: values only.

Nodes are compared by identity, since what the checker finds out about a node (its type, what it refers to) is kept
beside the tree and not in it. ``offset`` is the code point in the text that an error about the node points to.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

import msgspec

from gateway.cel.parser.errors import Problem


class Repetition(Enum):
    """What a fold stands for: which macro it came from."""

    ALL = "all"
    EXISTS = "exists"
    EXISTS_ONE = "exists_one"
    LIST = "map, filter and transformList"
    MAP = "transformMap and transformMapEntry"
    BIND = "optMap, optFlatMap and sortBy: no repetition, a name for a value"


class Node(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Any expression."""

    offset: int


class Literal(Node, frozen=True, kw_only=True, eq=False):
    """A constant, as the value that it has at run time."""

    value: Any


class Name(Node, frozen=True, kw_only=True, eq=False):
    """An identifier; with a leading dot if it was written so."""

    name: str


class Select(Node, frozen=True, kw_only=True, eq=False):
    """``operand.member``, or ``has(operand.member)`` if ``test`` is set."""

    operand: Node
    member: str
    test: bool = False


class Call(Node, frozen=True, kw_only=True, eq=False):
    """``function(arguments)`` or ``target.function(arguments)``; operators are functions with names such as ``_+_``."""

    function: str
    target: Node | None = None
    arguments: tuple[Node, ...] = ()


class ListLiteral(Node, frozen=True, kw_only=True, eq=False):
    """``[a, ?b]``: the indexes in ``optional`` are elements that appear only if they have a value."""

    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


class Entry(Node, frozen=True, kw_only=True, eq=False):
    """``key: value`` of a map, or ``?key: value``."""

    key: Node
    value: Node
    optional: bool = False


class MapLiteral(Node, frozen=True, kw_only=True, eq=False):
    """``{key: value}``."""

    entries: tuple[Entry, ...]


class Member(Node, frozen=True, kw_only=True, eq=False):
    """``member: value`` of a message."""

    name: str
    value: Node
    optional: bool = False


class MessageLiteral(Node, frozen=True, kw_only=True, eq=False):
    """``Type{member: value}``."""

    name: str
    members: tuple[Member, ...]


class Fold(Node, frozen=True, kw_only=True, eq=False):
    """A comprehension, as the macros write it: see ``macros``.

    ``variable`` and ``second`` (or "") name what runs over ``over``; ``accumulator`` starts as ``initial`` and becomes
    ``step`` while ``condition`` holds; the value is ``result``. The checker reads these. What the plan needs stands in
    ``repetition``, ``body`` (predicate, transformation, or the entries), ``key`` and ``filter``.
    """

    over: Node
    variable: str
    second: str = ""
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node
    repetition: Repetition
    body: Node
    key: Node | None = None
    filter: Node | None = None


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of parsing: a tree, or problems."""

    tree: Node | None
    problems: tuple[Problem, ...] = ()


_LONGEST_WALK: Final = 500_000
"""Nodes. A text of 100,000 code points has at most as many, and a macro adds at most four to each of its own."""

_COUNTED: Final = frozenset({"_?_:_", "_[_]", "_[?_]", "_?._", "@in"})


def parts(node: Node) -> tuple[Node, ...]:  # noqa: PLR0911 - one return for each kind of node
    """The nodes directly below one."""
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return node.arguments if node.target is None else (node.target, *node.arguments)
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return tuple(part for entry in node.entries for part in (entry.key, entry.value))
        case MessageLiteral():
            return tuple(member.value for member in node.members)
        case Fold():
            return (node.over, node.initial, node.condition, node.step, node.result)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it, each once, parents first, without recursion."""
    pending, seen = [node], {node}
    while pending:
        current = pending.pop()
        yield current
        for part in reversed(parts(current)):
            if part not in seen:
                seen.add(part)
                pending.append(part)


def depth(node: Node) -> tuple[int, int]:
    """The levels of a tree, and how many operators, selections and calls of members nest in it.

    A node with two parents (optMap's target) is walked for each of them, so a chain of optMaps doubles the walk with
    every link; it is given up as too deep after ``_LONGEST_WALK`` nodes.
    """
    levels, nested, walked = 0, 0, 0
    pending = [(node, 1, 0)]
    while pending:
        current, level, count = pending.pop()
        count += _counts(current)
        levels, nested, walked = max(levels, level), max(nested, count), walked + 1
        if walked > _LONGEST_WALK:
            return walked, nested
        pending.extend((part, level + 1, count) for part in parts(current))
    return levels, nested


def _counts(node: Node) -> bool:
    """Whether cel-go's parser counts a node against its limit: not ``&&``, ``||``, ``!``, ``-x`` and plain calls."""
    if not isinstance(node, Call):
        return isinstance(node, Select | Fold)
    binary = node.function[0] == "_" == node.function[-1] and node.function not in {"_&&_", "_||_"}
    return node.target is not None or binary or node.function in _COUNTED
