"""The three kinds of numbers, and how they compare with each other (cel-go's common/types/compare.go)."""

import math
from typing import Any, Final

SMALLEST_INT: Final = -(2**63)
LARGEST_INT: Final = 2**63 - 1
LARGEST_UINT: Final = 2**64 - 1
INT64_DIGITS: Final = 18
"""Decimal digits that every int64 can hold."""


class Uint(int):
    """An unsigned integer. It is equal to an int and hashes like one: 1u == 1 across dyn, in maps too."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


def adapted(value: Any) -> Any:
    """A value out of JSON as CEL has it: an integer that no int64 can hold is a double, as in the API server."""
    if type(value) is int and not SMALLEST_INT <= value <= LARGEST_INT:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return value


def is_number(value: Any) -> bool:
    """Whether a value is int, uint or double."""
    kind = type(value)
    return kind is int or kind is float or kind is Uint


def compare_numbers(left: Any, right: Any) -> int:
    """-1, 0 or 1; both are numbers and neither is NaN.

    An integer and a double are compared as doubles (2**53 + 1 equals 2.0**53), an int and a uint exactly.
    """
    if type(left) is float or type(right) is float:
        left, right = float(left), float(right)
    return int(left > right) - int(left < right)


def lossless(value: float) -> int | None:
    """The integer that a double is, or None."""
    return int(value) if math.isfinite(value) and value.is_integer() else None
