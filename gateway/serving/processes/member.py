"""One process of a gateway, as its parent sees it: how it is started, what was passed to it, and its exit.

A process is this same command, started again by ``exec``: no thread, lock or connection is inherited. It leads a
process group, so that a terminal's Ctrl-C reaches the parent only, which then signals each process once.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from typing import Final

from gateway.hooks.execution.exit_wait import exited
from gateway.serving.liveness import Heartbeat
from gateway.serving.processes.channel import ADMIN, CLOSED, CONNECTION, READY, TAKEN, VARIABLE, ProcessIdentity

MOST_PENDING: Final = 8
"""Connections that a process is given before it has taken the first of them: a burst of 25 of one API server is spread
evenly over three processes, and no more than eight wait for one that hangs."""

_MESSAGES: Final = 64
"""Messages read at once: more than a process sends in between."""

Pending = tuple[socket.socket, str]
"""A connection that a process has not taken yet, and the client's address."""


class Member:
    """A process that was started.

    Args:
        number: 1 for the first.
        speaks: see ProcessIdentity.
        changed: called when it can take more connections, or no more at all.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, number: int, *, speaks: bool, changed: Callable[[], object]) -> None:
        self.number = number
        self.pending: deque[Pending] = deque()
        self.order = 0
        """When it was given the last connection: a number that grows."""
        self.is_ready = False
        self.is_closed = False
        self.heartbeat = Heartbeat()
        """Of its event loop, since it serves."""
        self.ready = asyncio.Event()
        """Set when it serves, or has ended."""
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._reload_when_ready = False
        self._process = self._launch(speaks=speaks)
        self._loop.add_reader(self._socket.fileno(), self._receive)
        self._exit = asyncio.create_task(self._wait())

    def _launch(self, *, speaks: bool) -> subprocess.Popen[bytes]:
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        with theirs:
            own = ProcessIdentity(number=self.number, descriptor=theirs.fileno(), speaks=speaks)
            try:
                return subprocess.Popen(  # noqa: S603 - this command itself
                    [sys.executable, *sys.orig_argv[1:]],
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, VARIABLE: own.text},
                    pass_fds=(theirs.fileno(),),
                    process_group=0,
                )
            except BaseException:
                self._socket.close()
                raise

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self._exit.done()

    @property
    def takes(self) -> bool:
        """Whether it can take a connection now."""
        return self.is_ready and not self.is_closed and not self.has_ended and len(self.pending) < MOST_PENDING

    async def end(self) -> int:
        """Wait until it has ended; its exit code, or the negative number of its signal."""
        return await asyncio.shield(self._exit)

    def give(self, connection: Pending) -> bool:
        """Pass on a connection. It stays in ``pending`` until the process has taken it.

        Returns:
            False: the process takes none now.
        """
        if not self._send(CONNECTION, connection[0]):
            return False
        self.pending.append(connection)
        return True

    def connect(self) -> socket.socket:
        """A connection to its admin listener. Raises ConnectionError."""
        ours, theirs = socket.socketpair()
        with theirs:
            if self.has_ended or not self._send(ADMIN, theirs):
                ours.close()
                raise ConnectionError("the process takes no connection")
        ours.setblocking(False)
        return ours

    def signal(self, number: int) -> None:
        """Send a signal. A process that is starting reloads when it is ready: SIGHUP would end it before."""
        if number == signal.SIGHUP and not self.is_ready:
            self._reload_when_ready = True
        elif number == signal.SIGINT and not self.is_ready:
            # Python would show where the start was interrupted.
            self.signal(signal.SIGTERM)
        elif not self.has_ended:
            # Popen sends none after the process was waited for.
            self._process.send_signal(number)

    def _send(self, kind: bytes, connected: socket.socket) -> bool:
        try:
            socket.send_fds(self._socket, [kind], [connected.fileno()])
        except OSError:
            # Full, or the process is ending.
            return False
        return True

    def _receive(self) -> bool:
        """Read what the process has sent; whether there may be more."""
        try:
            messages = self._socket.recv(_MESSAGES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            messages = b""
        if not messages:
            self._loop.remove_reader(self._socket.fileno())
            self.is_closed = True
        for number in messages:
            self._handle(bytes((number,)))
        self._changed()
        return bool(messages)

    def _handle(self, message: bytes) -> None:
        self.heartbeat.record()
        if message == TAKEN:
            self.pending.popleft()[0].close()
        elif message == CLOSED:
            self.is_closed = True
        elif message == READY:
            self.is_ready = True
            self.ready.set()
            if self._reload_when_ready:
                self.signal(signal.SIGHUP)

    async def _wait(self) -> int:
        await exited(self._process)
        # What it sent before it ended is still in the channel: what it has taken must not be given to another process.
        while self._receive():
            pass
        self._loop.remove_reader(self._socket.fileno())
        self.is_closed = True
        self._socket.close()
        self.ready.set()
        return self._process.wait()
