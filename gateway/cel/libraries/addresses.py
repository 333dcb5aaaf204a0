"""IP addresses and networks: Kubernetes' libraries over Go's net/netip.

Go is stricter than Python's ipaddress in what it reads, and the words of its errors are known to users: so addresses
are read here. Kubernetes accepts neither zones nor IPv4 addresses written as IPv6.
"""

import math
from ipaddress import IPv4Address, IPv6Address
from typing import Any, ClassVar, Final

import msgspec

from gateway.cel.libraries.overloads import Library, function, member
from gateway.cel.values.faults import Fault, no_such_overload
from gateway.cel.values.reflection import Opaque
from gateway.cel.values.strconv import go_quoted
from gateway.cel.values.types import Type, written

_BITS: Final = {4: 32, 6: 128}
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_DIGITS: Final = frozenset("0123456789")
_LOOPBACK_V4: Final = 127
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


# ------------------------------------------------------------------------------------------------- values
class IP(Opaque, frozen=True, eq=False):
    """net.IP of CEL."""

    address: Address

    CEL: ClassVar[Type] = written("net.IP")

    def __len__(self) -> int:
        """Bytes: for the cost of a comparison."""
        return _BITS[self.address.version] // 8

    def __str__(self) -> str:
        return str(self.address)

    def equals(self, other: Any) -> bool:
        """``==``; an error for any other type."""
        if not isinstance(other, IP):
            raise no_such_overload()
        return self.address == other.address


class CIDR(Opaque, frozen=True, eq=False):
    """net.CIDR of CEL: an address (its host bits are kept) and a prefix length."""

    address: Address
    bits: int

    CEL: ClassVar[Type] = written("net.CIDR")

    def __len__(self) -> int:
        """Bytes of the prefix: for the cost of a comparison."""
        return math.ceil(self.bits / 8)

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    def equals(self, other: Any) -> bool:
        """``==``; an error for any other type."""
        if not isinstance(other, CIDR):
            raise no_such_overload()
        return self.address == other.address and self.bits == other.bits


def _masked(address: Address, bits: int) -> int:
    return address.value >> (_BITS[address.version] - bits)


def _ip_or_error(text: str) -> IP | str:
    try:
        address = read_address(text)
    except Unreadable as error:
        return f"IP Address {go_quoted(text)} parse error during conversion from string: {error.message}"
    if address.zone:
        return f"IP address {go_quoted(text)} with zone value is not allowed"
    if address.mapped:
        return f"IPv4-mapped IPv6 address {go_quoted(text)} is not allowed"
    return IP(address)


def _ip(text: str) -> IP:
    found = _ip_or_error(text)
    if isinstance(found, str):
        raise Fault(found)
    return found


def _cidr_or_error(text: str) -> CIDR | str:  # noqa: PLR0911 - one return for each of netip's complaints
    before, slash, after = text.rpartition("/")
    wrong = f"network address parse error during conversion from string: netip.ParsePrefix({go_quoted(text)}): "
    if not slash:
        return f"{wrong}no '/'"
    try:
        address = read_address(before)
    except Unreadable as error:
        return f"{wrong}{error.message}"
    if address.zone:
        return f"{wrong}IPv6 zones cannot be present in a prefix"
    bits = after.lstrip("+-")
    plain = bits.isascii() and bits.isdigit() and len(after) - len(bits) <= 1
    if not plain or (len(after) > 1 and after[0] not in "123456789"):
        return f"{wrong}bad bits after slash: {go_quoted(after)}"
    if len(bits) > 3 or int(bits) > _BITS[address.version]:  # noqa: PLR2004 - digits of 128
        return f"{wrong}prefix length out of range"
    if address.mapped:
        return f"IPv4-mapped IPv6 address {go_quoted(text)} is not allowed"
    return CIDR(address, int(bits))


def _cidr(text: str) -> CIDR:
    found = _cidr_or_error(text)
    if isinstance(found, str):
        raise Fault(f"network address parse error during conversion from string: {found}")
    return found


def _is_canonical(text: str) -> bool:
    return str(_ip(text)) == text


def _is_loopback(ip: IP) -> bool:
    address = ip.address
    return address.value == 1 if address.version == 6 else address.value >> 24 == _LOOPBACK_V4  # noqa: PLR2004 - IPv6


