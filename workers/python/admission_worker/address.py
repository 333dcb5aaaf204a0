"""Where a worker listens, and whether it can: an address that is taken is said at once, in one line.

gRPC would not say: on a Unix socket it removes the file of whoever listens there and takes its place; so a socket is
tried first, and its file removed only when nobody answers. (On TCP, ``SO_REUSEPORT`` has to be switched off, or two
workers would share a port.) A worker that was killed leaves its file behind, which is why an orphan is removed and is
no error.
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
"""How long somebody on the socket has to take a connection; a kernel answers for a process in microseconds."""


class Address(Struct, frozen=True, kw_only=True):
    """Where to listen: a Unix socket's path, or a host and a port (0: any that is free)."""

    path: str = ""
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        """As gRPC writes it: ``unix:PATH`` or ``HOST:PORT``."""
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(text: str) -> Address:
    """An address as operators write it.

    Args:
        text: ``unix:PATH``, ``unix:///ABSOLUTE``, ``HOST:PORT`` or ``[IPv6]:PORT``; a leading ``dns:///``, which gRPC
            clients need, is taken off, so that a client's target can be given as it is.

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
    """See that the address can be listened on; remove the file of a Unix socket that nobody listens on.

    Raises:
        AddressError: somebody listens there, it is not ours to take, or it does not exist.
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
    """Whether somebody listens on a Unix socket. Whoever is too busy to answer, or forbids it, is somebody."""
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
        # As gRPC does: connections of a worker that has just ended do not keep the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(place)
            probe.listen()  # two sockets may be bound with SO_REUSEADDR; only one may listen
        except OSError as error:
            raise AddressError(f"cannot listen on {address}: {error.strerror}") from None
