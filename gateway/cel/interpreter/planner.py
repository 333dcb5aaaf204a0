"""Tree and types -> a function that evaluates the expression (cel-go's interpreter/planner.go).

Some of it is evaluated when planning, as cel-go does with OptOptimize, and costs nothing later: constant lists and
maps, conversions of constants (an error in one is an error of the whole expression: ``program instantiation
failed``), membership in a constant list, constant regular expressions.

Arguments are evaluated from left to right, and the first error is the call's. (cel-go evaluates both of two arguments;
that shows only in the cost of a call with an error.)
"""

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from gateway.cel.checker.checker import Checked
from gateway.cel.interpreter.attributes import Attribute, Qualifier, check_key, resolver, value_of
from gateway.cel.interpreter.calls import call
from gateway.cel.interpreter.folds import Loop, loop
from gateway.cel.interpreter.frame import Frame, Run
from gateway.cel.interpreter.interpretables import alternative, differs, equals, list_of, logical, map_of, message_of
from gateway.cel.libraries.conversions import CONVERSIONS_BY_NAME
from gateway.cel.libraries.regexes import PATTERN_ARGUMENT, pattern_error
from gateway.cel.parser import ast
from gateway.cel.parser.ast import Node, Repetition
from gateway.cel.values.containers import Keys, made_of
from gateway.cel.values.faults import Aborted, Fault
from gateway.cel.values.numbers import is_number, lossless
from gateway.cel.values.types import Kind


class Uninstantiable(Exception):  # noqa: N818 - it is named after what the expression is
    """A constant part of the expression has no value; the text says why."""


class Plan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """``run`` evaluates the expression in a frame whose slots hold first the values of ``variables``, which are those
    that the expression names, and then ``locals`` more.
    """

    run: Run
    variables: tuple[str, ...]
    locals: int


