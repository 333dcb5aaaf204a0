"""Macros: calls that are short for something longer (cel-go's parser/macro.go, ext/comprehensions.go, ext/lists.go).

| written                          | stands for                                                             |
| -------------------------------- | ---------------------------------------------------------------------- |
| has(a.b)                         | is there a b in a?                                                     |
| l.all(x, p), l.all(i, x, p)      | fold && over p, from true; errors count only if nothing is false       |
| l.exists(x, p), l.exists(i,x,p)  | fold || over p, from false; errors count only if nothing is true       |
| l.exists_one(x, p), existsOne(i, x, p) | count p == 1; errors always count                                |
| l.map(x, t), l.map(x, p, t)      | list of t where p                                                      |
| l.filter(x, p)                   | list of x where p                                                      |
| l.transformList(i, x, [p,] t)    | list of t where p                                                      |
| m.transformMap(k, v, [p,] t)     | map of k to t where p                                                  |
| m.transformMapEntry(k, v, [p,] e) | the entries of all maps e where p                                     |
| o.optMap(x, t), o.optFlatMap(x, t) | o.hasValue() ? optional.of(t with x for o.value()) : optional.none() |
| l.sortBy(x, key)                 | l.@sortByAssociatedKeys(l.map(x, key)), l evaluated once               |

All nodes that a macro adds stand where its opening parenthesis stands: there errors about them point.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from gateway.cel.parser import ast
from gateway.cel.parser.ast import (
    Call,
    Fold,
    ListLiteral,
    Literal,
    MapLiteral,
    Name,
    Node,
    Repetition,
    Select,
)
from gateway.cel.versions import Version

_RESULT: Final = "@result"
_OLD_RESULT: Final = "__result__"


class Misuse(Exception):  # noqa: N818 - it is named after what it is
    """A macro's arguments are not what it takes: the code point of the argument, and cel-go's words."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


Expander = Callable[[Call], Node]
Macros = Mapping[tuple[str, int, bool], Expander]
"""By name, number of arguments, and whether it is called on a target."""


def macros_of(version: Version) -> Macros:
    """The macros that a version of Kubernetes has."""
    return {key: expander for since, macros in _MACROS.items() if since <= version for key, expander in macros.items()}


def expand(call: Call, macros: Macros) -> Node:
    """What a call stands for if it is a macro's; else the call itself. Raises Misuse."""
    macro = macros.get((call.function, len(call.arguments), call.target is not None))
    return macro(call) if macro else call


class _Writer(msgspec.Struct, frozen=True):
    """Makes the nodes that a macro adds, all at one place."""

    offset: int

    def literal(self, value: object) -> Node:
        return Literal(offset=self.offset, value=value)

    def name(self, name: str) -> Node:
        return Name(offset=self.offset, name=name)

    @property
    def result(self) -> Node:
        return self.name(_RESULT)

    def call(self, function: str, *arguments: Node, target: Node | None = None) -> Node:
        return Call(offset=self.offset, function=function, target=target, arguments=arguments)

    def one(self, element: Node) -> Node:
        return ListLiteral(offset=self.offset, elements=(element,))


def _has(call: Call) -> Node:
    (argument,) = call.arguments
    if not isinstance(argument, Select):
        raise Misuse(argument.offset, "invalid argument to has() macro")
    return Select(offset=call.offset, operand=argument.operand, member=argument.member, test=True)


def _variables(call: Call, count: int) -> tuple[str, str]:
    """The names of one or two variables."""
    one_sorted = call.function in {"map", "filter", "sortBy"}
    names = []
    for argument in call.arguments[:count]:
        if not isinstance(argument, Name):
            wrong = "argument is not an identifier" if one_sorted else "argument must be a simple name"
            raise Misuse(argument.offset, wrong)
        names.append(argument.name)
    if count == 2 and names[0] == names[1]:  # noqa: PLR2004 - the two variables
        raise Misuse(call.arguments[1].offset, f"duplicate variable name: {names[0]}")
    for name, argument in zip(names, call.arguments, strict=False):
        if name in {_RESULT, _OLD_RESULT}:
            raise Misuse(argument.offset, "iteration variable overwrites accumulator variable")
    return (names[0], "") if count == 1 else (names[0], names[1])


def _quantifier(repetition: Repetition, count: int) -> Expander:
    def expanded(call: Call) -> Node:
        first, second = _variables(call, count)
        write, predicate = _Writer(call.offset), call.arguments[count]
        initial: Node = write.literal(repetition is Repetition.ALL)
        condition, result = write.literal(True), write.result
        if repetition is Repetition.ALL:
            condition = write.call("@not_strictly_false", write.result)
            step = write.call("_&&_", write.result, predicate)
        elif repetition is Repetition.EXISTS:
            condition = write.call("@not_strictly_false", write.call("!_", write.result))
            step = write.call("_||_", write.result, predicate)
        else:
            initial = write.literal(0)
            step = write.call("_?_:_", predicate, write.call("_+_", write.result, write.literal(1)), write.result)
            result = write.call("_==_", write.result, write.literal(1))
        return Fold(
            offset=call.offset,
            over=_target(call),
            variable=first,
            second=second,
            accumulator=_RESULT,
            initial=initial,
            condition=condition,
            step=step,
            result=result,
            repetition=repetition,
            body=predicate,
        )

    return expanded


