"""Quantities: ``quantity('1Gi')`` (k8s.io/apimachinery/pkg/api/resource).

Two forms, as in Kubernetes, since functions distinguish them: an int64 and a power of ten, where the text is short
enough for that; else an exact decimal, which ``asInteger`` and ``isInteger`` do not take for an integer, whatever it
is. Decimals are rounded up to nano; binary ones stop at 2**63 - 1.
"""

import math
import re
from fractions import Fraction
from typing import Any, ClassVar, Final

from gateway.cel.libraries.overloads import Library, function, member
from gateway.cel.values.faults import Fault, no_such_overload
from gateway.cel.values.numbers import INT64_DIGITS, LARGEST_INT, SMALLEST_INT
from gateway.cel.values.reflection import Opaque
from gateway.cel.values.types import Type, written

_FORM: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_TEXT: Final = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO: Final = -9
_BINARY_DIGITS: Final = 15
"""See parse's "This is a cheap conservative approximation" of how many digits a binary suffix leaves."""

_LARGEST_EXPONENT: Final = 4_000
"""Digits. Kubernetes takes any int32; a power of ten with more digits would only be there to use up memory. (Python
reads at most 4,300 digits at once.)"""


class Quantity(Opaque, frozen=True, eq=False):
    """``value`` * 10**``scale``; ``exact``: it is an int64 (int64Amount), not a decimal (infDecAmount)."""

    value: int
    scale: int
    exact: bool

    CEL: ClassVar[Type] = written("kubernetes.Quantity")

    @property
    def amount(self) -> Fraction:
        """What it comes to."""
        return self.value * Fraction(10) ** self.scale

    def equals(self, other: Any) -> bool:
        """``==``; an error for any other type."""
        if not isinstance(other, Quantity):
            raise no_such_overload()
        return self.amount == other.amount


def _parse(text: str) -> Quantity:
    if not text:
        raise Fault(_FORM)
    match = _TEXT.fullmatch(text)
    if match is None:
        raise Fault(_FORM)
    sign, whole, fraction, suffix = match[1], match[2], match[3] or "", match[4]
    if not suffix and "." not in text and not whole:
        return Quantity(0, 0, exact=True)  # nothing but zeros, or only a sign
    whole = whole or "0"
    binary = _BINARY.get(suffix)
    scale = 0 if binary is not None else _exponent(suffix)
    if scale > _LARGEST_EXPONENT or len(whole) + len(fraction) > _LARGEST_EXPONENT:
        raise Fault("unable to parse quantity's suffix")
    found = _short(whole, fraction, scale, binary)
    if found is None:
        if "." in text and not fraction and not match[2] and not re.match(r"[+-]?0", text):
            raise Fault("unable to parse numeric part of quantity")
        return _decimal(int(f"{sign}1"), whole, fraction, scale, binary)
    return Quantity(-found.value, found.scale, exact=True) if sign == "-" else found


def _exponent(suffix: str) -> int:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    if not re.fullmatch(r"[eE][+-]?[0-9]+", suffix) or abs(int(suffix[1:])) > LARGEST_INT:
        raise Fault("unable to parse quantity's suffix")
    # Kubernetes keeps the lowest 32 bits.
    return (int(suffix[1:]) + 2**31) % 2**32 - 2**31


def _short(whole: str, fraction: str, scale: int, binary: int | None) -> Quantity | None:
    """The int64 form without its sign, if the text is short enough for it."""
    if binary is None:
        room = INT64_DIGITS - len(whole) - len(fraction)
        factor = 1
    else:
        room = -1 if fraction else _BINARY_DIGITS - len(whole) - binary * 3 // 10 - 1
        factor = 2**binary
    scale -= len(fraction)
    if room < 0 or scale < _NANO:
        return None
    value = int(whole + fraction) * factor
    return Quantity(value, scale, exact=True) if value <= LARGEST_INT else None


