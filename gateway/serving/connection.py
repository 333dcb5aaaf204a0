"""One HTTP connection: aiohttp's protocol, plus answers to malformed HTTP and time limits that aiohttp does not have.

Stock aiohttp logs a traceback for malformed HTTP, waits without limit after a broken chunk, waits for a header as long
as it keeps an idle connection, and waits for ever for a client that does not read its answer.

This module depends on these private names of aiohttp (the tests fail when one changes): ``_waiter`` is a future while
the connection waits for a request; ``_messages`` are parsed requests that are not handled yet, and an ``_ErrInfo``
among them marks where the parser failed; ``_version`` is a request's HTTP version, and that of its answer.
"""

import asyncio
import math
import random
import ssl
from time import monotonic
from typing import Any, Final, cast

import structlog

from gateway.serving import web
from gateway.serving.authentication import certificate_names
from gateway.serving.byte_meter import ByteMeter, TooMuch, UnfinishedHeaders
from gateway.serving.limits import Limits
from gateway.serving.refusals import Note, Refusal, Refused, answer, quote, raw_answer
from gateway.serving.socket_state import TcpSocket, state_of

_LOG: Final = structlog.get_logger(__name__)


_AGE_JITTER: Final = 0.1
"""The share by which a connection's maximum age varies, as gRPC's MAX_CONNECTION_AGE: an API server's 25 connections,
opened together, would otherwise all be replaced together."""


_VERSIONS: Final = (web.HttpVersion10, web.HttpVersion11)
"""The HTTP versions that are served."""

_AT_ONCE_SECONDS: Final = 0.1
"""A client that has dialed for a request sends it one round trip after the handshake, at most."""


class MalformedBody(Exception):  # noqa: N818 - set on the body's reader, which turns it into a refusal
    """The chunks of a body are malformed; the text is the parser's, one line."""


