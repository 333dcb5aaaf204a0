"""The channel between the parent and one process of a gateway: a socket pair over which connections are passed.

    ============  =======  =========================================================================================
    parent sends  with     meaning
    ============  =======  =========================================================================================
    ``c``         a socket  a client's connection for reviews
    ``a``         a socket  a connection of the parent for the admin listener
    ============  =======  =========================================================================================

    =============  =================================================================================================
    process sends  meaning
    =============  =================================================================================================
    ``r``          it serves: connections for reviews may follow
    ``k``          it has taken the connection that came first of those not taken yet; nothing was read from it before
    ``q``          it takes no more connections
    ``h``          its event loop runs: twice a second, while it serves
    =============  =================================================================================================

Each message is one byte. The end of the stream means that the other side is gone. A process that loses its parent
answers the reviews in flight and exits.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from gateway.serving.acceptor import Take
from gateway.serving.liveness import HEARTBEAT_SECONDS

CONNECTION: Final = b"c"
ADMIN: Final = b"a"

READY: Final = b"r"
TAKEN: Final = b"k"
CLOSED: Final = b"q"
HEARTBEAT: Final = b"h"

VARIABLE: Final = "_ADMISSION_GATEWAY_PROCESS"
"""The variable in which the parent passes on ``ProcessIdentity``."""

_MESSAGES_A_WAKE: Final = 64
"""Messages read in one loop iteration: see ``acceptor``."""


class ProcessIdentity(Struct, frozen=True, kw_only=True):
    """What a process knows of itself.

    ``number`` is 1 for the first. ``descriptor`` is that of its channel. ``speaks``: whether it prints what the start
    finds, as a gateway of one process does; only the first process does, and only once.
    """

    number: int
    descriptor: int
    speaks: bool

    @classmethod
    def inherited(cls) -> "ProcessIdentity | None":
        """That of this process; None: its parent is no gateway. It is removed from the environment."""
        text = os.environ.pop(VARIABLE, None)
        if text is None:
            return None
        number, descriptor, speaks = map(int, text.split(":"))
        return cls(number=number, descriptor=descriptor, speaks=bool(speaks))

    @property
    def text(self) -> str:
        """As ``inherited`` reads it."""
        return f"{self.number}:{self.descriptor}:{int(self.speaks)}"


class ProcessChannel:
    """A process' end of its channel. Create it in a running loop.

    Args:
        descriptor: of the socket.
        listens: where the parent accepts connections for reviews.
        lost: called when the parent is gone.

    ``reviews`` and ``admin`` are the sources of connections for both listeners.
    """

    def __init__(self, descriptor: int, listens: tuple[str, int], lost: Callable[[], object]) -> None:
        self.listens = listens
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)
        os.set_inheritable(descriptor, False)
        self._lost = lost
        self._takes: dict[bytes, Take] = {}
        self.reviews = PassedConnections(self, CONNECTION)
        self.admin = PassedConnections(self, ADMIN)

    def open(self, kind: bytes, take: Take) -> None:
        """Give connections of this kind to ``take``."""
        if not self._takes:
            self._loop.add_reader(self._socket.fileno(), self._receive)
        self._takes[kind] = take

    def close(self, kind: bytes) -> None:
        """Take no more connections of this kind."""
        if self._takes.pop(kind, None) is None:
            return
        if kind == CONNECTION:
            self.send(CLOSED)
        if not self._takes:
            self._loop.remove_reader(self._socket.fileno())

    def ready(self) -> None:
        """Report that the gateway serves, and from now on that its loop runs."""
        self.send(READY)
        self._send_heartbeat()

    def _send_heartbeat(self) -> None:
        self.send(HEARTBEAT)
        self._loop.call_later(HEARTBEAT_SECONDS, self._send_heartbeat)

    def send(self, message: bytes) -> None:
        """Send a message to the parent. One that is gone is noticed by the reader."""
        try:
            # It never blocks: the parent passes on no more connections than it has room for.
            self._socket.send(message)
        except OSError:
            return

    def _receive(self) -> None:
        for _ in range(_MESSAGES_A_WAKE):
            try:
                message, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                message, descriptors = b"", []
            if not message:
                self._loop.remove_reader(self._socket.fileno())
                self._lost()
                return
            if descriptors:
                self._pass(message, socket.socket(fileno=descriptors[0]))

    def _pass(self, kind: bytes, connected: socket.socket) -> None:
        take = self._takes.get(kind)
        if take is None:
            # Not taken: the parent still has the connection.
            connected.close()
            return
        if kind == CONNECTION:
            self.send(TAKEN)
        connected.setblocking(False)
        take(connected, _peer(connected))


class PassedConnections:
    """The connections of one kind that the parent passes on: a ConnectionSource."""

    def __init__(self, channel: ProcessChannel, kind: bytes) -> None:
        self._channel, self._kind = channel, kind

    async def open(self, take: Take) -> tuple[str, int]:
        """See ConnectionSource."""
        self._channel.open(self._kind, take)
        return self._channel.listens

    def close(self) -> None:
        """See ConnectionSource."""
        self._channel.close(self._kind)


def _peer(connected: socket.socket) -> str:
    try:
        address = connected.getpeername()
    except OSError:
        # The client has gone; the first read says so.
        return "unknown"
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "the parent process"
