"""Types of expressions: cel-go's checker/checker.go, with its messages.

The walk goes on after an error: what cannot be typed has the type ERROR, which is compatible with all types, so that
one error is reported once. The result has the type of every node, and what names and calls refer to.
"""

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from gateway.cel.checker.declarations import Declarations
from gateway.cel.checker.unification import (
    Substitutions,
    assign,
    is_dyn_or_error,
    most_general,
    substitute,
    unwrap_optional,
)
from gateway.cel.libraries.overloads import Function, Overload
from gateway.cel.parser import ast
from gateway.cel.parser.ast import Node
from gateway.cel.parser.errors import Problem
from gateway.cel.values import types
from gateway.cel.values.messages import WELL_KNOWN
from gateway.cel.values.reflection import type_of
from gateway.cel.values.types import Kind, Type, list_of, map_of, optional_of, parameter


class Reference(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a call refers to. ``target`` is None for a function whose name has dots: ``optional.of(x)``."""

    function: Function
    overloads: tuple[Overload, ...]
    target: Node | None


class Checked(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What was found out.

    ``names``: nodes that are names of variables or types, with dots if they have any. ``variables``: those of the
    environment that the expression names.
    """

    type: Type
    types: Mapping[Node, Type]
    names: Mapping[Node, str]
    variables: tuple[str, ...]
    calls: Mapping[Node, Reference]
    problems: tuple[Problem, ...]


def check(node: Node, declarations: Declarations) -> Checked:
    """Type an expression."""
    checker = _Checker(declarations)
    checker.check(node)
    found = {part: substitute(checker.substitutions, kind, finally_dyn=True) for part, kind in checker.types.items()}
    return Checked(
        type=found[node],
        types=found,
        names=checker.names,
        variables=tuple(sorted(checker.variables)),
        calls=checker.calls,
        problems=tuple(checker.problems),
    )


def qualified(node: Node) -> str | None:
    """``a.b.c`` as a name, if it is one."""
    parts: list[str] = []
    while isinstance(node, ast.Select) and not node.test:
        parts.append(node.member)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, ast.Name) else None


_MOST_PROBLEMS: Final = 1_000
"""A hundred are shown; in a chain of optMaps each link doubles those of the links before it."""


