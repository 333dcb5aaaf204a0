"""The operators that do not evaluate all their operands, or that absorb errors; lists and maps of parts.

``&&``, ``||``, ``==``, ``!=``, ``o.or(p)``, ``o.orValue(v)``, ``[a, ?b]``, ``{k: v}`` (cel-go's interpretable.go).
"""

from collections.abc import Callable
from typing import Any

from gateway.cel.interpreter import costs
from gateway.cel.interpreter.calls import FAILED, attempt
from gateway.cel.interpreter.frame import Frame, Run
from gateway.cel.values.containers import Optional, made_of
from gateway.cel.values.display import display
from gateway.cel.values.equality import equal
from gateway.cel.values.faults import Fault, Unanswered, no_such_overload, prior
from gateway.cel.values.messages import WELL_KNOWN
from gateway.cel.values.reflection import type_of


def logical(left: Run, right: Run, *, settling: bool) -> Run:
    """``||`` is settled by true, ``&&`` by false: whatever the other side is, be it an error."""

    def run(frame: Frame) -> bool:
        kept: Fault | None = None
        for side in (left, right):
            try:
                value = side(frame)
                settled = value is settling
                if settled:
                    return settling
                if type(value) is not bool:
                    raise no_such_overload()
            except Fault as fault:
                kept = prior(kept, fault)
        if kept is not None:
            raise kept
        return not settling

    return run


def equals(left: Run, right: Run) -> Run:
    """``==``."""
    operands = _operands(left, right, costs.equality)

    def run(frame: Frame) -> bool:
        one, other = operands(frame)
        return equal(one, other, frame.strive)

    return run


def differs(left: Run, right: Run) -> Run:
    """An error of the comparison makes two values different."""
    operands = _operands(left, right, costs.difference)

    def run(frame: Frame) -> bool:
        one, other = operands(frame)
        try:
            return not equal(one, other, frame.strive)
        except Fault:
            return True

    return run


def _operands(left: Run, right: Run, cost: costs.Cost) -> Callable[[Frame], tuple[Any, Any]]:
    """Both values, and the cost of comparing them; the first error, if there is one, and the cost all the same."""

    def run(frame: Frame) -> tuple[Any, Any]:
        try:
            one = left(frame)
        except Unanswered:
            raise
        except Fault:
            other = attempt(right, frame)
            frame.cost += cost(FAILED, other)
            raise
        try:
            other = right(frame)
        except Fault:
            frame.cost += cost(one, FAILED)
            raise
        frame.charge(cost(one, other))
        return one, other

    return run


def alternative(left: Run, right: Run, name: str) -> Run:
    """``o.or(p)`` and ``o.orValue(v)``: the right side only if the left one has no value."""

    def run(frame: Frame) -> Any:
        value = left(frame)
        if not isinstance(value, Optional):
            return value
        if not value.present:
            return right(frame)
        return value.value if name == "orValue" else value

    return run


def list_of(runs: tuple[Run, ...], optional: frozenset[int]) -> Run:
    """A list of parts; those at ``optional`` indexes appear only if they have a value."""

    def run(frame: Frame) -> list[Any]:
        frame.cost += costs.LIST
        made = []
        for index, part in enumerate(runs):
            value = part(frame)
            if index in optional:
                if not isinstance(value, Optional):
                    raise Fault(f"cannot initialize optional list element from non-optional value {display(value)}")
                if not value.present:
                    continue
                value = value.value
            made.append(value)
        return made

    return run


def map_of(entries: tuple[tuple[Run, Run, bool], ...]) -> Run:
    """A map of keys and values; optional entries appear only if they have a value."""

    def run(frame: Frame) -> Any:
        frame.cost += costs.MAP
        made: list[tuple[Any, Any]] = []
        for key_run, value_run, optional in entries:
            key, value = key_run(frame), value_run(frame)
            if optional:
                if not isinstance(value, Optional):
                    wrong = (
                        f"cannot initialize optional entry '{display(key)}' from non-optional value {display(value)}"
                    )
                    raise Fault(wrong)
                if not value.present:
                    made = [pair for pair in made if pair[0] != key or type_of(pair[0]) is not type_of(key)]
                    continue
                value = value.value
            made.append((key, value))
        return made_of(made)

    return run


def message_of(name: str, members: list[tuple[str, Run, bool]]) -> Run:
    """A message: the value that a well-known one stands for. No other one can be made."""

    def run(frame: Frame) -> Any:
        frame.cost += costs.MESSAGE
        made: dict[str, Any] = {}
        for member, value_run, optional in members:
            value = value_run(frame)
            if optional:
                if not isinstance(value, Optional):
                    wrong = f"cannot initialize optional entry '{member}' from non-optional value {display(value)}"
                    raise Fault(wrong)
                if not value.present:
                    made.pop(member, None)
                    continue
                value = value.value
            made[member] = value
        if name not in WELL_KNOWN:
            raise Fault(f"unknown type '{name}'")
        return WELL_KNOWN[name].make(made, frame.strive)

    return run
