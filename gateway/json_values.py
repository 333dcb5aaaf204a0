"""Decodes JSON into values of any type: the one place for it, because of what a float costs.

msgspec takes up to 20 us for a float at the edges of what a double holds, such as ``1.7976931348623157e+308``, and
0.04 us for ``0.5``; Python's own parser 0.15 to 1.5 us for any. So each float is read by Python, to the same double,
and what no double holds is the same error.
"""

from math import isinf
from typing import Any, TypeVar

import msgspec

_T = TypeVar("_T")


def _float(text: str) -> float:
    value = float(text)
    if isinf(value):
        # msgspec's own words.
        raise ValueError("Number out of range")
    return value


def decoder_of(kind: type[_T]) -> msgspec.json.Decoder[_T]:
    """A decoder of a type that holds values of any type."""
    return msgspec.json.Decoder(kind, float_hook=_float)


VALUES: "msgspec.json.Decoder[Any]" = decoder_of(Any)
"""Decodes a text into dicts, lists, texts, numbers, booleans and None."""
