"""Accepts TLS connections; answers a client that speaks plain HTTP, and logs everything else that is not TLS.

The loop's own ``create_server`` logs no failed handshake, and does not answer a client that speaks plain HTTP. So the
listener takes sockets itself and peeks at the first byte before it starts the loop's TLS:

    0x16 (a TLS handshake record)   TLS, with a limit on its time; a failure is noted with OpenSSL's reason, and the
                                    client gets the alert
    an upper-case letter            plain HTTP: an answer that says so
    nothing, then the end           a TCP probe: closed without a log line
    anything else                   noted and closed
"""

import asyncio
import itertools
import socket
import ssl
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Final

from gateway.serving.acceptor import ConnectionSource
from gateway.serving.connection import Connection
from gateway.serving.limits import Limits
from gateway.serving.refusals import Note, Refusal, raw_answer
from gateway.serving.socket_state import state_of
from gateway.serving.tls import alert_of
from gateway.telemetry.events import Events
from gateway.telemetry.table import HTTP_REQUESTS_REJECTED, LIMIT_HITS

_HANDSHAKE_RECORD: Final = 0x16
_PLAIN_HTTP: Final = "this port accepts TLS only, and the client sent plain HTTP; use https://"

_HANDSHAKES_A_WAKE: Final = 4
"""Handshakes begun in one iteration: about 4 ms."""

_HANDSHAKES_A_WAKE_WHEN_BUSY: Final = 1
"""The same while reviews wait: a tenth of an iteration, so that new connections are served, too."""

_HANDSHAKES_IN_PROGRESS: Final = 64
_SLOW_SECONDS: Final = 0.25
"""Handshakes in progress at once: at a round trip of 100 ms 640 a second, about what one core can make. Clients that
take longer do not keep others away."""

_PAUSE_SECONDS: Final = 0.01
"""Until the next look while so many are in progress."""

_LOOKS_A_WAKE: Final = 64
"""Connections that are looked at in one iteration; most may be of clients that have gone."""

_HINTS: Final = {
    "UNKNOWN_CA": "the client does not know the CA of the gateway's certificate: compare caBundle with it",
    "BAD_CERTIFICATE": (
        "the client refuses the gateway's certificate: compare its CA with caBundle, its names with the Service's"
    ),
    "CERTIFICATE_EXPIRED": "the client reports that the gateway's certificate has expired",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "clients need a certificate here (--client-ca), and this one brought none",
    "CERTIFICATE_VERIFY_FAILED": "the client's certificate is not of the CA in --client-ca",
    "UNSUPPORTED_PROTOCOL": "the client offers no TLS 1.2 or newer",
}
"""What OpenSSL's reasons mean to an operator; those of alerts have a prefix before these."""


