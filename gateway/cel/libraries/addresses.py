"""IP addresses and networks: Kubernetes' libraries. They accept neither zones nor IPv4 addresses written as IPv6."""

import math
from typing import Any, ClassVar, Final

from gateway.cel.libraries.netip import Address, Unreadable, read_address
from gateway.cel.libraries.overloads import Library, function, member
from gateway.cel.values.faults import Fault, no_such_overload
from gateway.cel.values.reflection import Opaque
from gateway.cel.values.strconv import go_quoted
from gateway.cel.values.types import Type, written

_BITS: Final = {4: 32, 6: 128}
_LOOPBACK_V4: Final = 127


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