class _Checker:
    def __init__(self, declarations: Declarations) -> None:
        self.types: dict[Node, Type] = {}
        self.names: dict[Node, str] = {}
        self.variables: set[str] = set()
        self.calls: dict[Node, Reference] = {}
        self.problems: list[Problem] = []
        self.substitutions: Substitutions = {}
        self._found: dict[Node, tuple[Problem, ...]] = {}
        self._scope: ChainMap[str, Type] = ChainMap(declarations.names)
        self._declared = declarations.variables
        self._members = declarations.members
        self._functions = declarations.functions
        self._variables = 0

    def check(self, node: Node) -> Type:
        """The type of a node, which is noted as well.

        A node with two parents is checked once; but its errors are reported twice, as in cel-go.
        """
        known = self.types.get(node)
        if known is not None:
            if len(self.problems) < _MOST_PROBLEMS:
                self.problems += self._found.get(node, ())
            return known
        before = len(self.problems)
        known = self.types[node] = self._HANDLERS[type(node)](self, node)
        if len(self.problems) > before:
            self._found[node] = tuple(self.problems[before:])
        return known

    # ------------------------------------------------------------------------------------------ names
    def _lookup(self, node: Node, name: str) -> Type | None:
        name = name.removeprefix(".")
        found = self._scope.get(name)
        if found is not None:
            self.names[node] = name
            if name in self._declared and not any(name in scope for scope in self._scope.maps[:-1]):
                self.variables.add(name)
        return found

    def _name(self, node: ast.Name) -> Type:
        found = self._lookup(node, node.name)
        return self._undeclared(node, node.name) if found is None else found

    def _undeclared(self, node: Node, name: str) -> Type:
        return self._problem(node, f"undeclared reference to '{name}' (in container '')")

    def _select(self, node: ast.Select) -> Type:
        name = qualified(node)
        if name is not None and (found := self._lookup(node, name)) is not None:
            return found
        result = self._member(node, node.operand, node.member, optional=False)
        return types.BOOL if node.test else substitute(self.substitutions, result)

    def _member(self, node: Node, operand: Node, name: str, *, optional: bool) -> Type:
        kind = self.check(operand)
        given = substitute(self.substitutions, kind)
        target, was_optional = unwrap_optional(given)
        result = types.DYN
        if target.kind is Kind.MAP:
            result = target.parameters[1]
        elif target.kind is Kind.MESSAGE:
            result = self._member_of(node, target.name, name)
        elif target.kind is Kind.PARAMETER:
            self._assign(types.DYN, target)
        elif not is_dyn_or_error(target):
            self._problem(node, f"type '{target.displayed}' does not support field selection")
        return optional_of(result) if was_optional or optional else result

    def _member_of(self, node: Node, message: str, name: str) -> Type:
        if message not in self._members:
            return self._problem(node, f"unexpected failed resolution of '{message}'")
        found = self._members[message].get(name)
        return self._problem(node, f"undefined field '{name}'") if found is None else found

    # ------------------------------------------------------------------------------------------ calls
    def _call(self, node: ast.Call) -> Type:
        if node.function == "_?._":
            return self._optional_select(node)
        for argument in node.arguments:
            self.check(argument)
        if node.target is None:
            return self._resolve_named(node, node.function.removeprefix("."), node.function)
        prefix = qualified(node.target)
        if prefix is not None and f"{prefix}.{node.function}".removeprefix(".") in self._functions:
            name = f"{prefix}.{node.function}"
            return self._resolve_named(node, name.removeprefix("."), name)
        self.check(node.target)
        found = self._functions.get(node.function)
        if found is None:
            return self._undeclared(node, node.function)
        return self._resolve(node, found, node.target)

    def _resolve_named(self, node: ast.Call, name: str, shown: str) -> Type:
        found = self._functions.get(name)
        return self._undeclared(node, shown) if found is None else self._resolve(node, found, None)

    def _optional_select(self, node: ast.Call) -> Type:
        operand, name = node.arguments
        if not isinstance(name, ast.Literal):
            raise TypeError(name)  # the parser makes no other
        self.types[name] = types.STRING
        result = self._member(node, operand, name.value, optional=True)
        return substitute(self.substitutions, result)

    def _resolve(self, node: ast.Call, function: Function, target: Node | None) -> Type:
        given = [self.types[part] for part in (*([] if target is None else [target]), *node.arguments)]
        if function.name in {"_&&_", "_||_"}:
            return self._logical(node, function, given)
        result: Type | None = None
        matching: list[Overload] = []
        for overload in function.overloads:
            if overload.member is not (target is not None):
                continue
            wanted, returned = self._instantiate(overload)
            if not assign(self.substitutions, given, wanted):
                continue
            matching.append(overload)
            returned = substitute(self.substitutions, returned)
            if result is None:
                result = returned
            elif result.kind is not Kind.DYN and result != returned:
                result = types.DYN
        if result is None:
            return self._no_overload(node, function, given, target)
        self.calls[node] = Reference(function=function, overloads=tuple(matching), target=target)
        return result

    def _no_overload(self, node: Node, function: Function, given: list[Type], target: Node | None) -> Type:
        shown = [substitute(self.substitutions, kind, finally_dyn=True).displayed for kind in given]
        receiver = f"{shown.pop(0)}." if target is not None else ""
        applied = f"{receiver}({', '.join(shown)})"
        return self._problem(node, f"found no matching overload for '{function.name}' applied to '{applied}'")

    def _logical(self, node: ast.Call, function: Function, given: list[Type]) -> Type:
        wrong = False
        for argument, kind in zip(node.arguments, given, strict=True):
            if not self._assign(kind, types.BOOL):
                self._mismatch(argument, types.BOOL, kind)
                wrong = True
        if wrong:
            return types.ERROR
        self.calls[node] = Reference(function=function, overloads=function.overloads, target=None)
        return types.BOOL

    def _instantiate(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """An overload's types with type parameters that no other call uses."""
        fresh: dict[Type, Type] = {}
        for kind in (overload.result, *overload.parameters):
            self._freshen(kind, fresh)
        if not fresh:
            return overload.parameters, overload.result
        return tuple(substitute(fresh, kind) for kind in overload.parameters), substitute(fresh, overload.result)

    def _freshen(self, kind: Type, fresh: dict[Type, Type]) -> None:
        if kind.kind is Kind.PARAMETER and kind not in fresh:
            fresh[kind] = self._variable()
        for inner in kind.parameters:
            self._freshen(inner, fresh)

    def _variable(self) -> Type:
        self._variables += 1
        return parameter(f"_var{self._variables - 1}")

    # --------------------------------------------------------------------------------------- literals
    def _literal(self, node: ast.Literal) -> Type:
        return type_of(node.value)

    def _list(self, node: ast.ListLiteral) -> Type:
        joined: Type | None = None
        for index, element in enumerate(node.elements):
            kind = self.check(element)
            if index in node.optional:
                kind = self._unwrapped(element, kind)
            joined = self._join(joined, kind)
        return list_of(joined or self._variable())

    def _map(self, node: ast.MapLiteral) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._join(key, self.check(entry.key))
            kind = self.check(entry.value)
            if entry.optional:
                kind = self._unwrapped(entry.value, kind)
            value = self._join(value, kind)
        if key is None or value is None:
            return map_of(self._variable(), self._variable())
        return map_of(key, value)

    def _unwrapped(self, node: Node, kind: Type) -> Type:
        inner, optional = unwrap_optional(kind)
        if not optional and inner.kind is not Kind.DYN:
            self._mismatch(node, optional_of(inner), inner)
        return inner

    def _join(self, previous: Type | None, current: Type) -> Type:
        """What two elements have in common: dyn if nothing. (``validators`` reports it as an error.)"""
        if previous is None:
            return current
        return most_general(previous, current) if self._assign(previous, current) else types.DYN

    def _message(self, node: ast.MessageLiteral) -> Type:
        named = self._lookup(node, node.name)
        if named is None:
            return self._undeclared(node, node.name)
        result = types.ERROR
        if named.kind is not Kind.TYPE:
            self._problem(node, f"'{named.name}' is not a type")
        elif named.parameters and (named.parameters[0].kind is Kind.MESSAGE or self.names[node] in WELL_KNOWN):
            result = named.parameters[0]
        else:
            inner = named.parameters[0].name if named.parameters else named.name
            self._problem(node, f"'{inner}' is not a message type")
        for member in node.members:
            value = self.check(member.value)
            wanted = self._member_of(member, node.name.removeprefix("."), member.name)
            value = self._unwrapped(member.value, value) if member.optional else value
            if not self._assign(wanted, value):
                shown = f"'{wanted.displayed}' but provided type is '{value.displayed}'"
                self._problem(member, f"expected type of field '{member.name}' is {shown}")
        return result

    # ------------------------------------------------------------------------------------------ folds
    def _fold(self, node: ast.Fold) -> Type:
        kind = self.check(node.over)
        accumulator = self.check(node.initial)
        over = substitute(self.substitutions, kind)
        first, second = self._range(node, over)
        outer = self._scope
        self._scope = outer.new_child({node.accumulator: accumulator})
        within = self._scope
        variables = {node.variable: first} | ({node.second: second} if node.second else {})
        self._scope = within.new_child(variables)
        self._assert(node.condition, types.BOOL)
        self._assert(node.step, accumulator)
        self._scope = within
        result = self.check(node.result)
        self._scope = outer
        return substitute(self.substitutions, result)

    def _range(self, node: ast.Fold, over: Type) -> tuple[Type, Type]:
        """The types of one or two variables."""
        if over.kind is Kind.LIST:
            return (types.INT, over.parameters[0]) if node.second else (over.parameters[0], types.ERROR)
        if over.kind is Kind.MAP:
            return over.parameters[0], over.parameters[1]
        if over.kind in {Kind.DYN, Kind.ERROR, Kind.PARAMETER}:
            self._assign(types.DYN, over)
            return types.DYN, types.DYN
        wrong = "cannot be range of a comprehension (must be list, map, or dynamic)"
        self._problem(node.over, f"expression of type '{over.displayed}' {wrong}")
        return types.ERROR, types.ERROR

    def _assert(self, node: Node, wanted: Type) -> None:
        kind = self.check(node)
        if not self._assign(wanted, kind):
            self._mismatch(node, wanted, kind)

    # --------------------------------------------------------------------------------------- problems
    def _assign(self, given: Type, wanted: Type) -> bool:
        return assign(self.substitutions, (given,), (wanted,))

    def _mismatch(self, node: Node, expected: Type, found: Type) -> None:
        self._problem(node, f"expected type '{expected.displayed}' but found '{found.displayed}'")

    def _problem(self, node: Node, message: str) -> Type:
        self.problems.append(Problem(offset=node.offset, message=message))
        return types.ERROR

    _HANDLERS: Final[dict[type[Node], Callable[..., Type]]] = {
        ast.Literal: _literal,
        ast.Name: _name,
        ast.Select: _select,
        ast.Call: _call,
        ast.ListLiteral: _list,
        ast.MapLiteral: _map,
        ast.MessageLiteral: _message,
        ast.Fold: _fold,
    }