def _list(count: int) -> Expander:
    """map, filter and transformList."""

    def expanded(call: Call) -> Node:
        first, second = _variables(call, count)
        write, rest = _Writer(call.offset), call.arguments[count:]
        if call.function == "filter":
            rest = (*rest, call.arguments[0])
        kept = rest[0] if len(rest) > 1 else None
        step = write.call("_+_", write.result, write.one(rest[-1]))
        return Fold(
            offset=call.offset,
            over=_target(call),
            variable=first,
            second=second,
            accumulator=_RESULT,
            initial=ListLiteral(offset=call.offset, elements=()),
            condition=write.literal(True),
            step=step if kept is None else write.call("_?_:_", kept, step, write.result),
            result=write.result,
            repetition=Repetition.LIST,
            body=rest[-1],
            filter=kept,
        )

    return expanded


def _map(call: Call) -> Node:
    """Both macros that make maps: transformMap and transformMapEntry."""
    first, second = _variables(call, 2)
    write, rest = _Writer(call.offset), call.arguments[2:]
    kept = rest[0] if len(rest) > 1 else None
    key = write.name(first) if call.function == "transformMap" else None
    inserted = (write.result, rest[-1]) if key is None else (write.result, key, rest[-1])
    step = write.call("cel.@mapInsert", *inserted)
    return Fold(
        offset=call.offset,
        over=_target(call),
        variable=first,
        second=second,
        accumulator=_RESULT,
        initial=MapLiteral(offset=call.offset, entries=()),
        condition=write.literal(True),
        step=step if kept is None else write.call("_?_:_", kept, step, write.result),
        result=write.result,
        repetition=Repetition.MAP,
        body=rest[-1],
        key=key,
        filter=kept,
    )


def _bind(offset: int, name: str, value: Node, result: Node) -> Node:
    """``result`` with ``name`` for ``value``, which is evaluated at most once."""
    write = _Writer(offset)
    return Fold(
        offset=offset,
        over=ListLiteral(offset=offset, elements=()),
        variable="#unused",
        accumulator=name,
        initial=value,
        condition=write.literal(False),
        step=write.name(name),
        result=result,
        repetition=Repetition.BIND,
        body=result,
    )


def _optional_map(call: Call) -> Node:
    variable, transformation = call.arguments
    if not isinstance(variable, Name):
        raise Misuse(variable.offset, f"{call.function}() variable name must be a simple identifier")
    write, target = _Writer(call.offset), _target(call)
    value = write.call("value", target=target)  # cel-go copies the target; for us one node may have two parents
    mapped = _bind(call.offset, variable.name, value, transformation)
    if call.function == "optMap":
        mapped = write.call("optional.of", mapped)
    return write.call("_?_:_", write.call("hasValue", target=target), mapped, write.call("optional.none"))


def _sort_by(call: Call) -> Node:
    target = _target(call)
    if isinstance(target, Literal | MapLiteral | ast.MessageLiteral):
        wrong = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise Misuse(target.offset, wrong)
    write, name = _Writer(call.offset), "@__sortBy_input__"
    keys = _list(1)(msgspec.structs.replace(call, function="map", target=write.name(name)))
    ordered = write.call("@sortByAssociatedKeys", keys, target=write.name(name))
    return _bind(call.offset, name, target, ordered)


def _target(call: Call) -> Node:
    if call.target is None:
        raise AssertionError(call.function)
    return call.target


_MACROS: Final[Mapping[Version, Macros]] = {
    Version(1, 0): {
        ("has", 1, False): _has,
        ("all", 2, True): _quantifier(Repetition.ALL, 1),
        ("exists", 2, True): _quantifier(Repetition.EXISTS, 1),
        ("exists_one", 2, True): _quantifier(Repetition.EXISTS_ONE, 1),
        ("map", 2, True): _list(1),
        ("map", 3, True): _list(1),
        ("filter", 2, True): _list(1),
    },
    Version(1, 28): {
        ("optMap", 2, True): _optional_map,
        ("optFlatMap", 2, True): _optional_map,
    },
    Version(1, 32): {
        ("all", 3, True): _quantifier(Repetition.ALL, 2),
        ("exists", 3, True): _quantifier(Repetition.EXISTS, 2),
        ("exists_one", 3, True): _quantifier(Repetition.EXISTS_ONE, 2),
        ("existsOne", 3, True): _quantifier(Repetition.EXISTS_ONE, 2),
        ("transformList", 3, True): _list(2),
        ("transformList", 4, True): _list(2),
        ("transformMap", 3, True): _map,
        ("transformMap", 4, True): _map,
        ("transformMapEntry", 3, True): _map,
        ("transformMapEntry", 4, True): _map,
    },
    Version(1, 34): {
        ("sortBy", 2, True): _sort_by,
    },
}
"""By the version of Kubernetes that introduced them."""
