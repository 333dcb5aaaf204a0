"""What a library is made of: functions, each with overloads.

The checker picks overloads by the static types of the arguments. At run time, cel-go does this, and so do we:

* one overload picked: its parameters' types are checked again (an argument may have been dyn), then it is called;
* several: the first one whose parameters fit the values is called;
* none fits: ``no such overload: NAME(TYPES)``;
* a function with a ``singleton`` ignores the overloads: it checks the values itself (the operators).
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from gateway.cel.values.containers import Map, is_map, items
from gateway.cel.values.faults import Fault
from gateway.cel.values.numbers import Uint, adapted
from gateway.cel.values.reflection import named, type_of
from gateway.cel.values.types import Kind, Type, all_written, written

Implementation = Callable[..., Any]
"""Arguments to result; raises Fault."""


class Overload(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One signature of a function. ``parameters`` begin with the target's type if it is called on one (``member``).

    ``call`` is None where the function has a singleton, or is part of the language. With ``effortful`` its last
    argument is an ``equality.Effort``.
    """

    identity: str
    function: str
    member: bool
    parameters: tuple[Type, ...]
    result: Type
    call: Implementation | None = None
    effortful: bool = False


class Function(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All overloads of a name, in the order in which they are tried."""

    name: str
    overloads: tuple[Overload, ...]
    singleton: Implementation | None = None
    effortful: bool = False
    guarded: bool = True


class Library(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A set of overloads. ``singletons`` are by function name, ``unguarded`` functions look at their arguments."""

    overloads: tuple[Overload, ...]
    singletons: dict[str, Implementation] = msgspec.field(default_factory=dict)
    effortful: frozenset[str] = frozenset()
    unguarded: frozenset[str] = frozenset()


def function(identity: str, signature: str, call: Implementation | None = None, *, effortful: bool = False) -> Overload:
    """A plain function: ``size(string) -> int``, ``optional.of(V) -> optional_type(V)``."""
    head, _, result = signature.rpartition(" -> ")
    name, _, parameters = head.partition("(")
    return Overload(
        identity=identity,
        function=name,
        member=False,
        parameters=all_written(f"({parameters}"),
        result=written(result),
        call=call,
        effortful=effortful,
    )


def member(identity: str, signature: str, call: Implementation | None = None, *, effortful: bool = False) -> Overload:
    """A function called on a target: ``string.charAt(int) -> string``, ``list(T).first() -> optional_type(T)``."""
    head, _, result = signature.rpartition(" -> ")
    start = _opening(head)
    target, _, name = head[:start].rpartition(".")
    return Overload(
        identity=identity,
        function=name,
        member=True,
        parameters=(written(target), *all_written(head[start:])),
        result=written(result),
        call=call,
        effortful=effortful,
    )


def _opening(head: str) -> int:
    """Where the last pair of brackets that are not within others begins."""
    depth = 0
    for index in range(len(head) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(head[index], 0)
        if depth == 0:
            return index
    raise ValueError(f"{head!r} has no parameters")


def functions(libraries: Iterable[Library]) -> dict[str, Function]:
    """All functions of some libraries by name; an earlier library's overloads are tried first."""
    overloads: dict[str, list[Overload]] = {}
    singletons: dict[str, Implementation] = {}
    effortful: set[str] = set()
    unguarded: set[str] = set()
    for library in libraries:
        for overload in library.overloads:
            overloads.setdefault(overload.function, []).append(overload)
        singletons |= library.singletons
        effortful |= library.effortful
        unguarded |= library.unguarded
    return {
        name: Function(
            name=name,
            overloads=tuple(found),
            singleton=singletons.get(name),
            effortful=name in effortful,
            guarded=name not in unguarded,
        )
        for name, found in overloads.items()
    }


# --------------------------------------------------------------------------------------------- at run time
def no_such(name: str, arguments: Iterable[Any]) -> Fault:
    """No overload fits these values."""
    return Fault(f"no such overload: {name}({', '.join(named(argument) for argument in arguments)})")


Fits = Callable[[Any], bool]
"""Whether a value may be an argument."""


def fits(wanted: Type) -> Fits:
    """The test of one parameter. Of a list or a map only the first element is checked, as in cel-go."""
    match wanted.kind:
        case Kind.DYN | Kind.PARAMETER:
            return _anything
        case Kind.LIST:
            return _list_of(fits(wanted.parameters[0]))
        case Kind.MAP:
            return _map_of(*map(fits, wanted.parameters))
        case Kind.BASIC:
            return _exactly(_PYTHON[wanted.name])
        case _:
            return lambda value: type_of(value).name == wanted.name


_PYTHON: Final[dict[str, type]] = {
    "bool": bool,
    "int": int,
    "uint": Uint,
    "double": float,
    "string": str,
    "bytes": bytes,
}


def _anything(_value: Any) -> bool:
    return True


def _exactly(kind: type) -> Fits:
    return lambda value: type(value) is kind


def _list_of(element: Fits) -> Fits:
    if element is _anything:
        return lambda value: isinstance(value, list)
    return lambda value: isinstance(value, list) and (not value or element(adapted(value[0])))


def _map_of(key: Fits, value: Fits) -> Fits:
    if key is _anything is value:
        return is_map

    def check(found: Any) -> bool:
        if not isinstance(found, dict | Map):
            return False
        first = next(iter(items(found)), None)
        return first is None or (key(first[0]) and value(first[1]))

    return check
