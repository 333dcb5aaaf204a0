"""gRPC names, as far as a worker may be named by them (grpc/doc/naming.md).

The port is required: gRPC's default is 443, which no worker means. A host with the name of a scheme is rejected, since
gRPC reads ``dns:50051`` as the host 50051. Several addresses behind ``ipv4:`` or ``ipv6:`` are replicas of one worker.
"""

import ipaddress
import re
from typing import Final

from gateway.bounds import MAX_PORT

MAX_SOCKET_PATH: Final = 107
"""Bytes of a Unix socket's path: sockaddr_un.sun_path holds 108 on Linux, the last one a zero."""


EXPECTED: Final = (
    "must be HOST:PORT, dns:///HOST:PORT, ipv4:ADDRESS:PORT, ipv6:[ADDRESS]:PORT (of these two several, "
    "with commas and no spaces), unix:PATH or unix:///PATH, "
    f"with a port from 1 to {MAX_PORT} and a path of at most {MAX_SOCKET_PATH} bytes without %, # and ?"
)
"""The message for all other targets."""

_HOST_PORT = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]{1,254}):(?P<port>[0-9]{1,5})")
_HOST_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_SCHEMES: Final = frozenset({"dns", "unix", "unix-abstract", "ipv4", "ipv6", "vsock", "xds", "google-c2p"})


def target_hosts(target: str) -> tuple[str, ...] | None:
    """The hosts that a target names, none for a Unix socket; None if it is no target."""
    scheme, colon, rest = target.partition(":")
    if not colon:
        return None
    match scheme:
        case "unix":
            return () if _is_path(rest) else None
        case "dns":
            return _hosts([rest.removeprefix("///")]) if rest.startswith("///") else None
        case "ipv4":
            return _addresses(rest, ipaddress.IPv4Address)
        case "ipv6":
            return _addresses(rest, ipaddress.IPv6Address)
        case _:
            return None if scheme in _SCHEMES else _hosts([target])


def is_local(target: str) -> bool:
    """Whether a worker can listen on this target, and only this machine can reach it there."""
    hosts = target_hosts(target)
    return hosts is not None and len(hosts) <= 1 and stays_here(target)


def stays_here(target: str) -> bool:
    """Whether what is sent to this target never leaves this machine."""
    return all(_is_loopback(host) for host in target_hosts(target) or ())


def is_address(host: str) -> bool:
    """Whether a host is an IP address, and so no name in DNS."""
    return _is_address(host, ipaddress.IPv4Address) or _is_address(host, ipaddress.IPv6Address)


def _is_path(rest: str) -> bool:
    """``unix:path``, ``unix:/path`` or ``unix:///path``; an authority (``unix://host/path``) is not possible."""
    path = rest.removeprefix("//")
    if path != rest and not path.startswith("/"):
        return False
    # gRPC decodes %XX in a path, and takes what follows # or ? for something else.
    return bool(path.strip("/")) and path.isprintable() and not set("%#?") & set(path) and _fits(path)


def _fits(path: str) -> bool:
    return len(path.encode()) <= MAX_SOCKET_PATH


def socket_path(target: str, directory: str) -> str | None:
    """The path of a Unix socket, from the root: a relative one is beside the file that names it. None: no socket."""
    if not target.startswith("unix:"):
        return None
    path = target.removeprefix("unix:").removeprefix("//")
    return path if path.startswith("/") or not directory else f"{directory}/{path}"


def _hosts(addresses: list[str]) -> tuple[str, ...] | None:
    hosts = []
    for address in addresses:
        match = _HOST_PORT.fullmatch(address)
        if match is None or not 1 <= int(match["port"]) <= MAX_PORT or not _is_host(match["host"]):
            return None
        hosts.append(match["host"].strip("[]"))
    return tuple(hosts)


def _addresses(rest: str, kind: type[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> tuple[str, ...] | None:
    hosts = _hosts(rest.split(","))
    return hosts if hosts is not None and all(_is_address(host, kind) for host in hosts) else None


def _is_host(host: str) -> bool:
    if host.startswith("["):
        return _is_address(host[1:-1], ipaddress.IPv6Address)
    # A name that ends in a dot is complete; only then can the resolver skip its search list.
    return all(_HOST_LABEL.fullmatch(label) for label in host.removesuffix(".").split("."))


def _is_address(text: str, kind: type[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.removesuffix(".").lower() == "localhost"
