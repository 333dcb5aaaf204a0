"""``/livez``, answered by a thread of its own: also while the event loop is busy, and when it stands still.

The thread accepts the connections of the admin listener and looks at their first bytes. A request for ``/livez`` it
answers and closes; everything else is the event loop's. What it answers is the loop's heartbeat: it fails when the loop
has not run for ``Limits.heartbeat_seconds``, so that the kubelet restarts the container. Where the loop stands is
logged once before: the operator needs to know what held it.
"""

import contextlib
import itertools
import re
import selectors
import socket
import sys
import threading
from asyncio import AbstractEventLoop
from collections import OrderedDict
from collections.abc import Callable, Sequence
from time import monotonic
from traceback import extract_stack
from typing import Final

import structlog

from gateway.serving.acceptor import Take
from gateway.serving.refusals import SERVER

_LOG: Final = structlog.get_logger(__name__)

HEARTBEAT_SECONDS: Final = 0.5
"""Between two heartbeats."""

_STILL_SECONDS: Final = 2.0
"""A loop without a heartbeat for so long is logged, with its stack."""

_FRAMES: Final = 8
"""Of the stack, the innermost ones."""

_PENDING: Final = 64
"""Connections that have sent nothing yet; beyond it the oldest is the loop's, which has limits for such."""

_REQUEST: Final = re.compile(rb"(GET|HEAD) /livez([? ][^\r\n]*)")
_PEEKED_BYTES: Final = 256
_READ_BYTES: Final = 65_536


class Heartbeat:
    """When the loop ran last. ``record`` is called in the loop; ``age`` by any thread."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._last = clock()

    def record(self) -> None:
        """The loop runs."""
        self._last = self._clock()

    @property
    def age(self) -> float:
        """Seconds since the last heartbeat."""
        return self._clock() - self._last

    def problem(self, longest: float) -> str | None:
        """Why the process is not alive, if the last heartbeat is older than ``longest`` seconds."""
        age = self.age
        return f"the event loop has not run for {age:.1f} s; the limit is {longest:g} s" if age > longest else None


class LivenessThread:
    """Accepts at listening sockets, answers ``/livez``, and passes on the rest. Create it in the running loop.

    Args:
        listening: the sockets; they are closed at the end.
        take: gets all other connections, in the loop.
        heartbeat: of the loop.
        loop: the running one.
        longest: seconds after which a loop without a heartbeat is dead.
    """

    def __init__(
        self,
        listening: Sequence[socket.socket],
        take: Take,
        heartbeat: Heartbeat,
        loop: AbstractEventLoop,
        longest: float,
    ) -> None:
        self._listening = listening
        self._take = take
        self._heartbeat = heartbeat
        self._longest = longest
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._logged = False
        self._pending: OrderedDict[socket.socket, str] = OrderedDict()
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._run, name="liveness", daemon=True)

    def start(self) -> None:
        """Begin to accept."""
        self._stop, self._stopping = socket.socketpair()
        for listening in self._listening:
            self._selector.register(listening, selectors.EVENT_READ)
        self._selector.register(self._stopping, selectors.EVENT_READ)
        self._thread.start()

    def stop(self) -> None:
        """Close the sockets, and the connections that have sent nothing."""
        self._stop.close()
        self._thread.join()

    def _run(self) -> None:
        try:
            while True:
                for key, _ in self._selector.select(HEARTBEAT_SECONDS):
                    ready = key.fileobj
                    assert isinstance(ready, socket.socket)  # noqa: S101 - nothing else is registered
                    if ready is self._stopping:
                        return
                    with contextlib.suppress(OSError):
                        if ready in self._pending:
                            self._look(ready)
                        else:
                            self._accept(ready)
                self._watch()
        finally:
            for each in (*self._listening, *self._pending, self._stopping):
                each.close()
            self._selector.close()

    def _accept(self, listening: socket.socket) -> None:
        connected, address = listening.accept()
        connected.setblocking(False)
        self._pending[connected] = f"{address[0]}:{address[1]}"
        self._selector.register(connected, selectors.EVENT_READ)
        if len(self._pending) > _PENDING:
            self._pass_on(next(iter(self._pending)))

    def _look(self, connected: socket.socket) -> None:
        """A connection whose client has sent something, or has closed."""
        try:
            found = _REQUEST.match(connected.recv(_PEEKED_BYTES, socket.MSG_PEEK))
        except OSError:
            found = None
        if found is None:
            self._pass_on(connected)
            return
        self._forget(connected)
        with connected:
            # Closing with bytes unread would reset the connection, and the answer would be lost.
            connected.recv(_READ_BYTES)
            connected.sendall(self._answer(found[1] == b"HEAD", b"verbose" in found[2]))
            connected.shutdown(socket.SHUT_WR)

    def _forget(self, connected: socket.socket) -> str:
        self._selector.unregister(connected)
        return self._pending.pop(connected)

    def _pass_on(self, connected: socket.socket) -> None:
        peer = self._forget(connected)
        try:
            self._loop.call_soon_threadsafe(self._take, connected, peer)
        except RuntimeError:
            # The loop is closed.
            connected.close()

    def _answer(self, is_head: bool, is_verbose: bool) -> bytes:  # noqa: FBT001 - of the request
        problem = self._heartbeat.problem(self._longest)
        status, body = liveness(problem, is_verbose=is_verbose)
        head = (
            f"HTTP/1.1 {status} {'OK' if problem is None else 'Service Unavailable'}\r\n"
            f"Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nServer: {SERVER}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + (b"" if is_head else body)

    def _watch(self) -> None:
        """Log once where a loop stands that does not run."""
        age = self._heartbeat.age
        if age < _STILL_SECONDS:
            self._logged = False
        elif not self._logged:
            self._logged = True
            frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - the only way to see another thread
            where = itertools.islice(reversed(extract_stack(frame)), _FRAMES) if frame else ()
            text = [f"{each.filename.rpartition('/')[2]}:{each.lineno} {each.name}" for each in where]
            _LOG.error("the event loop stands still: no review is answered", seconds=round(age, 1), where=text)


def liveness(problem: str | None, *, is_verbose: bool) -> tuple[int, bytes]:
    """Status and body of ``/livez``, in the form of Kubernetes' components."""
    if problem is not None:
        return 503, f"[-]heartbeat failed: {problem}\nlivez check failed\n".encode()
    return 200, b"[+]heartbeat ok\nlivez check passed\n" if is_verbose else b"ok\n"
