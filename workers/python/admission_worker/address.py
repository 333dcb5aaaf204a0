"""The address that a worker listens on, and a check that it is free.

gRPC makes no such check: on a Unix socket it replaces the file, even if another process listens on it. So the worker
connects to the socket first, and removes the file only if no process accepts. It must remove such a file, because a
killed worker leaves one. (On TCP, ``SO_REUSEPORT`` must be off, or two workers can share a port.)
"""

import errno
import os
import re
import socket
import stat
from pathlib import Path

from msgspec import Struct

from admission_worker.errors import AddressError

SUN_PATH_BYTES = 107
"""The longest path of a Unix socket on Linux: ``sun_path`` has 108 bytes, the last of which is NUL (unix(7))."""

LAST_PORT = 65535
"""Ports are 16 bits."""

_PORT = re.compile(r"[0-9]{1,5}")

PROBE_SECONDS = 1.0
"""The time limit of a connection to an existing socket; the kernel accepts it in microseconds."""


class Address(Struct, frozen=True, kw_only=True):
    """A Unix socket's path, or a host and a port (0: any free port)."""

    path: str = ""
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        """In gRPC's form: ``unix:PATH`` or ``HOST:PORT``."""
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(text: str) -> Address:
    """Parse an address.

    Args:
        text: ``unix:PATH``, ``unix:///ABSOLUTE``, ``HOST:PORT`` or ``[IPv6]:PORT``; a leading ``dns:///`` is ignored,
            so that a gRPC client's target is valid too.

    Raises:
        AddressError: it is none of these.
    """
    return _parse_unix(text) if text.startswith("unix:") else _parse_port(text)


def _parse_unix(text: str) -> Address:
    path = text.removeprefix("unix:")
    if path.startswith("//"):
        path = path.removeprefix("//")
        if not path.startswith("/"):
            raise AddressError(f"{text!r}: unix:// must be followed by an absolute path, as in unix:///run/worker.sock")
    size = len(os.fsencode(path))
    if not 0 < size <= SUN_PATH_BYTES:
        raise AddressError(f"{text!r}: the path of a Unix socket has 1 to {SUN_PATH_BYTES} bytes, this one has {size}")
    return Address(path=path)


def _parse_port(text: str) -> Address:
    host, _, port = text.removeprefix("dns:///").rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise AddressError(f"{text!r}: an IPv6 address is written in brackets, as in [::1]:50051")
    if not host or "/" in host or not _PORT.fullmatch(port) or int(port) > LAST_PORT:
        raise AddressError(f"{text!r}: must be HOST:PORT, [IPv6]:PORT or unix:PATH, such as 127.0.0.1:50051")
    return Address(host=host, port=int(port))


def make_free(address: Address) -> None:
    """Check that the address is free; remove the file of a Unix socket on which no process listens.

    Raises:
        AddressError: another process listens there, the file is not a socket, or the address does not exist.
    """
    if address.path:
        _make_path_free(address, Path(address.path))
    else:
        _try_port(address)


def _make_path_free(address: Address, path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        if not os.access(path.parent, os.W_OK | os.X_OK):
            reason = f"{path.parent} is no directory that can be written to"
            raise AddressError(f"cannot listen on {address}: {reason}") from None
        return
    except OSError as error:
        raise AddressError(f"cannot listen on {address}: {error.strerror}") from None
    if not stat.S_ISSOCK(mode):
        raise AddressError(f"cannot listen on {address}: the file is no socket; remove it or choose another path")
    if _is_answered(address.path):
        raise AddressError(f"cannot listen on {address}: another process listens there; stop it or choose another path")
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise AddressError(f"cannot listen on {address}: its old file cannot be removed: {error.strerror}") from None


def _is_answered(path: str) -> bool:
    """Whether a process listens on a Unix socket. One that is too busy to accept, or forbids it, counts."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_SECONDS)
        try:
            probe.connect(path)
        except OSError as error:
            return error.errno not in {errno.ECONNREFUSED, errno.ENOENT}
    return True


def _try_port(address: Address) -> None:
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise AddressError(f"cannot listen on {address}: {getattr(error, 'strerror', None) or error}") from None
    family, kind, protocol, _, place = found[0]
    with socket.socket(family, kind, protocol) as probe:
        # As in gRPC: connections of a worker that has just ended do not keep the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(place)
            probe.listen()  # two sockets may be bound with SO_REUSEADDR; only one may listen
        except OSError as error:
            raise AddressError(f"cannot listen on {address}: {error.strerror}") from None
