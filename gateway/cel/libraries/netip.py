"""IP addresses as Go's net/netip reads them.

Go is stricter than Python's ipaddress in what it reads, and the words of its errors are known to users: so addresses
are read here.
"""

from ipaddress import IPv4Address, IPv6Address
from typing import Final

import msgspec

from gateway.cel.values.strconv import go_quoted

_HEX: Final = frozenset("0123456789abcdefABCDEF")
_DIGITS: Final = frozenset("0123456789")
_FIELDS: Final = 8


class Unreadable(Exception):  # noqa: N818 - it is named after what the text is
    """Why a text is no address, in netip's words."""

    def __init__(self, text: str, reason: str, at: str = "") -> None:
        where = f" (at {go_quoted(at)})" if at else ""
        super().__init__(reason)
        self.message = f"ParseAddr({go_quoted(text)}): {reason}{where}"


class Address(msgspec.Struct, frozen=True):
    """netip.Addr: ``value`` of 32 or 128 bits."""

    version: int
    value: int
    zone: str = ""

    @property
    def mapped(self) -> bool:
        """An IPv4 address written as IPv6: ::ffff:1.2.3.4."""
        return self.version == 6 and self.value >> 32 == 0xFFFF  # noqa: PLR2004 - IPv6, and what such ones begin with

    def __str__(self) -> str:
        """In its canonical form."""
        if self.version == 4:  # noqa: PLR2004 - IPv4
            return str(IPv4Address(self.value))
        return str(IPv6Address(self.value))


def read_address(text: str) -> Address:
    """netip.ParseAddr; raises Unreadable."""
    for character in text:
        if character == ".":
            return Address(4, _read_v4(text, text))
        if character == ":":
            return _read_v6(text)
        if character == "%":
            raise Unreadable(text, "missing IPv6 address")
    raise Unreadable(text, "unable to parse IP")


def _read_v4(whole: str, text: str) -> int:
    fields: list[int] = []
    value = digits = 0
    for index, character in enumerate(text):
        if character in _DIGITS:
            if digits == 1 and value == 0:
                raise Unreadable(whole, "IPv4 field has octet with leading zero")
            value = value * 10 + int(character)
            digits += 1
            if value > 255:  # noqa: PLR2004 - an octet
                raise Unreadable(whole, "IPv4 field has value >255")
        elif character == ".":
            if index in {0, len(text) - 1} or text[index - 1] == ".":
                raise Unreadable(whole, "IPv4 field must have at least one digit", text[index:])
            if len(fields) == 3:  # noqa: PLR2004 - dots
                raise Unreadable(whole, "IPv4 address too long")
            fields.append(value)
            value = digits = 0
        else:
            raise Unreadable(whole, "unexpected character", text[index:])
    if len(fields) < 3:  # noqa: PLR2004 - dots
        raise Unreadable(whole, "IPv4 address too short")
    return int.from_bytes(bytes([*fields, value]))


def _read_v6(whole: str) -> Address:
    text, percent, zone = whole.partition("%")
    if percent and not zone:
        raise Unreadable(whole, "zone must be a non-empty string")
    fields, ellipsis, rest = _fields(whole, text)
    if rest:
        raise Unreadable(whole, "trailing garbage after address", rest)
    if len(fields) < _FIELDS:
        if ellipsis is None:
            raise Unreadable(whole, "address string too short")
        fields[ellipsis:ellipsis] = [0] * (_FIELDS - len(fields))
    elif ellipsis is not None:
        raise Unreadable(whole, "the :: must expand to at least one field of zeros")
    value = 0
    for field in fields:
        value = value << 16 | field
    return Address(6, value, zone)


def _fields(whole: str, text: str) -> tuple[list[int], int | None, str]:  # noqa: C901 - netip's loop, kept as one
    """The 16-bit fields, where ``::`` stands among them, and what is left of the text."""
    fields: list[int] = []
    ellipsis: int | None = None
    if text.startswith("::"):
        ellipsis, text = 0, text[2:]
        if not text:
            return fields, ellipsis, ""
    while len(fields) < _FIELDS:
        length = _hex_length(whole, text)
        if text[length : length + 1] == ".":
            _check_embedded(whole, text, fields, ellipsis)
            value = _read_v4(whole, text)
            return [*fields, value >> 16, value & 0xFFFF], ellipsis, ""
        fields.append(int(text[:length], 16))
        text = text[length:]
        if not text:
            break
        if text[0] != ":":
            raise Unreadable(whole, "unexpected character, want colon", text)
        if len(text) == 1:
            raise Unreadable(whole, "colon must be followed by more characters", text)
        text = text[1:]
        if text[0] == ":":
            if ellipsis is not None:
                raise Unreadable(whole, "multiple :: in address", text)
            ellipsis, text = len(fields), text[1:]
            if not text:
                break
    return fields, ellipsis, text


def _hex_length(whole: str, text: str) -> int:
    length = 0
    while length < len(text) and text[length] in _HEX:
        length += 1
        if length > 4:  # noqa: PLR2004 - digits of a field
            raise Unreadable(whole, "each group must have 4 or less digits", text)
    if length == 0:
        raise Unreadable(whole, "each colon-separated field must have at least one digit", text)
    return length


def _check_embedded(whole: str, text: str, fields: list[int], ellipsis: int | None) -> None:
    if ellipsis is None and len(fields) != _FIELDS - 2:
        raise Unreadable(whole, "embedded IPv4 address must replace the final 2 fields of the address", text)
    if len(fields) > _FIELDS - 2:
        raise Unreadable(whole, "too many hex fields to fit an embedded IPv4 at the end of the address", text)
