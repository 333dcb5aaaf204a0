"""Accepts connections at an address: of a listener in the same process, or of one that passes them on.

A ``ConnectionSource`` is where a listener gets its connections: an ``Acceptor``, or with ``--processes`` the process
that accepts for all (``gateway.serving.processes``).
"""

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Final, Protocol

import structlog

_LOG: Final = structlog.get_logger(__name__)

_ACCEPTS_A_WAKE: Final = 16
"""Connections accepted in one loop iteration: 0.5 ms. Under a flood of connections most are closed later without
anything else (``listener``), so that to accept them must not be what takes the time."""

_RECEIVE_BYTES: Final = 32_768
"""The kernel's buffer of one connection, which Linux doubles. TLS reads all that it holds at once, and keeps buffers of
that size: 1,000 clients that sent much made half a gigabyte of them, now 140 MB. At a round trip of 1 ms it lets some
40 MB/s through; a body of 3 MB takes as long as before."""

_NO_RESOURCES: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_PAUSE_SECONDS: Final = 1.0
"""Without file descriptors left, the socket stays readable: without a pause, accepting would spin."""

Take = Callable[[socket.socket, str], object]
"""Receives a connection, which does not block, and the client's address and port."""


class ListenError(Exception):
    """The gateway cannot listen at an address; the message says why, and what the operator can do."""


class ConnectionSource(Protocol):
    """Gives a listener its connections."""

    async def open(self, take: Take) -> tuple[str, int]:
        """Begin. Returns the host and port at which clients connect. Raises ListenError."""

    def close(self) -> None:
        """Give no more connections."""


class Acceptor:
    """Listens on every address of ``host``; port 0 selects a free port. A ConnectionSource; needs a running loop."""

    def __init__(self, host: str, port: int, backlog: int) -> None:
        self._host, self._port, self._backlog = host, port, backlog
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._take: Take | None = None
        self._paused = True

    async def open(self, take: Take) -> tuple[str, int]:
        """See ConnectionSource."""
        self._sockets = await listening_sockets(self._host, self._port, self._backlog)
        for listening in self._sockets:
            # Connections inherit it.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        self._take = take
        self._paused = True
        self.resume()
        name = self._sockets[0].getsockname()
        return name[0], name[1]

    def close(self) -> None:
        """See ConnectionSource."""
        self.pause()
        for listening in self._sockets:
            listening.close()
        self._sockets = []

    def pause(self) -> None:
        """Leave connections in the kernel until ``resume``."""
        self._paused = True
        for listening in self._sockets:
            self._loop.remove_reader(listening.fileno())

    def resume(self) -> None:
        """Accept, again."""
        if not self._paused:
            return
        self._paused = False
        for listening in self._sockets:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTS_A_WAKE):
            if self._paused:
                return
            try:
                connected, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_RESOURCES:
                    raise
                self._wait_for_resources(listening, error)
                return
            connected.setblocking(False)
            assert self._take is not None  # noqa: S101 - set before the readers
            self._take(connected, f"{address[0]}:{address[1]}")

    def _wait_for_resources(self, listening: socket.socket, error: OSError) -> None:
        _LOG.error("no more connections can be accepted for now", why=error.strerror, pause_seconds=_PAUSE_SECONDS)
        self._loop.remove_reader(listening.fileno())
        self._loop.call_later(_PAUSE_SECONDS, self._try_again, listening)

    def _try_again(self, listening: socket.socket) -> None:
        if listening in self._sockets and not self._paused:
            self._loop.add_reader(listening.fileno(), self._accept, listening)


async def listening_sockets(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Non-blocking listening sockets, one for each address of ``host`` (all of them if it is empty), all on one port.

    Raises ListenError.
    """
    sockets: list[socket.socket] = []
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, _, _, _, address in dict.fromkeys(found):
            chosen = port or (sockets[0].getsockname()[1] if sockets else 0)
            # IPv4 has a socket of its own: create_server makes IPv6 sockets IPv6-only.
            listening = socket.create_server((address[0], chosen), family=family, backlog=backlog)
            listening.setblocking(False)
            sockets.append(listening)
    except OSError as error:
        for listening in sockets:
            listening.close()
        raise ListenError(
            f"cannot listen on {host or '*'}:{port}: {error.strerror or error}; "
            "choose another address, or stop the process that has it"
        ) from error
    return sockets