def _is_link_local_multicast(ip: IP) -> bool:
    if ip.address.version == 4:  # noqa: PLR2004 - IPv4
        return ip.address.value >> 8 == 0xE00000  # noqa: PLR2004 - 224.0.0.0/24
    return ip.address.value >> 112 & 0xFF0F == 0xFF02  # noqa: PLR2004 - ff02::/16 of any flags


def _is_link_local_unicast(ip: IP) -> bool:
    if ip.address.version == 4:  # noqa: PLR2004 - IPv4
        return ip.address.value >> 16 == 0xA9FE  # noqa: PLR2004 - 169.254.0.0/16
    return ip.address.value >> 118 == 0xFE80 >> 6  # fe80::/10


def _is_multicast(ip: IP) -> bool:
    if ip.address.version == 4:  # noqa: PLR2004 - IPv4
        return ip.address.value >> 28 == 0xE  # noqa: PLR2004 - 224.0.0.0/4
    return ip.address.value >> 120 == 0xFF  # noqa: PLR2004 - ff00::/8


def _is_unspecified(ip: IP) -> bool:
    return ip.address.value == 0


def _is_global_unicast(ip: IP) -> bool:
    broadcast = ip.address.version == 4 and ip.address.value == 0xFFFFFFFF  # noqa: PLR2004 - 255.255.255.255
    return not (broadcast or _is_unspecified(ip) or _is_loopback(ip) or _is_multicast(ip) or _is_link_local_unicast(ip))


def _contains_ip(cidr: CIDR, ip: IP) -> bool:
    same = cidr.address.version == ip.address.version
    return same and _masked(cidr.address, cidr.bits) == _masked(ip.address, cidr.bits)


def _contains_text(cidr: CIDR, text: str) -> bool:
    """What is wrong with an address does not get through here, as in the API server."""
    ip = _ip_or_error(text)
    if isinstance(ip, str):
        raise no_such_overload()
    return _contains_ip(cidr, ip)


def _contains_cidr(cidr: CIDR, other: CIDR) -> bool:
    return cidr.bits <= other.bits and _contains_ip(cidr, IP(other.address))


def _mask(cidr: CIDR) -> CIDR:
    rest = _BITS[cidr.address.version] - cidr.bits
    return CIDR(Address(cidr.address.version, cidr.address.value >> rest << rest), cidr.bits)


ADDRESSES: Final = Library(
    overloads=(
        function("string_to_ip", "ip(string) -> net.IP", _ip),
        member("cidr_ip", "net.CIDR.ip() -> net.IP", lambda cidr: IP(cidr.address)),
        member("ip_family", "net.IP.family() -> int", lambda ip: ip.address.version),
        function("ip_is_canonical", "ip.isCanonical(string) -> bool", _is_canonical),
        member("ip_is_unspecified", "net.IP.isUnspecified() -> bool", _is_unspecified),
        member("ip_is_loopback", "net.IP.isLoopback() -> bool", _is_loopback),
        member("ip_is_link_local_multicast", "net.IP.isLinkLocalMulticast() -> bool", _is_link_local_multicast),
        member("ip_is_link_local_unicast", "net.IP.isLinkLocalUnicast() -> bool", _is_link_local_unicast),
        member("ip_is_global_unicast", "net.IP.isGlobalUnicast() -> bool", _is_global_unicast),
        function("is_ip", "isIP(string) -> bool", lambda text: isinstance(_ip_or_error(text), IP)),
        function("ip_to_string", "string(net.IP) -> string", str),
        function("string_to_cidr", "cidr(string) -> net.CIDR", _cidr),
        member("cidr_contains_ip_string", "net.CIDR.containsIP(string) -> bool", _contains_text),
        member("cidr_contains_ip_ip", "net.CIDR.containsIP(net.IP) -> bool", _contains_ip),
        member(
            "cidr_contains_cidr_string",
            "net.CIDR.containsCIDR(string) -> bool",
            lambda cidr, other: _contains_cidr(cidr, _cidr(other)),
        ),
        member("cidr_contains_cidr", "net.CIDR.containsCIDR(net.CIDR) -> bool", _contains_cidr),
        member("cidr_prefix_length", "net.CIDR.prefixLength() -> int", lambda cidr: cidr.bits),
        member("cidr_masked", "net.CIDR.masked() -> net.CIDR", _mask),
        function("is_cidr", "isCIDR(string) -> bool", lambda text: isinstance(_cidr_or_error(text), CIDR)),
        function("cidr_to_string", "string(net.CIDR) -> string", str),
    ),
)
