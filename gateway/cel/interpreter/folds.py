"""Macros that repeat something, as loops (cel-go's evalFold with the expansions of ``macros``).

What counts is what the expansion would have cost and what it would have done with errors:

* ``all``, ``exists``: ``&&`` and ``||`` over the elements. An error is kept (the first one) and becomes the value
  unless an element settles the matter. The loop ends when it is settled.
* ``exists_one``, lists, maps: an error is kept and becomes the value, the last one of a predicate before all others;
  the loop goes on, and costs.

The numbers are the cost of what the macro adds around the body: see each loop.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from gateway.cel.interpreter.costs import LIST
from gateway.cel.interpreter.frame import Frame, Run
from gateway.cel.parser.ast import Repetition
from gateway.cel.values.containers import MISSING, Map, is_map, items, made_of
from gateway.cel.values.display import display, go_type_name
from gateway.cel.values.faults import Fault, Unanswered, no_such_overload, prior
from gateway.cel.values.numbers import adapted
from gateway.cel.values.reflection import named


class Loop(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A fold, planned. ``first`` and ``second`` are slots; without a second variable ``second`` is -1.

    ``constant_body``: a list of one constant is a constant, and making it costs nothing.
    """

    repetition: Repetition
    over: Run
    first: int
    second: int
    body: Run
    key: Run | None
    filter: Run | None
    constant_body: bool


def loop(planned: Loop) -> Run:
    """The loop, ready to run."""
    return _LOOPS[planned.repetition](planned)


def _steps(planned: Loop) -> Callable[[Frame], Iterable[None]]:
    """Set the variables to one element after the other, and count."""

    def steps(frame: Frame) -> Iterable[None]:
        values = planned.over(frame)
        slots, first, second = frame.slots, planned.first, planned.second
        if second >= 0:
            for key, value in _pairs(values):
                slots[first], slots[second] = key, value
                frame.settle()
                frame.strive(1)
                yield
            return
        for value in _elements(values):
            slots[first] = value
            frame.settle()
            frame.strive(1)
            yield

    return steps


def _elements(values: Any) -> Iterable[Any]:
    """The elements of a list, the keys of a map."""
    if isinstance(values, list):
        return map(adapted, values)
    if isinstance(values, dict):
        return iter(values)
    if isinstance(values, Map):
        return (key for key, _ in values.items())
    raise Fault(f"got '{go_type_name(values)}', expected iterable type")


def _pairs(values: Any) -> Iterable[tuple[Any, Any]]:
    """The indexes and elements of a list, the keys and values of a map."""
    if isinstance(values, list):
        return enumerate(map(adapted, values))
    if is_map(values):
        return items(values)
    raise Fault(f"unsupported comprehension range type: {go_type_name(values)}")


def _quantifier(settling: bool, condition: int) -> Callable[[Loop], Run]:  # noqa: FBT001 - true of exists, false of all
    """``all`` and ``exists``: each element costs ``condition`` (is it settled?) and 1 (the result so far)."""

    def planned_run(planned: Loop) -> Run:
        steps, body = _steps(planned), planned.body

        def run(frame: Frame) -> bool:
            kept: Fault | None = None
            elements = iter(steps(frame))
            for _ in elements:
                frame.cost += condition + 1
                try:
                    value = body(frame)
                    settled = value is settling
                    if settled:
                        more = next(elements, _NO_MORE) is not _NO_MORE
                        frame.cost += 1 + condition * more
                        return settling
                    if type(value) is not bool:
                        raise no_such_overload()
                except Fault as fault:
                    kept = prior(kept, fault)
            frame.cost += 1
            if kept is not None:
                raise kept
            return not settling

        return run

    return planned_run


_NO_MORE: Final = object()


def _exactly_one(planned: Loop) -> Run:
    """A match costs 2 (``result + 1``), the question at the end 2 (``result == 1``)."""
    steps, body = _steps(planned), planned.body

    def run(frame: Frame) -> bool:
        kept: Fault | None = None
        count = 0
        for _ in steps(frame):
            try:
                if _true(body(frame)):
                    frame.cost += 2
                    count += 1
            except Unanswered:
                raise
            except Fault as fault:
                kept = fault
        frame.cost += 2
        if kept is not None:
            raise kept
        return count == 1

    return run


def _true(value: Any) -> bool:
    if type(value) is not bool:
        raise no_such_overload()
    return bool(value)


def _list(planned: Loop) -> Run:
    """An element costs 2 (``result + ...``) and a list of one; the result 1."""
    steps, body, wanted = _steps(planned), planned.body, planned.filter
    around = 2 + (0 if planned.constant_body else LIST)

    def run(frame: Frame) -> list[Any]:
        kept: Fault | None = None
        made: list[Any] = []
        for _ in steps(frame):
            try:
                if wanted is not None and not _true(wanted(frame)):
                    continue
            except Unanswered:
                raise
            except Fault as fault:
                kept = fault
                continue
            frame.cost += around
            try:
                made.append(body(frame))
            except Unanswered:
                raise
            except Fault as fault:
                kept = kept or fault
        frame.cost += 1
        if kept is not None:
            raise kept
        return made

    return run


def _map(planned: Loop) -> Run:
    """An entry costs 2 (the result so far, and inserting) and, of transformMap, 1 for the key; the result 1."""
    steps, body, key, wanted = _steps(planned), planned.body, planned.key, planned.filter

    def run(frame: Frame) -> Any:
        kept: Fault | None = None
        made = Map()
        for _ in steps(frame):
            try:
                if wanted is not None and not _true(wanted(frame)):
                    continue
            except Unanswered:
                raise
            except Fault as fault:
                kept = fault
                continue
            frame.cost += 1
            if kept is not None:
                continue
            try:
                _insert(made, frame, body, key)
            except Unanswered:
                raise
            except Fault as fault:
                kept = fault
        frame.cost += 1
        if kept is not None:
            raise kept
        return made_of(list(made.items()))

    return run


def _insert(made: Map, frame: Frame, body: Run, key: Run | None) -> None:
    frame.cost += 1
    if key is not None:
        added = [(key(frame), body(frame))]
    else:
        entries = body(frame)
        if not is_map(entries):
            raise Fault(f"no such overload: cel.@mapInsert(map, {named(entries)})")
        added = list(items(entries))
        frame.strive(len(added))
    for name, value in added:
        if made.find(name) is not MISSING:
            raise Fault(f"insert failed: key {display(name)} already exists")
        made.add(name, value)


_LOOPS: Final[dict[Repetition, Callable[[Loop], Run]]] = {
    Repetition.ALL: _quantifier(False, 2),
    Repetition.EXISTS: _quantifier(True, 3),
    Repetition.EXISTS_ONE: _exactly_one,
    Repetition.LIST: _list,
    Repetition.MAP: _map,
}
"""``all`` evaluates ``@not_strictly_false(result)``, ``exists`` that of ``!result``."""