def _decimal(sign: int, whole: str, fraction: str, scale: int, binary: int | None) -> Quantity:
    digits = int(whole + fraction)
    if binary is not None:
        digits *= 2**binary
    # So far below nano, only the rounding up is left.
    scale = max(scale - len(fraction), -2 * _LARGEST_EXPONENT)
    if digits:
        # Round up to nano; also what needs no rounding gets this scale, which shows in asApproximateFloat.
        shift = scale - _NANO
        digits, scale = digits * 10**shift if shift >= 0 else -(-digits // 10**-shift), _NANO
    if binary is not None and digits * Fraction(10) ** scale > LARGEST_INT:
        digits, scale = LARGEST_INT, 0
    return Quantity(sign * digits, scale, exact=False)


def _is_quantity(text: str) -> bool:
    try:
        _parse(text)
    except Fault:
        return False
    return True


def _integer(quantity: Quantity) -> int | None:
    if not quantity.exact or quantity.scale < 0:
        return None
    if quantity.value and quantity.scale > INT64_DIGITS:
        return None
    value = quantity.value * 10 ** min(quantity.scale, INT64_DIGITS)
    return value if SMALLEST_INT <= value <= LARGEST_INT else None


def _as_integer(quantity: Quantity) -> int:
    value = _integer(quantity)
    if value is None:
        raise Fault("cannot convert value to integer")
    return value


def _as_float(quantity: Quantity) -> float:
    """Go's product of two doubles, with its rounding."""
    try:
        base = float(quantity.value)
    except OverflowError:
        base = math.inf if quantity.value > 0 else -math.inf
    return base * _power(quantity.scale) if quantity.scale else base


def _power(exponent: int) -> float:
    """math.Pow10."""
    if exponent > 308:  # noqa: PLR2004 - the largest power of ten that is a double
        return math.inf
    return float(f"1e{exponent}")


def _compare(one: Quantity, other: Quantity) -> int:
    left, right = one.amount, other.amount
    return (left > right) - (left < right)


def _sign(quantity: Quantity) -> int:
    return (quantity.value > 0) - (quantity.value < 0)


def _add(one: Quantity, other: Quantity) -> Quantity:
    if one.exact and other.exact:
        if other.value == 0:
            return one
        if one.value == 0:
            return other
        found = _add_exactly(one, other)
        if found is not None:
            return found
    scale = min(one.scale, other.scale)
    return Quantity(_at(one, scale) + _at(other, scale), scale, exact=False)


def _add_exactly(one: Quantity, other: Quantity) -> Quantity | None:
    """The int64 form of a sum, if no step of it overflows."""
    scale = min(one.scale, other.scale)
    left, right = _at(one, scale), _at(other, scale)
    total = left + right
    fits = all(SMALLEST_INT <= value <= LARGEST_INT for value in (left, right, total))
    return Quantity(total, scale, exact=True) if fits else None


def _at(quantity: Quantity, scale: int) -> int:
    return int(quantity.value * 10 ** (quantity.scale - scale))


def _subtract(one: Quantity, other: Quantity) -> Quantity:
    return _add(one, Quantity(-other.value, other.scale, exact=other.exact))


def _of(number: int) -> Quantity:
    return Quantity(number, 0, exact=True)


_Q: Final = Quantity.CEL.name

QUANTITIES: Final = Library(
    overloads=(
        function("string_to_quantity", f"quantity(string) -> {_Q}", _parse),
        function("is_quantity_string", "isQuantity(string) -> bool", _is_quantity),
        function("quantity_sign", f"sign({_Q}) -> int", _sign),
        member(
            "quantity_is_greater_than", f"{_Q}.isGreaterThan({_Q}) -> bool", lambda one, other: _compare(one, other) > 0
        ),
        member("quantity_is_less_than", f"{_Q}.isLessThan({_Q}) -> bool", lambda one, other: _compare(one, other) < 0),
        member("quantity_compare_to", f"{_Q}.compareTo({_Q}) -> int", _compare),
        member("quantity_get_float", f"{_Q}.asApproximateFloat() -> double", _as_float),
        member("quantity_get_int", f"{_Q}.asInteger() -> int", _as_integer),
        member("quantity_is_integer", f"{_Q}.isInteger() -> bool", lambda quantity: _integer(quantity) is not None),
        member("quantity_add", f"{_Q}.add({_Q}) -> {_Q}", _add),
        member("quantity_add_int", f"{_Q}.add(int) -> {_Q}", lambda one, number: _add(one, _of(number))),
        member("quantity_sub", f"{_Q}.sub({_Q}) -> {_Q}", _subtract),
        member("quantity_sub_int", f"{_Q}.sub(int) -> {_Q}", lambda one, number: _subtract(one, _of(number))),
    ),
)