class Listener:
    """Gives each connection to a protocol of ``factory`` after the TLS handshake. Needs a running loop.

    A handshake takes about 1 ms. So in one iteration of the loop only a few begin, and only one while reviews wait
    (``is_busy``): what is connected has priority. The connection whose client spoke last is next: when there are more
    than can be served, those that wait longest are the ones whose clients give up. One whose client has gone is closed
    without a handshake.

    Args:
        factory: makes the protocol of a connection.
        limits: of the time and the number of handshakes.
        note: records what was refused.
        events: counts the connections that are closed before their handshake.
        is_busy: whether reviews wait.
    """

    def __init__(
        self,
        factory: Callable[[], Connection],
        *,
        limits: Limits,
        note: Note,
        events: Events,
        is_busy: Callable[[], bool],
    ) -> None:
        self._factory = factory
        self._limits = limits
        self._note = note
        self._events = events
        self._is_busy = is_busy
        self._loop = asyncio.get_running_loop()
        self._source: ConnectionSource | None = None
        self._silent: OrderedDict[_Client, None] = OrderedDict()
        self._ready: OrderedDict[_Client, None] = OrderedDict()
        self._tasks: OrderedDict[asyncio.Task[None], float] = OrderedDict()
        self._wakes = False
        self._sweeper: asyncio.TimerHandle | None = None

    async def open(self, source: ConnectionSource, context: ssl.SSLContext) -> tuple[str, int]:
        """Take connections from there. Returns the host and port at which clients connect. Raises ListenError."""
        self.context = context
        self._source = source
        return await source.open(self._take)

    async def close(self) -> None:
        """Stop accepting, and cancel handshakes. Established connections stay."""
        if self._source is not None:
            self._source.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for client in (*self._silent, *self._ready):
            self._forget(client)
            client.connected.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _take(self, connected: socket.socket, peer: str) -> None:
        if len(self._silent) + len(self._ready) + len(self._tasks) >= self._limits.handshakes:
            self._evict()
        client = _Client(connected, peer, monotonic())
        self._silent[client] = None
        if not self._look(client):
            self._loop.add_reader(connected.fileno(), self._look, client)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(self._sweep_seconds, self._sweep)

    @property
    def _sweep_seconds(self) -> float:
        return self._limits.handshake_seconds / 8

    def _evict(self) -> None:
        """Close the oldest connection that is silent; else that waits for its handshake, or is in it."""
        self._events.count(LIMIT_HITS, "handshakes")
        waiting = self._silent or self._ready
        if waiting:
            client = next(iter(waiting))
            self._forget(client)
            client.connected.close()
        elif self._tasks:
            self._tasks.popitem(last=False)[0].cancel()

    def _forget(self, client: "_Client") -> None:
        if client in self._silent:
            del self._silent[client]
            self._loop.remove_reader(client.connected.fileno())
        self._ready.pop(client, None)

    def _sweep(self) -> None:
        """Close the connections whose client has been silent for too long, or has waited too long."""
        self._sweeper = None
        overdue = monotonic() - self._limits.handshake_seconds
        for waiting in (self._silent, self._ready):
            while waiting and (client := next(iter(waiting))).since <= overdue:
                why = "not a byte" if waiting is self._silent else "no turn for its handshake"
                self._forget(client)
                client.connected.close()
                self._note(Refusal.TLS, peer=client.peer, why=f"{why} in {self._limits.handshake_seconds:g} s")
        if self._silent or self._ready:
            self._sweeper = self._loop.call_later(self._sweep_seconds, self._sweep)

    def _look(self, client: "_Client") -> bool:
        """Handle a connection by its first byte, which is left in the socket for TLS to read. False: there is none."""
        try:
            first = client.connected.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            # The connection was reset: the client sent no request.
            first = b""
        self._forget(client)
        if first and first[0] == _HANDSHAKE_RECORD:
            client.since = monotonic() - state_of(client.connected).waited
            self._ready[client] = None
            if not self._wakes:
                self._wakes = True
                self._loop.call_soon(self._wake)
        elif first:
            self._start(self._refuse(client.connected, client.peer, first))
        else:
            client.connected.close()
        return True

    def _wake(self) -> None:
        """Begin some handshakes, those of the last clients; once in each iteration while some wait."""
        left = min(_HANDSHAKES_A_WAKE_WHEN_BUSY if self._is_busy() else _HANDSHAKES_A_WAKE, self._room())
        for _ in range(_LOOKS_A_WAKE):
            if not self._ready or left <= 0:
                break
            client, _ = self._ready.popitem()
            if state_of(client.connected).is_open:
                left -= 1
                self._start(self._handshake(client))
            else:
                client.connected.close()
                self._events.count(HTTP_REQUESTS_REJECTED, Refusal.HANGUP)
        self._wakes = bool(self._ready)
        if self._wakes and self._room() > 0:
            self._loop.call_soon(self._wake)
        elif self._wakes:
            self._loop.call_later(_PAUSE_SECONDS, self._wake)

    def _room(self) -> int:
        """How many more handshakes may be in progress. One that the client does not go on with does not count."""
        slow = monotonic() - _SLOW_SECONDS
        recent = itertools.takewhile(lambda begun: begun > slow, reversed(self._tasks.values()))
        return _HANDSHAKES_IN_PROGRESS - sum(1 for _ in recent)

    def _start(self, handling: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(handling)
        self._tasks[task] = monotonic()
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))

    async def _refuse(self, connected: socket.socket, peer: str, first: bytes) -> None:
        try:
            if first.isupper():
                self._note(Refusal.PLAIN_HTTP, peer=peer, why=_PLAIN_HTTP)
                await self._send_last(connected, raw_answer(Refusal.PLAIN_HTTP, _PLAIN_HTTP))
            else:
                self._note(Refusal.TLS, peer=peer, why=f"no TLS: the first byte is 0x{first[0]:02x}")
        finally:
            connected.close()

    async def _handshake(self, client: "_Client") -> None:
        # The transport closes its socket when the handshake fails. This one keeps the connection open for the alert.
        with client.connected.dup() as kept:
            await self._tls(client, kept)

    async def _tls(self, client: "_Client", kept: socket.socket) -> None:
        def protocol() -> Connection:
            made = self._factory()
            made.socket, made.opened = client.connected, client.since
            return made

        try:
            await self._loop.connect_accepted_socket(
                protocol,
                client.connected,
                ssl=self.context,
                ssl_handshake_timeout=self._limits.handshake_seconds,
                ssl_shutdown_timeout=self._limits.shutdown_seconds,
            )
        except ssl.SSLError as error:
            self._note(Refusal.TLS, peer=client.peer, why=f"TLS handshake failed: {_explained(error)}")
            await self._send_last(kept, alert_of(error))
        except OSError as error:
            why = error.strerror or str(error) or "the client closed the connection"
            self._note(Refusal.TLS, peer=client.peer, why=f"TLS handshake interrupted: {why}")

    async def _send_last(self, connected: socket.socket, content: bytes) -> None:
        """Send this, then read until the client closes: a close with bytes unread would lose what was sent."""
        try:
            async with asyncio.timeout(self._limits.linger_seconds):
                await self._loop.sock_sendall(connected, content)
                connected.shutdown(socket.SHUT_WR)
                while await self._loop.sock_recv(connected, 65536):
                    pass
        except (OSError, TimeoutError):
            return


class _Client:
    """A connection without TLS: ``since`` it was accepted, or since its client has begun the handshake."""

    __slots__ = ("connected", "peer", "since")

    def __init__(self, connected: socket.socket, peer: str, since: float) -> None:
        self.connected, self.peer, self.since = connected, peer, since


def _explained(error: ssl.SSLError) -> str:
    reason = error.reason or str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{error.verify_message} ({_HINTS['CERTIFICATE_VERIFY_FAILED']})"
    hint = next((hint for known, hint in _HINTS.items() if reason.endswith(known)), None)
    return f"{reason} ({hint})" if hint else reason
