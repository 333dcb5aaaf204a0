"""Kubernetes' quantities (k8s.io/apimachinery/pkg/api/resource): ``100m``, ``1Gi``, ``1e3``, ``0.5``.

    <quantity>        ::= <signedNumber><suffix>
    <suffix>          ::= <binarySI> | <decimalExponent> | <decimalSI>
    <binarySI>        ::= Ki | Mi | Gi | Ti | Pi | Ei
    <decimalSI>       ::= n | u | m | "" | k | M | G | T | P | E
    <decimalExponent> ::= "e" <signedNumber> | "E" <signedNumber>

"No matter which of the three exponent forms is used, no quantity may represent a number greater than 2^63-1 in
magnitude, nor may it have more than 3 decimal places. Numbers larger or more precise will be capped or rounded up.
(E.g.: 0.1m will rounded up to 1m.)" The code behind it rounds up at a billionth, and so does this.
"""

import math
import re
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from admission_worker.json_text import quoted

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,9})|(?P<suffix>[KMGTPE]i|[numkMGTPE])?)"
)

_SUFFIXES: Final = MappingProxyType(
    {"": Fraction(1)}
    | {name: Fraction(10) ** power for name, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)}
    | {f"{name}i": Fraction(2) ** (10 * power) for power, name in enumerate("KMGTPE", start=1)}
)

LARGEST: Final = Fraction(2**63 - 1)
SMALLEST: Final = Fraction(1, 10**9)

LONGEST: Final = 128
"""The most characters of a quantity: the largest needs 19 digits before and 9 after the point."""

EXPONENTS: Final = 256
"""Larger exponents are read as these: times 10^256 every number is beyond ``LARGEST``, and times 10^-256
one of at most 128 digits is below ``SMALLEST``. So a ``1e999999999`` costs nothing."""


@lru_cache(maxsize=1024, typed=True)
def quantity(value: str | float) -> Fraction:
    """The exact value of a quantity, capped and rounded up as Kubernetes does.

    Args:
        value: as it stands in JSON: mostly text, sometimes a number.

    Raises:
        ValueError: it is not a quantity.
    """
    written = str(value)
    found = _QUANTITY.fullmatch(written) if len(written) <= LONGEST else None
    if found is None or isinstance(value, bool):
        message = f"{quoted(written[:LONGEST])} is no quantity such as 100m, 0.5 or 1Gi"
        raise ValueError(message)
    exponent = max(-EXPONENTS, min(EXPONENTS, int(found["exponent"] or 0)))
    exact = Fraction(found["number"]) * Fraction(10) ** exponent * _SUFFIXES[found["suffix"] or ""]
    magnitude = min(LARGEST, Fraction(math.ceil(abs(exact) / SMALLEST)) * SMALLEST)
    return magnitude if exact >= 0 else -magnitude
