"""Calls of functions: pick the implementation, count the cost, call it."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from gateway.cel.interpreter import costs
from gateway.cel.interpreter.frame import Frame, Run
from gateway.cel.libraries.overloads import Fits, Function, Overload, fits, no_such
from gateway.cel.values.faults import Fault, Unanswered, no_such_overload


def call(
    function: Function, overloads: tuple[Overload, ...], arguments: tuple[Run, ...], *, nameless: bool = False
) -> Run:
    """A call with the overloads that the checker found, arguments with the target first.

    ``nameless``: the error of wrong arguments has no function name. So it is with a constant regular expression, for
    which cel-go has an implementation of its own.
    """
    identity = overloads[0].identity if len(overloads) == 1 else ""
    before = costs.by_arguments(function.name, identity)
    after = costs.by_result(function.name, identity)
    own = 0 if after else 1
    implementation = _implementation(function, overloads)
    implementation = _nameless(implementation) if nameless else implementation
    run = _evaluated(function, implementation, arguments, before, own=own)
    if after is None:
        return run

    def counted(frame: Frame) -> Any:
        try:
            result = run(frame)
        except Fault:
            frame.cost += after(FAILED)
            raise
        frame.charge(after(result))
        return result

    return counted


_Call = Callable[[Frame, list[Any]], Any]


FAILED: Final = object()
"""Stands for an argument that is an error, where its size is needed: 1."""


_IMMEDIATE: Final = frozenset({"size", "charAt", "first", "last", "slice", "dyn", "type", "hasValue", "value"})
"""Functions that take as long for a large argument as for a small one, or that count for themselves."""


def _evaluated(
    function: Function, implementation: _Call, arguments: tuple[Run, ...], before: costs.Cost | None, *, own: int
) -> Run:
    scanned, walking = function.name not in _IMMEDIATE, function.name in costs.WALKING

    def run(frame: Frame) -> Any:
        values: list[Any] = []
        try:
            for argument in arguments:
                values.append(argument(frame))  # noqa: PERF401 - the values so far are needed when one of them fails
        except Fault as fault:
            if not isinstance(fault, Unanswered) and len(arguments) <= _BOTH:
                _count_failed(frame, arguments, values, before or (lambda *_: own))
            raise
        if scanned:
            for value in values:
                frame.heed(value)
        if walking:
            costs.walk(values[0], frame.strive)
        if before is not None:
            frame.charge(before(*values))
        else:
            frame.cost += own
        result = implementation(frame, values)
        frame.heed(result)
        return result

    return run


_BOTH: Final = 2
"""Of one or two arguments cel-go evaluates all and counts the call, even if there is an error; of more it does not."""


def _count_failed(frame: Frame, arguments: tuple[Run, ...], values: list[Any], cost: costs.Cost) -> None:
    values.append(FAILED)
    values.extend(attempt(argument, frame) for argument in arguments[len(values) :])
    with suppress(TypeError, AttributeError):  # a cost that is made for lists cannot be had of an error
        frame.cost += cost(*values)


def attempt(run: Run, frame: Frame) -> Any:
    """A value that only counts for its cost, since there is an error already."""
    try:
        return run(frame)
    except Fault:
        return FAILED


def _implementation(function: Function, overloads: tuple[Overload, ...]) -> _Call:
    if function.singleton is not None:
        whole, effortful = function.singleton, function.effortful
        if effortful:
            return lambda frame, values: whole(*values, frame.strive)
        return lambda _frame, values: whole(*values)
    if len(overloads) == 1:
        return _guarded(function, overloads[0])
    return _dispatched(function)


def _nameless(implementation: _Call) -> _Call:
    def nameless(frame: Frame, values: list[Any]) -> Any:
        try:
            return implementation(frame, values)
        except Fault as fault:
            raise (no_such_overload() if fault.message.startswith("no such overload") else fault) from None

    return nameless


def _guarded(function: Function, overload: Overload) -> _Call:
    """The one overload: its parameters are checked again, since an argument may have been dyn."""
    tests = tuple(map(fits, overload.parameters)) if function.guarded else ()
    run = _calling(overload)

    def guarded(frame: Frame, values: list[Any]) -> Any:
        for test, value in zip(tests, values, strict=False):
            if not test(value):
                raise no_such(function.name, values)
        return run(frame, values)

    return guarded


def _calling(overload: Overload) -> _Call:
    implementation = overload.call
    if implementation is None:
        raise TypeError(f"{overload.identity} has no implementation")
    if overload.effortful:
        return lambda frame, values: implementation(*values, frame.strive)
    return lambda _frame, values: implementation(*values)


def _dispatched(function: Function) -> _Call:
    """Several overloads: the first of all of the function's that fits the values."""
    table: list[tuple[tuple[Fits, ...], _Call]] = [
        (tuple(map(fits, overload.parameters)) if function.guarded else (), _calling(overload))
        for overload in function.overloads
    ]
    lengths = [len(overload.parameters) for overload in function.overloads]

    def dispatch(frame: Frame, values: list[Any]) -> Any:
        for (tests, run), length in zip(table, lengths, strict=True):
            if length == len(values) and all(test(value) for test, value in zip(tests, values, strict=False)):
                return run(frame, values)
        raise no_such(function.name, values)

    return dispatch