class _Part(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A planned node: a constant, an attribute that can be led further, or just something to run."""

    run: Run
    constant: bool = False
    value: Any = None
    attribute: Attribute | None = None


def plan(node: Node, checked: Checked) -> Plan:
    """Plan an expression that has no problems; raises Uninstantiable."""
    planner = _Planner(checked)
    try:
        part = planner.part(node)
    except (Fault, Aborted) as fault:
        raise Uninstantiable(fault.message) from fault
    return Plan(run=part.run, variables=checked.variables, locals=planner.slots - len(checked.variables))


def _constant(value: Any) -> _Part:
    return _Part(run=lambda _frame: value, constant=True, value=value)


def _leading(attribute: Attribute) -> _Part:
    return _Part(run=value_of(attribute), attribute=attribute)


class _Pending(msgspec.Struct, eq=False):
    """What a name of optMap or sortBy stands for: evaluated when it is first used, and then kept, errors too."""

    run: Run
    done: bool = False
    value: Any = None
    fault: Fault | None = None

    def get(self, frame: Frame) -> Any:
        if not self.done:
            self.done = True
            try:
                self.value = self.run(frame)
            except Fault as fault:
                self.fault = fault
        if self.fault is not None:
            raise self.fault
        return self.value


class _Planner:
    def __init__(self, checked: Checked) -> None:
        self.checked = checked
        self.slots = len(checked.variables)
        self._scope: dict[str, Run] = {}
        self._parts: dict[Node, _Part] = {}

    def part(self, node: Node) -> _Part:
        """The plan of a node; a node with two parents is planned once."""
        known = self._parts.get(node)
        if known is None:
            known = self._parts[node] = self._HANDLERS[type(node)](self, node)
        return known

    # ------------------------------------------------------------------------------------------ names
    def _name(self, node: Node) -> _Part:
        name = self.checked.names[node]
        local = self._scope.get(name)
        if local is not None:
            return _leading(Attribute(start=local))
        kind = self.checked.types[node]
        if kind.kind is Kind.TYPE:
            if kind.parameters and kind.parameters[0].kind is Kind.MESSAGE:
                raise Uninstantiable(f"reference to undefined type: {name}")
            return _constant(kind.parameters[0] if kind.parameters else kind)
        return _leading(Attribute(start=_slot(self.checked.variables.index(name))))

    def _select(self, node: ast.Select) -> _Part:
        if node in self.checked.names:
            return self._name(node)
        start = self._start(node.operand)
        return _leading(start.extended(Qualifier(key=node.member, test=node.test)))

    def _start(self, node: Node) -> Attribute:
        part = self.part(node)
        return part.attribute or Attribute(start=part.run)

    def _indexed(self, node: ast.Call) -> _Part:
        operand, index = node.arguments
        start, part, optional = self._start(operand), self.part(index), node.function != "_[_]"
        if part.constant:
            check_key(part.value)
            return _leading(start.extended(Qualifier(key=part.value, optional=optional)))
        run = part.run if part.attribute is None else resolver(part.attribute)
        return _leading(start.extended(Qualifier(run=run, optional=optional)))

    # ------------------------------------------------------------------------------------------ calls
    def _call(self, node: ast.Call) -> _Part:
        special = self._SPECIAL.get(node.function)
        if special is not None and node.target is None:
            return special(self, node)
        found = self.checked.calls[node]
        nodes = (*(() if found.target is None else (found.target,)), *node.arguments)
        parts = [self.part(part) for part in nodes]
        if found.target is not None and node.function in {"or", "orValue"}:
            return _Part(run=alternative(parts[0].run, parts[1].run, node.function))
        compiled = self._constant_pattern(node.function, parts)
        run = call(found.function, found.overloads, tuple(part.run for part in parts), nameless=compiled)
        if len(parts) == 1 and parts[0].constant and found.function.name in CONVERSIONS_BY_NAME:
            return _constant(run(Frame([])))
        return _Part(run=run)

    def _constant_pattern(self, function: str, parts: list[_Part]) -> bool:
        """Whether a call has a constant regular expression, which is then checked."""
        index = PATTERN_ARGUMENT.get(function)
        if index is None or index >= len(parts):
            return False
        pattern = parts[index]
        if not pattern.constant or not isinstance(pattern.value, str):
            return False
        wrong = pattern_error(pattern.value)
        if wrong is not None:
            raise Uninstantiable(wrong)
        return True

    def _logical(self, node: ast.Call) -> _Part:
        left, right = (self.part(argument).run for argument in node.arguments)
        return _Part(run=logical(left, right, settling=node.function == "_||_"))

    def _conditional(self, node: ast.Call) -> _Part:
        choice, then, otherwise = node.arguments
        branches = (self._start(then), self._start(otherwise))
        return _leading(Attribute(choice=self.part(choice).run, branches=branches))

    def _equality(self, node: ast.Call) -> _Part:
        left, right = (self.part(argument).run for argument in node.arguments)
        return _Part(run=equals(left, right) if node.function == "_==_" else differs(left, right))

    def _membership(self, node: ast.Call) -> _Part:
        found = self.checked.calls[node]
        item, container = map(self.part, node.arguments)
        one_overload = len(found.overloads) == 1 and found.overloads[0].identity == "in_list"
        if one_overload and container.constant and all(_plain(value) for value in container.value):
            return _member_of(item, container.value)
        return _Part(run=call(found.function, found.overloads, (item.run, container.run)))

    # --------------------------------------------------------------------------------------- literals
    def _literal(self, node: ast.Literal) -> _Part:
        return _constant(node.value)

    def _list(self, node: ast.ListLiteral) -> _Part:
        parts = [self.part(element) for element in node.elements]
        if all(part.constant for part in parts) and not node.optional:
            return _constant([part.value for part in parts])
        return _Part(run=list_of(tuple(part.run for part in parts), node.optional))

    def _map(self, node: ast.MapLiteral) -> _Part:
        entries = [(self.part(entry.key), self.part(entry.value), entry.optional) for entry in node.entries]
        if all(key.constant and value.constant and not optional for key, value, optional in entries):
            return _constant(made_of([(key.value, value.value) for key, value, _ in entries]))
        return _Part(run=map_of(tuple((key.run, value.run, optional) for key, value, optional in entries)))

    def _message(self, node: ast.MessageLiteral) -> _Part:
        members = [(member.name, self.part(member.value).run, member.optional) for member in node.members]
        return _Part(run=message_of(self.checked.names[node], members))

    # ------------------------------------------------------------------------------------------ folds
    def _fold(self, node: ast.Fold) -> _Part:
        if node.repetition is Repetition.BIND:
            return self._bind(node)
        over, outer = self.part(node.over).run, self._scope
        first, second = self._new_slot(), self._new_slot() if node.second else -1
        self._scope = {**outer, node.variable: _slot(first)} | ({node.second: _slot(second)} if node.second else {})
        body = self.part(node.body)
        planned = Loop(
            repetition=node.repetition,
            over=over,
            first=first,
            second=second,
            body=body.run,
            key=None if node.key is None else self.part(node.key).run,
            filter=None if node.filter is None else self.part(node.filter).run,
            constant_body=body.constant,
        )
        self._scope = outer
        return _Part(run=loop(planned))

    def _bind(self, node: ast.Fold) -> _Part:
        value, outer, slot = self.part(node.initial).run, self._scope, self._new_slot()
        self._scope = {**outer, node.accumulator: lambda frame: frame.slots[slot].get(frame)}
        result = self.part(node.result).run
        self._scope = outer

        def run(frame: Frame) -> Any:
            frame.slots[slot] = _Pending(value)
            return result(frame)

        return _Part(run=run)

    def _new_slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    _HANDLERS: ClassVar[dict[type[Node], Callable[..., _Part]]] = {
        ast.Literal: _literal,
        ast.Name: _name,
        ast.Select: _select,
        ast.Call: _call,
        ast.ListLiteral: _list,
        ast.MapLiteral: _map,
        ast.MessageLiteral: _message,
        ast.Fold: _fold,
    }
    _SPECIAL: ClassVar[dict[str, Callable[..., _Part]]] = {
        **dict.fromkeys(("_&&_", "_||_"), _logical),
        **dict.fromkeys(("_==_", "_!=_"), _equality),
        **dict.fromkeys(("_[_]", "_[?_]", "_?._"), _indexed),
        "_?_:_": _conditional,
        "@in": _membership,
    }


def _slot(index: int) -> Run:
    return lambda frame: frame.slots[index]


def _plain(value: Any) -> bool:
    return isinstance(value, bool | str) or is_number(value)


def _member_of(item: _Part, values: list[Any]) -> _Part:
    """Membership in a constant list of plain values; in an empty one, the item is not evaluated."""
    if not values:
        return _constant(value=False)
    keys = Keys()
    for value in values:
        keys.add(value)
        if isinstance(value, float) and (whole := lossless(value)) is not None:
            keys.add(whole)
    run = item.run

    def member(frame: Frame) -> bool:
        return run(frame) in keys

    return _Part(run=member)
