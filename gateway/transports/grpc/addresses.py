"""Which addresses a target has, each as a gRPC target of its own.

A headless Service's name has one address for each ready pod. They are resolved here and not by gRPC, so that each of
them can be known by itself: connected, described, and left alone when it fails.
"""

import asyncio
import ipaddress
import random
import socket
from typing import Final

from gateway.policies.workers.grpc_names import socket_path

_FAMILIES: Final = {socket.AF_INET: "ipv4:{}:{}", socket.AF_INET6: "ipv6:[{}]:{}"}


class ResolveError(Exception):
    """A name has no addresses now; ``str(error)`` says why."""


def is_fixed(target: str) -> bool:
    """Whether the target's addresses are said in it."""
    return target.startswith(("unix:", "ipv4:", "ipv6:")) or _is_literal(_host_port(target)[0])


def authority(target: str) -> str:
    """What ``:authority`` is for a target, whichever of its addresses is called: the name as it is configured."""
    if target.startswith("unix:"):
        return "localhost"
    return "" if is_fixed(target) else "{}:{}".format(*_host_port(target))


async def resolve(target: str) -> tuple[str, ...]:
    """The addresses, at least one, in a stable order.

    Raises:
        ResolveError: the name is not known, or nobody can tell.
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


def chosen(addresses: tuple[str, ...], held: tuple[str, ...], limit: int) -> tuple[str, ...]:
    """At most ``limit`` of the addresses: those that are held already, and a random choice of the rest."""
    if len(addresses) <= limit:
        return addresses
    kept = [address for address in addresses if address in held][:limit]
    rest = [address for address in addresses if address not in held]
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
