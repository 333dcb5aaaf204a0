"""cel-go's validators: errors of an expression that is well typed (cel/validator.go, ext/formatting.go).

In this order: constant durations, timestamps and regular expressions; lists and maps of one type only, also where dyn
would permit more, except within ``format``; format strings with their arguments.

``[?x]`` and ``{?k: x}`` with an x that is dyn end the API server's compiler with a panic; here they are type
errors.
"""

from collections.abc import Iterator
from typing import Any, Final

from gateway.cel.checker.checker import Checked
from gateway.cel.checker.unification import equivalent, unwrap_optional
from gateway.cel.libraries import regexes
from gateway.cel.libraries.formatting import COMPLAINTS, Malformed, interpolate
from gateway.cel.parser import ast
from gateway.cel.parser.ast import Node, walk
from gateway.cel.parser.errors import Problem
from gateway.cel.values.durations import NANOSECONDS, DurationError, parse_duration
from gateway.cel.values.faults import Fault
from gateway.cel.values.timestamps import parse_timestamp, timestamp
from gateway.cel.values.types import Kind, Type, optional_of


def validate(root: Node, checked: Checked) -> tuple[Problem, ...]:
    """The errors in the constants of an expression."""
    nodes = list(walk(root))
    exempt = {part for node in nodes if _formats(node) for part in walk(node) if part is not node}
    return (
        *_constants(nodes),
        *(problem for node in nodes if node not in exempt for problem in _mixed(node, checked)),
        *(problem for node in nodes if _formats(node) for problem in _format(node, checked)),
    )


# ---------------------------------------------------------------------------------------------- constants
def _constants(nodes: list[Node]) -> Iterator[Problem]:
    for name in ("duration", "timestamp", "matches"):
        for node in nodes:
            if not isinstance(node, ast.Call) or node.function.removeprefix(".") != name or not node.arguments:
                continue
            argument = node.arguments[0]
            if isinstance(argument, ast.Literal) and _invalid(name, argument.value):
                yield Problem(offset=argument.offset, message=f"invalid {name} argument")


def _invalid(name: str, value: Any) -> bool:
    if name == "matches":
        # cel-go looks at the first argument even of the global form, where it is the text.
        return isinstance(value, str) and regexes.pattern_error(value) is not None
    try:
        if name == "duration" and isinstance(value, str):
            parse_duration(value)
            return False
        if name == "timestamp" and type(value) is int:
            timestamp(value * NANOSECONDS, 0)
            return False
        return name == "duration" or not isinstance(value, str) or parse_timestamp(value) is None
    except (Fault, DurationError):
        return True


# ---------------------------------------------------------------------------------------------- aggregates
def _mixed(node: Node, checked: Checked) -> Iterator[Problem]:
    if isinstance(node, ast.ListLiteral):
        yield from _mixed_list(node, checked)
    elif isinstance(node, ast.MapLiteral):
        yield from _mixed_map(node, checked)


def _mixed_list(node: ast.ListLiteral, checked: Checked) -> Iterator[Problem]:
    """The first element that is of another type than the first one."""
    first: Type | None = None
    for index, element in enumerate(node.elements):
        kind = checked.types[element]
        if index in node.optional:
            kind, optional = unwrap_optional(kind)
            if not optional:
                yield _mismatch(element, optional_of(kind), kind)
        if first is None:
            first = kind
        elif not equivalent(first, kind):
            yield _mismatch(element, first, kind)
            return


def _mixed_map(node: ast.MapLiteral, checked: Checked) -> Iterator[Problem]:
    first: tuple[Type, Type] | None = None
    for entry in node.entries:
        key, value = checked.types[entry.key], checked.types[entry.value]
        if entry.optional:
            value, optional = unwrap_optional(value)
            if not optional:
                yield _mismatch(entry.value, optional_of(value), value)
        if first is None:
            first = key, value
            continue
        if not equivalent(first[0], key):
            yield _mismatch(entry.key, first[0], key)
        if not equivalent(first[1], value):
            yield _mismatch(entry.value, first[1], value)


def _mismatch(node: Node, expected: Type, found: Type) -> Problem:
    return Problem(offset=node.offset, message=f"expected type '{expected.displayed}' but found '{found.displayed}'")


# ------------------------------------------------------------------------------------------------- format
def _formats(node: Node) -> bool:
    return isinstance(node, ast.Call) and node.function == "format"


def _format(node: Node, checked: Checked) -> Iterator[Problem]:
    if not isinstance(node, ast.Call) or not isinstance(node.target, ast.Literal) or len(node.arguments) != 1:
        return
    text, arguments = node.target.value, node.arguments[0]
    if not isinstance(text, str) or not isinstance(arguments, ast.ListLiteral):
        return
    wrong: list[Node] = []

    def examine(clause: str, precision: int | None, index: int) -> str:
        del precision
        found = _unfit(clause.lower(), arguments.elements[index], checked)
        if found is not None:
            wrong.append(found)
            complaint = COMPLAINTS[clause.lower()].format(checked.types[found].name)
            raise Malformed(f"error during formatting: {complaint}")
        return ""

    try:
        _, used = interpolate(text, len(arguments.elements), examine, checking=True)
    except Malformed as error:
        yield Problem(offset=(wrong[0] if wrong else node).offset, message=str(error))
        return
    if len(arguments.elements) > used:
        counts = f"(expected {used}, got {len(arguments.elements)})"
        yield Problem(offset=node.offset, message=f"too many arguments supplied to string.format {counts}")


_FITTING: Final = {
    "d": {"int", "uint"},
    "f": {"double", "string"},
    "e": {"double", "string"},
    "b": {"int", "uint", "bool"},
    "x": {"int", "uint", "string", "bytes"},
    "o": {"int", "uint"},
}
_SHOWN_KINDS: Final = frozenset({Kind.BASIC, Kind.TIME, Kind.LIST, Kind.MAP, Kind.TYPE, Kind.NULL, Kind.DYN})


def _unfit(clause: str, node: Node, checked: Checked) -> Node | None:
    """The argument, or what in it, does not go with its clause."""
    kind = checked.types[node]
    if clause != "s":
        return None if kind.kind is Kind.DYN or kind.name in _FITTING[clause] else node
    if kind.kind not in _SHOWN_KINDS:
        return node
    if isinstance(node, ast.ListLiteral):
        inner: tuple[Node, ...] = node.elements
    elif isinstance(node, ast.MapLiteral):
        inner = tuple(part for entry in node.entries for part in (entry.key, entry.value))
    else:
        return None
    return next((found for part in inner if (found := _unfit("s", part, checked)) is not None), None)
