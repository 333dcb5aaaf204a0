"""The abstract syntax tree of an expression: values only.

Nodes are compared by identity, since what the checker finds out about a node (its type, what it refers to) is kept
beside the tree and not in it. ``offset`` is the code point in the text that an error about the node points to.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final


class Repetition(Enum):
    """What a fold stands for: which macro it came from."""

    ALL = "all"
    EXISTS = "exists"
    EXISTS_ONE = "exists_one"
    LIST = "map, filter and transformList"
    MAP = "transformMap and transformMapEntry"
    BIND = "optMap, optFlatMap and sortBy: no repetition, a name for a value"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Node:
    """Any expression."""

    offset: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Literal(Node):
    """A constant, as the value that it has at run time."""

    value: Any


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Name(Node):
    """An identifier; with a leading dot if it was written so."""

    name: str


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Select(Node):
    """``operand.member``, or ``has(operand.member)`` if ``test`` is set."""

    operand: Node
    member: str
    test: bool = False


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Call(Node):
    """``function(arguments)`` or ``target.function(arguments)``; operators are functions with names such as ``_+_``."""

    function: str
    target: Node | None = None
    arguments: tuple[Node, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ListLiteral(Node):
    """``[a, ?b]``: the indexes in ``optional`` are elements that appear only if they have a value."""

    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Entry(Node):
    """``key: value`` of a map, or ``?key: value``."""

    key: Node
    value: Node
    optional: bool = False


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class MapLiteral(Node):
    """``{key: value}``."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Member(Node):
    """``member: value`` of a message."""

    name: str
    value: Node
    optional: bool = False


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class MessageLiteral(Node):
    """``Type{member: value}``."""

    name: str
    members: tuple[Member, ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Fold(Node):
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One mistake in an expression: where (a code point, None for nowhere in particular) and what."""

    offset: int | None
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Parsed:
    """What came of parsing: a tree, or problems."""

    tree: Node | None
    problems: tuple[Problem, ...] = field(default=())


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
