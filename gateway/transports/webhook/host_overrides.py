"""The address of a webhook: from DNS, or from ``--resolve``, as in curl's option of this name.

Only the address changes. Host name, certificate and credentials stay those of the webhook, so a gateway outside of the
cluster calls ``name.namespace.svc`` as one inside does.
"""

import ipaddress
import socket
from collections.abc import Iterable, Mapping

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from gateway.bounds import MAX_PORT
from gateway.transports.webhook.client_credentials import AccessError, HostPort

_FORM = "NAME:PORT=HOST:PORT, as in judge.hooks.svc:443=127.0.0.1:8443"
_LONGEST_NAME = 253


def read_overrides(texts: Iterable[str]) -> dict[HostPort, HostPort]:
    """The values of ``--resolve``.

    Raises:
        AccessError: one of them is invalid, or two have different addresses of one name.
    """
    overrides: dict[HostPort, HostPort] = {}
    for text in texts:
        name, equals, place = text.partition("=")
        if not equals:
            raise AccessError(f"--resolve {text!r} is not {_FORM}")
        called, dialled = _host_port(name, text), _host_port(place, text)
        if _is_address(called[0]):
            raise AccessError(f"--resolve {text!r}: {called[0]} is an IP address; give a host name")
        key = called[0].lower(), called[1]
        if overrides.setdefault(key, dialled) != dialled:
            raise AccessError(
                f"--resolve {text!r}: {name} has another address in an earlier --resolve; keep one of the two"
            )
    return overrides


def _host_port(text: str, whole: str) -> HostPort:
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    is_port = port.isascii() and port.isdigit() and len(port) <= len(str(MAX_PORT)) and 0 < int(port) <= MAX_PORT
    bare = host[1:-1] if bracketed else host
    if (
        not colon
        or not bare
        or not is_port
        or len(bare) > _LONGEST_NAME
        or not bare.isascii()
        or not bare.isprintable()
    ):
        raise AccessError(f"--resolve {whole!r}: {text!r} is not HOST:PORT with a port from 1 to {MAX_PORT}")
    if bracketed != (":" in host) or any(mark in bare for mark in " /@=[]") or (bracketed and not _is_address(bare)):
        raise AccessError(f"--resolve {whole!r}: {text!r} is not HOST:PORT; an IPv6 address needs brackets")
    return bare, int(port)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class HostOverrides(AbstractResolver):
    """Resolves host names, some of them to addresses of ``--resolve``."""

    def __init__(self, overrides: Mapping[HostPort, HostPort]) -> None:
        self._overrides = overrides
        self._system = ThreadedResolver()

    def dialled(self, host: str, port: int) -> HostPort:
        """The (host, port) to connect to."""
        return self._overrides.get((host.lower(), port), (host, port))

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a name; see AbstractResolver."""
        return await self._system.resolve(*self.dialled(host, port), family)

    async def close(self) -> None:
        """There is nothing to close."""
