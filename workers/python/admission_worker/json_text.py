"""JSON text to values and back; each number keeps its text.

"This specification allows implementations to set limits on the range and precision of numbers accepted" (RFC 8259,
section 6), but a policy that returns the whole object must not change a number that it never read. Whole numbers of any
size are Python's ints. Others are floats if the float is written as the same text; otherwise (``1e400``, ``1E2``,
``-0``, more digits than a double has) they are a ``Number``, a float that keeps its text.
"""

import json
import re
from functools import lru_cache
from typing import Any, Self

import msgspec

_plain = msgspec.json.Encoder()

_MINUS_ZERO = re.compile(rb"-0(?=[\s,\]}])")
"""A whole number that is not an int. It may also match within a string; then the closer check changes nothing."""


class Number(float):
    """A float that remembers its text, such as ``1e400``, which as a float is infinity.

    What is calculated from it is a plain float.
    """

    __slots__ = ("text",)

    def __new__(cls, text: str) -> Self:
        """From a JSON number's text."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str

    def __repr__(self) -> str:
        """As it was written."""
        return self.text

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]
        """For ``copy`` and ``pickle``: float's own method would lose the text."""
        return (self.text,)


@lru_cache(maxsize=256)
def decoder(shape: Any = Any) -> msgspec.json.Decoder[Any]:
    """A decoder of JSON text into a type; what has no type of its own (``Any``) keeps its numbers.

    Args:
        shape: a type that msgspec knows.

    Raises:
        TypeError: it knows no such type.
    """
    return msgspec.json.Decoder(shape, float_hook=_number)


def json_object(text: bytes) -> dict[str, Any] | None:
    """The JSON object in a text, or null, with all its numbers as they are written.

    Raises:
        msgspec.DecodeError: it is neither; likewise UnicodeDecodeError and RecursionError.
    """
    found: dict[str, Any] | None = _objects.decode(text)
    if found is not None and _MINUS_ZERO.search(text):  # which msgspec decodes as 0 without a call
        found = json.loads(text, parse_int=_whole_number, parse_float=_number)
    return found


def encoded(value: Any) -> bytes:
    """A value as compact JSON text in UTF-8, non-ASCII characters as they are.

    Raises:
        TypeError: something in it is no JSON value; likewise ValueError, OverflowError and RecursionError.
    """
    return _encoder.encode(value)


def quoted(value: Any) -> str:
    """A value in a message for people: ``"a"``, ``7``, ``{"a":1}``."""
    return encoded(value).decode()


def _number(text: str) -> float:
    value = float(text)
    return value if _plain.encode(value) == text.encode() else Number(text)


def _whole_number(text: str) -> float:
    return Number(text) if text == "-0" else int(text)


def _as_written(value: Any) -> Any:
    """Encode a value that msgspec cannot."""
    if isinstance(value, Number):
        return msgspec.Raw(value.text.encode())
    message = f"{type(value).__name__} is no JSON value"
    raise TypeError(message)


_encoder = msgspec.json.Encoder(enc_hook=_as_written)
_objects = decoder(dict[str, Any] | None)
