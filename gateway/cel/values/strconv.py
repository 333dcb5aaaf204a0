"""Texts and numbers as Go prints them: ``%q`` (strconv.Quote) and ``%g`` (strconv.FormatFloat)."""

import math
from decimal import Decimal
from typing import Final

_SHORT: Final = {char: "\\" + name for char, name in zip('\a\b\f\n\r\t\v"\\', 'abfnrtv"\\', strict=True)}
_SURROGATE: Final = 0xDC00
"""Python's ``surrogateescape``: a byte that is no UTF-8 stands as this plus its value."""

_PLAIN: Final = range(-4, 6)
"""Exponents of ten that Go's %g does not write."""


def go_quoted(text: str) -> str:
    """The text as Go's %q (strconv.Quote) writes it: in quotation marks, on one line, what is not printable escaped."""
    if text.isascii() and text.isprintable() and "\\" not in text and '"' not in text:
        return f'"{text}"'
    return '"' + "".join(map(go_escaped, text)) + '"'


def go_escaped(char: str) -> str:
    """One character as it stands between Go's quotation marks."""
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    code = ord(char)
    if _SURROGATE < code <= _SURROGATE + 0xFF:
        code -= _SURROGATE
    if code < 0x80 or ord(char) != code:  # noqa: PLR2004 - where ASCII ends
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the basic plane


def go_double(value: float) -> str:
    """Go's %g: the shortest digits that give the same double, with an exponent if it is large or small."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    scientific = len(digits) + int(exponent) - 1
    if scientific in _PLAIN:
        return plain_double(value)
    first, *rest = map(str, digits)
    fraction = f".{''.join(rest)}" if rest else ""
    sign, direction = "-" if value < 0 else "", "-" if scientific < 0 else "+"
    return f"{sign}{first}{fraction}e{direction}{abs(scientific):02}"


def plain_double(value: float) -> str:
    """The shortest digits that give the same double, without an exponent; not of infinity and NaN."""
    return format(Decimal(repr(value)).normalize(), "f")
