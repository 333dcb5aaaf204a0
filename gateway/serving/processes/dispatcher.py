"""Accepts the connections of all processes, and passes each to one of them.

The process with the fewest connections that it has not taken yet gets the next one, of equal ones the one that has
waited longest: so all get the same number, one that is busy fewer, and one that hangs a few. While none has room, they
wait in the kernel. Its own ways of sharing are worse. With SO_REUSEPORT four processes got 5, 2, 1 and 0 of eight
connections, and those that wait at a socket that is closed are reset; at a shared socket one process got all of 25.

A connection stays open here until its process reports that it has taken it. If that process ends before, another one
gets it, and the client notices nothing.
"""

import itertools
import socket
from collections import deque

from gateway.serving.acceptor import Acceptor
from gateway.serving.processes.member import Member, Pending


class Dispatcher:
    """Passes connections on. Create it in a running loop.

    Args:
        host, port, backlog: of the listening socket; port 0 selects a free port.
    """

    def __init__(self, host: str, port: int, backlog: int) -> None:
        self._acceptor = Acceptor(host, port, backlog)
        self._members: list[Member] = []
        self._waiting: deque[Pending] = deque()
        self._orders = itertools.count(1)

    async def open(self) -> tuple[str, int]:
        """Listen. Returns host and port. Raises ListenError."""
        return await self._acceptor.open(self._take)

    def add(self, member: Member) -> None:
        """Pass connections to this process, too."""
        self._members.append(member)

    def remove(self, member: Member) -> None:
        """Pass none to this process, which has ended; those that it has not taken go to others."""
        self._members.remove(member)
        self._waiting.extendleft(reversed(member.pending))
        member.pending.clear()
        self.changed()

    def changed(self) -> None:
        """A process can take more connections, or none any more."""
        while self._waiting:
            if not self._give(self._waiting[0]):
                return
            self._waiting.popleft()
        self._acceptor.resume()

    def close(self) -> None:
        """Stop listening; what was not passed on is closed."""
        self._acceptor.close()
        for connected, _ in self._waiting:
            connected.close()
        self._waiting.clear()

    def _take(self, connected: socket.socket, peer: str) -> None:
        if self._waiting or not self._give((connected, peer)):
            # The others wait in the kernel.
            self._waiting.append((connected, peer))
            self._acceptor.pause()

    def _give(self, connection: Pending) -> bool:
        for member in sorted((each for each in self._members if each.takes), key=_load):
            if member.give(connection):
                member.order = next(self._orders)
                return True
        return False


def _load(member: Member) -> tuple[int, int]:
    return len(member.pending), member.order
