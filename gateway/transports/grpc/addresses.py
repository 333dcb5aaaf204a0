"""Resolves a target to addresses, each a gRPC target of its own.

A headless Service's name has one address for each ready pod. The gateway resolves them instead of gRPC, so that it can
connect to each of them, describe it, and stop calling it when it fails.
"""

import asyncio
import ipaddress
import random
import socket
from typing import Final

from gateway.policies.workers.grpc_names import socket_path

_FAMILIES: Final = {socket.AF_INET: "ipv4:{}:{}", socket.AF_INET6: "ipv6:[{}]:{}"}


class ResolveError(Exception):
    """A name has no addresses now; ``str(error)`` is the reason."""


def is_fixed(target: str) -> bool:
    """Whether the target contains its addresses, and needs no lookup."""
    return target.startswith(("unix:", "ipv4:", "ipv6:")) or _is_literal(_host_port(target)[0])


def authority(target: str) -> str:
    """The ``:authority`` of calls to all addresses of a target: the name as it is configured."""
    if target.startswith("unix:"):
        return "localhost"
    return "" if is_fixed(target) else "{}:{}".format(*_host_port(target))


async def resolve(target: str) -> tuple[str, ...]:
    """The addresses, at least one, in a stable order.

    Raises:
        ResolveError: the name is unknown, or the lookup failed.
    """
    scheme, _, rest = target.partition(":")
    if scheme == "unix":
        return (f"unix:{socket_path(target, '')}",)
    if scheme in {"ipv4", "ipv6"}:
        return tuple(f"{scheme}:{address}" for address in dict.fromkeys(rest.split(",")))
    host, port = _host_port(target)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ResolveError(f"{host!r} cannot be resolved: {getattr(error, 'strerror', None) or error}") from None
    written = {
        _FAMILIES[family].format(place[0], port): None for family, _, _, _, place in found if family in _FAMILIES
    }
    if not written:
        raise ResolveError(f"{host!r} has no IPv4 or IPv6 address")
    return tuple(sorted(written))


def selected(addresses: tuple[str, ...], current: tuple[str, ...], limit: int) -> tuple[str, ...]:
    """At most ``limit`` of the addresses: those in use already, and a random choice of the rest."""
    if len(addresses) <= limit:
        return addresses
    kept = [address for address in addresses if address in current][:limit]
    rest = [address for address in addresses if address not in current]
    return tuple(kept + random.sample(rest, min(limit - len(kept), len(rest))))


def _host_port(target: str) -> tuple[str, str]:
    host, _, port = target.removeprefix("dns:///").rpartition(":")
    return host, port


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