class Connection(web.RequestHandler):
    """A connection of ``Connections``.

    ``socket`` is its TCP socket, to look at, and ``opened`` the time at which its client began the handshake
    (``time.monotonic``); both are set before ``connection_made``, or are None: a connection without TLS.

    ``awaited`` is the body that a reader waits for; it gets an exception when the parser fails in the middle of it.
    ``review`` is the task of the review in progress, and its deadline (the loop's clock); after the deadline the task
    is cancelled, and ``review`` is None. ``client_names`` are the names of the client's certificate, None without one;
    ``client`` is one of them with the client's address: whose load it is.
    """

    __slots__ = (
        "_arrived",
        "_expires",
        "_half_since",
        "_is_new",
        "_limits",
        "_made",
        "_meter",
        "_note",
        "_overdue",
        "_rejected",
        "_stuck_since",
        "awaited",
        "client",
        "client_names",
        "opened",
        "review",
        "socket",
    )

    def __init__(
        self, server: "Connections", *, loop: asyncio.AbstractEventLoop, limits: Limits, note: Note, max_age: float
    ) -> None:
        options: dict[str, Any] = {
            "access_log": None,
            "auto_decompress": False,
            "keepalive_timeout": limits.keepalive_seconds,
            # Draining has limits of its own: see BodyReader.
            "lingering_time": 0,
            "max_field_size": limits.field_bytes,
            "max_headers": limits.headers,
            "max_line_size": limits.line_bytes,
        }
        super().__init__(server, loop=loop, **options)
        self.awaited: web.StreamReader | None = None
        self.review: tuple[asyncio.Task[Any], float] | None = None
        self.client_names: frozenset[str] | None = None
        self.client = ""
        self.socket: TcpSocket | None = None
        self.opened: float | None = None
        self._arrived: float | None = None
        self._made = 0.0
        self._limits = limits
        self._meter = ByteMeter(limits, server.unfinished_headers)
        self._note = note
        self._is_new = True
        self._rejected = False
        self._half_since: float | None = None
        self._stuck_since: float | None = None
        self._overdue: asyncio.Task[Any] | float | None = None
        # A reply ends an expired connection. Nothing else does: a client may use an idle one at the same moment.
        self._expires = loop.time() + max_age * random.uniform(1 - _AGE_JITTER, 1 + _AGE_JITTER)  # noqa: S311 - guards nothing

    @property
    def is_expired(self) -> bool:
        """Whether it has reached its maximum age, or its client's certificate is to be verified again."""
        return self._loop.time() >= self._expires

    def has_review(self) -> None:
        """It has brought the header of a review, by a client that may."""
        if self._is_new:
            self._is_new = False
            cast("Connections", self._manager).without_review.pop(self, None)

    def expire_certificate(self) -> None:
        """Expire, if the client has a certificate: its CA may not be trusted any more."""
        if self.client_names is not None:
            self._expires = self._loop.time()

    @property
    def peer(self) -> str:
        """The client's address and port, for the log."""
        name = self.peername
        return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name)

    def refused(self, refusal: Refusal, why: str) -> None:
        """Record that this connection, or a request on it, was refused."""
        self._note(refusal, peer=self.peer, why=why)

    async def linger(self) -> None:
        """Stay open for ``linger_seconds`` and discard what arrives: the client may still be sending.

        Closing with bytes unread resets the connection, and the answer is lost. A close by the client cancels the wait.
        """
        self._rejected = True
        await asyncio.sleep(self._limits.linger_seconds)

    def data_received(self, data: bytes) -> None:
        """Parse, unless the parser has failed already; record since when a header is incomplete."""
        if self._rejected:
            return
        if self._arrived is None and self._current_request is None:
            self._arrived = self._arrival()
        queued = len(self._messages)
        super().data_received(data)
        self._measure(len(data), self._messages[-1] if len(self._messages) > queued else None)
        waits_for_a_request = self._waiter is not None and not self._waiter.done()
        if not waits_for_a_request:
            self._half_since = None
        elif data and self._half_since is None:
            self._half_since = self._loop.time()
        if self.awaited is not None and self._messages and isinstance(self._messages[-1][0], web.ErrInfo):
            self.awaited.set_exception(MalformedBody(_first_line(self._messages[-1][0].message)))

    def _measure(self, size: int, begun: Any) -> None:
        """Read no further if what arrives is too much besides content."""
        try:
            self._meter.received(size, begun)
        except TooMuch as error:
            self._rejected = True
            if error.refusal is Refusal.BODY_FRAMING:
                self._meter.fail(MalformedBody(str(error)))
                return
            if begun is not None:
                self._messages.pop()
            # As for a header that the parser rejects: answered in its turn, and the last on this connection.
            self._messages.append((web.ErrInfo(status=400, exc=error, message=str(error)), web.EMPTY_PAYLOAD))
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the client's address, which the transport forgets when it closes, and the names of its certificate."""
        super().connection_made(transport)
        _ = self.peername
        self.client_names = certificate_names(transport.get_extra_info("peercert"))
        # API servers may share a certificate, or an address: a proxy's.
        self.client = f"{min(self.client_names or (), default='')} {self.peer.rpartition(':')[0]}"
        self._made = monotonic()

    def take_arrival(self) -> float:
        """When the first byte of the request that is handled now arrived (``time.monotonic``)."""
        arrived, self._arrived = self._arrived, None
        return monotonic() if arrived is None else arrived

    def _arrival(self) -> float:
        """When the data that is received now arrived. It may have waited in the socket, while the loop was busy.

        A request that follows its handshake at once is what the client has dialed for: its time has run since then.
        """
        now = monotonic()
        if self.socket is None:
            return now
        opened, self.opened = self.opened, None
        if opened is not None and now - self._made < _AT_ONCE_SECONDS:
            return opened
        return now - state_of(self.socket).waited

    def connection_lost(self, exc: BaseException | None) -> None:
        """Record a connection that a TLS error ended; a client may end one in any other way."""
        if isinstance(exc, ssl.SSLError):
            self.refused(Refusal.TLS, f"the TLS connection broke: {exc.reason or exc}")
        self._meter.close()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Record since when the client reads nothing."""
        super().pause_writing()
        self._stuck_since = self._loop.time()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._stuck_since = None
        super().resume_writing()

    def end_if_overdue(self, now: float) -> None:
        """Cancel an overdue review; close the connection if a header is overdue or the client reads no answer.

        Only what was overdue at the call before, too: a loop that stood still first does what became due meanwhile, as
        a review's own deadline, and reads what has arrived.
        """
        transport = self.transport
        if transport is None:
            return
        overdue, self._overdue = self._overdue, self._find_overdue(now)
        if self._overdue is None or self._overdue is not overdue:
            return
        limits = self._limits
        if self.review is not None and overdue is self.review[0]:
            self.review = self._overdue = None
            overdue.cancel()
        elif overdue is self._half_since:
            why = f"the header of a request is not complete after {limits.header_seconds:g} s; send it in one piece"
            self.refused(Refusal.HEADER_TIME, why)
            transport.write(raw_answer(Refusal.HEADER_TIME, why))
            self.force_close()
        else:
            self.refused(Refusal.UNREAD, f"the client has read none of its answer for {limits.write_seconds:g} s")
            transport.abort()

    def _find_overdue(self, now: float) -> "asyncio.Task[Any] | float | None":
        """The task of an overdue review, or the time since which a header is incomplete or no answer is read."""
        limits = self._limits
        if self.review is not None and now > self.review[1]:
            return self.review[0]
        if self._half_since is not None and now - self._half_since > limits.header_seconds:
            return self._half_since
        if self._stuck_since is not None and now - self._stuck_since > limits.write_seconds:
            return self._stuck_since
        return None

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to bytes that the parser rejects; and status 500 for an unhandled exception of a handler."""
        if isinstance(exc, ConnectionError):
            # The client is gone; aiohttp handles this exception without logging it.
            raise exc
        if request.writer.output_size > 0:
            raise ConnectionResetError("the answer has begun already: no other answer can follow it")
        if status >= web.HTTPInternalServerError.status_code:
            _LOG.error("a request failed inside the gateway", peer=self.peer, exc_info=exc)
            response = answer(Refusal.INTERNAL, "internal error while serving this request; see the gateway's log")
        else:
            refusal, why = self._explained(exc, message or "")
            self.refused(refusal, why)
            response = _FinalResponse(answer(refusal, why), self)
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log aiohttp's own errors with the gateway's logger."""
        _LOG.error(
            "a connection failed inside the gateway", peer=self.peer, what=str(args[0]), exc_info=kw.get("exc_info")
        )

    def _explained(self, exc: BaseException | None, message: str) -> tuple[Refusal, str]:
        if isinstance(exc, TooMuch):
            return exc.refusal, str(exc)
        if isinstance(exc, web.LineTooLong):
            limit = (
                f"{self._limits.line_bytes} bytes for the request line, {self._limits.field_bytes} for a header field"
            )
            return Refusal.HEADER_SIZE, f"request line or header field too long, the limit is {limit}; shorten it"
        if message == "Too many headers received":
            return Refusal.HEADER_SIZE, f"more than {self._limits.headers} header fields; send fewer"
        why = f"not an HTTP/1.1 request ({_first_line(message)}); POST an AdmissionReview to /mutate or /validate"
        return Refusal.MALFORMED, why


def require_http_1(request: web.BaseRequest) -> None:
    """Refuse a version that has other framing: the parser reads HTTP/0.9 and HTTP/2.0 as if they were HTTP/1.1."""
    version = request._version  # noqa: SLF001 - see above; ``version`` would be kept as it is read first
    if version not in _VERSIONS:
        major, minor = version
        # RFC 9110, 2.5: a server must not answer in a version to which it is not conformant.
        request._version = web.HttpVersion11  # noqa: SLF001 - see above
        why = f"HTTP/{major}.{minor} in the form of HTTP/1.1; POST an AdmissionReview by HTTP/1.1"
        raise Refused(Refusal.MALFORMED, why)


class _FinalResponse(web.Response):
    """The answer to bytes that the parser rejected, and the last on its connection."""

    def __init__(self, like: web.Response, connection: Connection) -> None:
        super().__init__(status=like.status, body=like.body, headers=like.headers)
        self._connection = connection

    async def write_eof(self, data: bytes = b"") -> None:
        await super().write_eof(data)
        await self._connection.linger()


class Connections(web.Server):
    """The connections of one listener, and the handler of their requests. Create and use it in a running loop.

    ``max_age``: seconds after which a connection is expired, more or less; the handler ends it with a reply.
    """

    def __init__(self, handler: Any, *, limits: Limits, note: Note, max_age: float = math.inf) -> None:
        # handler_cancellation: a connection that closes cancels its handler. "Client gone: apiserver closes the webhook
        # connection within 1 ms", so a close means that no client waits for the review any more.
        super().__init__(handler, handler_cancellation=True)
        self._limits = limits
        self._note = note
        self._max_age = max_age
        self.unfinished_headers = UnfinishedHeaders(limits)
        self._transports: dict[web.RequestHandler, asyncio.Transport] = {}
        self.without_review: dict[web.RequestHandler, None] = {}
        self._none_open = asyncio.Event()
        self._none_open.set()
        self._sweep_every = min(limits.header_seconds, limits.write_seconds, limits.overrun_seconds) / 4
        self._sweeper = self._loop.call_later(self._sweep_every, self._sweep)

    def __call__(self) -> Connection:
        """Create the protocol of a new connection."""
        return Connection(self, loop=self._loop, limits=self._limits, note=self._note, max_age=self._max_age)

    @property
    def open(self) -> int:
        """The number of open connections."""
        return len(self._transports)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Count the connection."""
        super().connection_made(handler, transport)
        self._transports[handler] = transport
        self._none_open.clear()
        self.without_review[handler] = None
        if len(self._transports) > self._limits.connections:
            # The new one is among them: where all others have brought reviews, it is this one.
            self._end(next(iter(self.without_review)))

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Stop counting the connection."""
        super().connection_lost(handler, exc)
        self._transports.pop(handler, None)
        self.without_review.pop(handler, None)
        if not self._transports:
            self._none_open.set()

    def _end(self, handler: web.RequestHandler) -> None:
        why = f"there are {self._limits.connections} connections, and this one has not brought a review yet"
        cast("Connection", handler).refused(Refusal.CONNECTIONS, why)
        del self.without_review[handler]
        self._loop.call_soon(self._transports[handler].abort)

    async def none_open(self) -> None:
        """Wait until there is no connection."""
        await self._none_open.wait()

    async def close(self) -> None:
        """Close all: idle ones at once, others when they have answered. Abort after ``Limits.shutdown_seconds``."""
        self._sweeper.cancel()
        self.pre_shutdown()
        await self.shutdown(self._limits.shutdown_seconds)
        # A connection is open until the client's close_notify comes, and uvloop hangs when it is closed under one.
        try:
            async with asyncio.timeout(self._limits.shutdown_seconds):
                await self.none_open()
        except TimeoutError:
            for transport in self._transports.values():
                transport.abort()
            await self.none_open()

    def _sweep(self) -> None:
        now = self._loop.time()
        for connection in self.connections:
            if isinstance(connection, Connection):
                connection.end_if_overdue(now)
        self._sweeper = self._loop.call_later(self._sweep_every, self._sweep)


def _first_line(message: str) -> str:
    """The parser's own words, without the bytes that it quotes below them."""
    words = " ".join(message.strip().split("\n\n")[0].split())
    return quote(words.rstrip(":"))[1:-1] or "unreadable"
