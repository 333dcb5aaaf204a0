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
import socket
import ssl
from collections.abc import Callable
from typing import Final

from gateway.serving.acceptor import ConnectionSource
from gateway.serving.limits import Limits
from gateway.serving.refusals import Note, Refusal, raw_answer
from gateway.serving.tls import alert_of

_HANDSHAKE_RECORD: Final = 0x16
_PLAIN_HTTP: Final = "this port accepts TLS only, and the client sent plain HTTP; use https://"

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
    """Gives each connection to a protocol of ``factory`` after the TLS handshake. Needs a running loop."""

    def __init__(self, factory: Callable[[], asyncio.Protocol], *, limits: Limits, note: Note) -> None:
        self._factory = factory
        self._limits = limits
        self._note = note
        self._loop = asyncio.get_running_loop()
        self._source: ConnectionSource | None = None
        self._accepts: set[asyncio.Task[None]] = set()

    async def open(self, source: ConnectionSource, context: ssl.SSLContext) -> tuple[str, int]:
        """Take connections from there. Returns the host and port at which clients connect. Raises ListenError."""
        self.context = context
        self._source = source
        return await source.open(self._take)

    async def close(self) -> None:
        """Stop accepting, and cancel handshakes. Established connections stay."""
        if self._source is not None:
            self._source.close()
        for task in self._accepts:
            task.cancel()
        await asyncio.gather(*self._accepts, return_exceptions=True)

    def _take(self, connected: socket.socket, peer: str) -> None:
        task = self._loop.create_task(self._accept_client(connected, peer))
        self._accepts.add(task)
        task.add_done_callback(self._accepts.discard)

    async def _accept_client(self, connected: socket.socket, peer: str) -> None:
        try:
            async with asyncio.timeout(self._limits.handshake_seconds):
                first = await self._first_byte(connected)
        except TimeoutError:
            connected.close()
            self._note(Refusal.TLS, peer=peer, why=f"not a byte in {self._limits.handshake_seconds:g} s")
        except (OSError, asyncio.CancelledError):
            # The connection was reset, or the gateway stops: the client sent no request.
            connected.close()
        else:
            await self._receive(connected, peer, first)

    async def _receive(self, connected: socket.socket, peer: str, first: bytes) -> None:
        """Handle a connection by its first byte."""
        if first and first[0] == _HANDSHAKE_RECORD:
            await self._handshake(connected, peer)
            return
        try:
            if first.isupper():
                self._note(Refusal.PLAIN_HTTP, peer=peer, why=_PLAIN_HTTP)
                await self._send_last(connected, raw_answer(Refusal.PLAIN_HTTP, _PLAIN_HTTP))
            elif first:
                self._note(Refusal.TLS, peer=peer, why=f"no TLS: the first byte is 0x{first[0]:02x}")
        finally:
            connected.close()

    async def _handshake(self, connected: socket.socket, peer: str) -> None:
        # The transport closes its socket when the handshake fails. This one keeps the connection open for the alert.
        with connected.dup() as kept:
            await self._tls(connected, kept, peer)

    async def _tls(self, connected: socket.socket, kept: socket.socket, peer: str) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._factory,
                connected,
                ssl=self.context,
                ssl_handshake_timeout=self._limits.handshake_seconds,
                ssl_shutdown_timeout=self._limits.shutdown_seconds,
            )
        except ssl.SSLError as error:
            self._note(Refusal.TLS, peer=peer, why=f"TLS handshake failed: {_explained(error)}")
            await self._send_last(kept, alert_of(error))
        except OSError as error:
            why = error.strerror or str(error) or "the client closed the connection"
            self._note(Refusal.TLS, peer=peer, why=f"TLS handshake interrupted: {why}")

    async def _first_byte(self, connected: socket.socket) -> bytes:
        """The first byte, left in the socket for TLS to read; empty if the client sends none."""
        while True:
            try:
                return connected.recv(1, socket.MSG_PEEK)
            except (BlockingIOError, InterruptedError):
                await self._readable(connected)

    async def _readable(self, connected: socket.socket) -> None:
        readable: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(connected.fileno(), _set, readable)
        try:
            await readable
        finally:
            self._loop.remove_reader(connected.fileno())

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


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _explained(error: ssl.SSLError) -> str:
    reason = error.reason or str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{error.verify_message} ({_HINTS['CERTIFICATE_VERIFY_FAILED']})"
    hint = next((hint for known, hint in _HINTS.items() if reason.endswith(known)), None)
    return f"{reason} ({hint})" if hint else reason
