"""Operators and ``size``: the arithmetic of cel-go's common/types.

An operator checks its left operand's kind: a kind that has no such operator is ``no such overload: _+_``; an
operand on the right that does not go with it is ``no such overload``. Integers do not wrap around: that is an error.

``&&``, ``||``, ``?:``, ``==``, ``!=``, ``[]`` and ``.?`` are part of the plan: see ``interpreter``.
"""

import math
from typing import Any, Final

from gateway.cel.budget import TOO_EXPENSIVE
from gateway.cel.values.containers import MISSING, find, is_map
from gateway.cel.values.durations import Duration, duration
from gateway.cel.values.equality import Effort, comparable, compare, contains
from gateway.cel.values.faults import Aborted, Fault, no_such_overload
from gateway.cel.values.numbers import LARGEST_INT, LARGEST_UINT, SMALLEST_INT, Uint
from gateway.cel.values.timestamps import Timestamp, timestamp

LARGEST_LIST: Final = 1_000_000
"""Elements. An expression may cost a million, and there is nothing to be done with an element that costs less than
one."""

_LARGEST_STRING: Final = 32 * 1024 * 1024
"""Code points. Adding two strings costs a tenth of their length: what a million pays for three times over."""


def too_large(size: int, largest: int = _LARGEST_STRING) -> None:
    """Stop before making a value that the budget could not pay for (Kubernetes notices only afterwards)."""
    if size > largest:
        raise Aborted(TOO_EXPENSIVE)


def no_operator(value: Any, name: str) -> Fault:
    """A kind that has no such operator. Strings and times are receivers in cel-go, which leave the name out."""
    return no_such_overload() if isinstance(value, str | Timestamp | Duration) else Fault(f"no such overload: {name}")


def _int(value: int) -> int:
    if not SMALLEST_INT <= value <= LARGEST_INT:
        raise Fault("integer overflow")
    return value


def _uint(value: int) -> Uint:
    if not 0 <= value <= LARGEST_UINT:
        raise Fault("unsigned integer overflow")
    return Uint(value)


def add(left: Any, right: Any) -> Any:
    """``left + right``."""
    kind = type(left)
    if kind is Duration or kind is Timestamp:
        return _add_times(left, right)
    if kind is list:
        if type(right) is not list:
            raise no_such_overload()
        too_large(len(left) + len(right), LARGEST_LIST)
        return left + right
    if kind not in _ADDED:
        raise no_operator(left, "_+_")
    if type(right) is not kind:
        raise no_such_overload()
    if kind is int:
        return _int(left + right)
    if kind is Uint:
        return _uint(left + right)
    if kind is not float:
        too_large(len(left) + len(right))
    return left + right


_ADDED: Final = frozenset({int, Uint, float, str, bytes})


def _add_times(left: Any, right: Any) -> Any:
    if isinstance(left, Duration):
        if isinstance(right, Duration):
            return duration(left.nanoseconds + right.nanoseconds)
        if isinstance(right, Timestamp):
            return timestamp(right.instant + left.nanoseconds, right.offset)
    elif isinstance(right, Duration):
        return timestamp(left.instant + right.nanoseconds, left.offset)
    raise no_such_overload()


def subtract(left: Any, right: Any) -> Any:
    """``left - right``."""
    if isinstance(left, Timestamp):
        if isinstance(right, Duration):
            return timestamp(left.instant + duration(-right.nanoseconds).nanoseconds, left.offset)
        if isinstance(right, Timestamp):
            return duration(left.instant - right.instant)
        raise no_such_overload()
    kind = type(left)
    if kind not in {int, Uint, float, Duration}:
        raise no_operator(left, "_-_")
    if type(right) is not kind:
        raise no_such_overload()
    if isinstance(left, Duration):
        return duration(left.nanoseconds - right.nanoseconds)
    if kind is int:
        return _int(left - right)
    return _uint(int(left) - int(right)) if kind is Uint else left - right


def multiply(left: Any, right: Any) -> Any:
    """``left * right``."""
    kind = type(left)
    if kind not in {int, Uint, float}:
        raise no_operator(left, "_*_")
    if type(right) is not kind:
        raise no_such_overload()
    if kind is int:
        return _int(left * right)
    return _uint(left * right) if kind is Uint else left * right


def divide(left: Any, right: Any) -> Any:
    """``left / right``: integers towards zero; of doubles infinite or NaN, never an error."""
    kind = type(left)
    if kind not in {int, Uint, float}:
        raise no_operator(left, "_/_")
    if type(right) is not kind:
        raise no_such_overload()
    if kind is float:
        return _divide_doubles(left, right)
    if right == 0:
        raise Fault("division by zero")
    if kind is Uint:
        return Uint(left // right)
    quotient = abs(left) // abs(right)
    return _int(quotient if (left < 0) == (right < 0) else -quotient)


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, math.copysign(1, left) * math.copysign(1, right))


def modulo(left: Any, right: Any) -> Any:
    """``left % right``: the rest has the sign of ``left``."""
    kind = type(left)
    if kind not in {int, Uint}:
        raise no_operator(left, "_%_")
    if type(right) is not kind:
        raise no_such_overload()
    if right == 0:
        raise Fault("modulus by zero")
    if kind is Uint:
        return Uint(left % right)
    if left == SMALLEST_INT and right == -1:
        raise Fault("integer overflow")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def negate(value: Any) -> Any:
    """``-value``."""
    if type(value) is int:
        return _int(-value)
    if isinstance(value, float):
        return -value
    if isinstance(value, Duration):
        return duration(-value.nanoseconds)
    raise no_such_overload() if isinstance(value, bool) else no_operator(value, "-_")


def invert(value: Any) -> bool:
    """``!value``."""
    if type(value) is not bool:
        raise no_such_overload()
    return not value


def _ordered(left: Any, right: Any, name: str, effort: Effort) -> int:
    if not comparable(left):
        raise no_operator(left, name)
    return compare(left, right, effort)


def less(left: Any, right: Any, effort: Effort) -> bool:
    """``left < right``."""
    return _ordered(left, right, "_<_", effort) < 0


def less_or_equal(left: Any, right: Any, effort: Effort) -> bool:
    """``left <= right``."""
    return _ordered(left, right, "_<=_", effort) <= 0


def greater(left: Any, right: Any, effort: Effort) -> bool:
    """``left > right``."""
    return _ordered(left, right, "_>_", effort) > 0


def greater_or_equal(left: Any, right: Any, effort: Effort) -> bool:
    """``left >= right``."""
    return _ordered(left, right, "_>=_", effort) >= 0


def is_in(item: Any, container: Any, effort: Effort) -> bool:
    """``item in container``: an element of a list, or a key of a map."""
    if isinstance(container, list):
        return contains(container, item, effort)
    if is_map(container):
        return find(container, item) is not MISSING
    raise no_such_overload()


def size(value: Any) -> int:
    """Code points, bytes, elements, entries."""
    if isinstance(value, str | bytes | list) or is_map(value):
        return len(value)
    raise no_operator(value, "size")
