"""The HTTP server for reviews: checks a request without parsing its body, in this order.

    =============  ==============================================================================================
    client         401, 403: ``authentication``
    path, method   404, 405
    readiness      503: "until one complete configuration is loaded ... 503 or 404, never a verdict"
    type           415
    body           413, 408, 429; the budget (``?timeout=``) runs from the first byte's arrival at this machine
    turn           while there is more than can be judged: ``flow_control``
    judge          everything else is ``judge``'s to answer
    =============  ==============================================================================================

``refusals`` has statuses and texts. After a refusal the connection stays open if the whole request has arrived; if not,
the server reads and discards the rest of the body, and then closes the connection.

"A POST that meets a server-side close is not retried" by kube-apiserver, while ``Connection: close`` on a reply is
clean. So the server ends a connection with a reply only: one that has reached its maximum age with its next reply, and
while it drains each with its next reply. Draining, it accepts new connections and leaves idle ones open, until there
are none or the time to drain is over.
"""

import asyncio
import math
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol, cast

import structlog
from msgspec import Struct

from gateway.engine.trace_context import Parent, TraceContext
from gateway.engine.verdicts import Failure
from gateway.reasons import Reason
from gateway.serving import web
from gateway.serving.acceptor import Acceptor, ConnectionSource
from gateway.serving.authentication import ClientAuthentication
from gateway.serving.body import BodyReader, Load, TooLarge
from gateway.serving.budget import budget
from gateway.serving.connection import Connection, Connections, require_http_1
from gateway.serving.flow_control import FlowControl, cost_of
from gateway.serving.in_flight_shares import Flow
from gateway.serving.limits import Limits
from gateway.serving.listener import Listener
from gateway.serving.oversized import OversizedReview, envelope
from gateway.serving.plans import Target
from gateway.serving.refusal_log import RefusalLog
from gateway.serving.refusals import SERVER, Refusal, Refused, answer
from gateway.serving.route_table import RouteTable, is_healthy, parent, passed_on, requested, require_review, unknown
from gateway.slices import SLOW_BYTES
from gateway.telemetry.events import Events, NoEvents
from gateway.telemetry.table import (
    CONNECTIONS_ENDED,
    DRAIN,
    HTTP_REQUESTS_REJECTED,
    LIMIT_HITS,
    MAX_AGE,
    REVIEWS_CANCELED,
)

_LOG: Final = structlog.get_logger(__name__)


class HttpReply(Struct, frozen=True, kw_only=True):
    """An HTTP answer: ``status``, ``body`` and the value of its Content-Type."""

    status: int
    body: bytes
    content_type: str = "application/json"


class ReviewAnswerer(Protocol):
    """Answers a body, whatever it holds. Cancelled when the client hangs up."""

    async def __call__(  # noqa: PLR0913 - all about one request
        self,
        target: Target,
        body: bytes,
        started: float,
        ends: float,
        *,
        overloaded: Failure | None,
        flow: Flow,
        trace: TraceContext,
    ) -> HttpReply:
        """The answer to ``body``, which arrived at ``started`` and must be answered by ``ends`` (``time.monotonic``).

        ``overloaded``: no policy is called, each fails with this. ``flow`` is whose it is. ``trace`` is the trace
        context that its workers get.

        Raises:
            Refused: there is no verdict: a reload removed the target after the header arrived.
        """


class Refuse(Protocol):
    """Makes the AdmissionReview that refuses a request whose body was not read."""

    def __call__(self, review: OversizedReview) -> bytes:
        """The encoded review: ``allowed`` false, and a status with code 413."""


_LIMIT_OF: Final = {
    Refusal.BODY_SIZE: "body_bytes",
    Refusal.CONNECTIONS: "connections",
    Refusal.MEMORY: "body_bytes_in_flight",
    Refusal.HEADER_SIZE: "field_bytes",
    Refusal.HEADER_MEMORY: "header_bytes_in_flight",
    Refusal.HEADER_TIME: "header_seconds",
    Refusal.UNREAD: "write_seconds",
}


class HttpServer:
    """Serves ``/mutate`` and ``/validate``, and the entries below them, over TLS. One per process.

    Args:
        judge: answers the requests that pass all checks.
        refuse: makes the review for a body that is too large.
        routes: the paths that can be called.
        authentication: which clients may call; None: all.
        limits: every bound.
        begin_trace: begins the trace of a review, given the API server's span.
        events: counts what was refused, and by which limits, and the connections that were ended.
    """

    def __init__(  # noqa: PLR0913 - all by name
        self,
        *,
        judge: ReviewAnswerer,
        refuse: Refuse,
        routes: RouteTable,
        authentication: ClientAuthentication | None = None,
        limits: Limits | None = None,
        begin_trace: Callable[[Parent | None], TraceContext] = passed_on,
        events: Events | None = None,
    ) -> None:
        self._judge = judge
        self._begin_trace = begin_trace
        self._refuse = refuse
        self._routes = routes
        self._authentication = authentication or ClientAuthentication()
        self._limits = limits or Limits()
        self._events = events or NoEvents()
        self._draining = False
        self._refusals = RefusalLog("a request was refused")
        self.load = Load(self._limits.body_bytes_in_flight)
        self._bodies = BodyReader(self._limits, self.load)
        self._control = FlowControl(self._limits, self._events)
        self._connections: Connections | None = None
        self._listener: Listener | None = None

    @property
    def connections(self) -> int:
        """The number of TLS connections."""
        return self._connections.open if self._connections else 0

    @property
    def waiting(self) -> int:
        """The number of reviews that wait to begin."""
        return self._control.waiting

    async def start(
        self,
        host: str,
        port: int,
        context: ssl.SSLContext,
        *,
        max_connection_age: float = math.inf,
        source: ConnectionSource | None = None,
    ) -> tuple[str, int]:
        """Listen; port 0 selects a free port. Returns host and port of the listener. Raises ListenError.

        ``max_connection_age``: seconds, a tenth more or less, after which a reply ends its connection. ``source``
        gives the connections instead; None: this process accepts them.
        """
        source = source or Acceptor(host, port, self._limits.backlog)
        self._connections = Connections(self._handle, limits=self._limits, note=self._note, max_age=max_connection_age)
        self._listener = Listener(
            self._connections,
            limits=self._limits,
            note=self._note,
            events=self._events,
            is_busy=lambda: self._control.waiting > 0,
        )
        return await self._listener.open(source, context)

    def renew(self, context: ssl.SSLContext) -> None:
        """Use this context for new connections. Those of clients with a certificate end with their next reply."""
        if self._listener is not None:
            self._listener.context = context
        if self._connections is not None:
            for connection in self._connections.connections:
                cast("Connection", connection).expire_certificate()

    @property
    def draining(self) -> bool:
        """Whether it ends each connection with its next reply."""
        return self._draining

    def begin_drain(self) -> None:
        """Close each connection after its next answer from now on; nothing else changes."""
        self._draining = True

    async def drain(self, seconds: float, *, at_least: float = 0.0) -> None:
        """Serve until there are no connections, for ``seconds`` at most and ``at_least`` seconds in any case.

        ``at_least`` is the time in which the Service's endpoints may still name this process, so that clients connect.
        """
        self.begin_drain()
        await asyncio.sleep(min(at_least, seconds))
        if self._connections is None or seconds <= at_least:
            return
        try:
            async with asyncio.timeout(seconds - at_least):
                await self._connections.none_open()
        except TimeoutError:
            _LOG.info("the time to drain is over", connections=self.connections, requests=self.load.requests)

    async def stop(self) -> None:
        """Accept no connection any more, wait for requests in flight (``Limits.stop_seconds`` at most), close all."""
        self.begin_drain()
        if self._listener is not None:
            await self._listener.close()
        if self._connections is None:
            return
        try:
            async with asyncio.timeout(self._limits.stop_seconds):
                await self.load.idle.wait()
        except TimeoutError:
            _LOG.warning("requests were canceled", requests=self.load.requests, seconds=self._limits.stop_seconds)
        # All answers are made; the connections only have to write them.
        await self._connections.close()

    # ------------------------------------------------------------------------------- one request

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        load = self.load
        load.requests += 1
        load.idle.clear()
        try:
            response: web.StreamResponse = await self._answered(request)
        except Refused as refused:
            return await self._refused(request, refused)
        finally:
            load.requests -= 1
            if not load.requests:
                load.idle.set()
        # After an Upgrade, which this server ignores, the parser passes nothing on.
        if self._is_last_reply(cast("Connection", request.protocol)) or "Upgrade" in request.headers:
            response.force_close()
        return response

    def _is_last_reply(self, connection: Connection) -> bool:
        """Whether the connection ends with this reply; counts it."""
        if self._draining:
            self._events.count(CONNECTIONS_ENDED, DRAIN)
        elif connection.is_expired:
            self._events.count(CONNECTIONS_ENDED, MAX_AGE)
        else:
            return False
        return True

    async def _answered(self, request: web.BaseRequest) -> web.Response:
        """The answer to a request that passes all checks. Raises Refused."""
        connection = cast("Connection", request.protocol)
        started = connection.take_arrival()
        require_http_1(request)
        path, timeout = requested(request)
        if is_healthy(request, path, self._routes):
            return web.Response(headers={"Server": SERVER})
        path = self._authentication.path(request, path, connection.client_names)
        target = self._routes.target(path)
        if target is None:
            raise unknown(path, self._routes)
        require_review(request, path, self._routes.not_ready)
        connection.has_review()
        ends = started + budget(timeout)
        try:
            body, flow = await self._bodies.read(request, connection.client, target.entry or path, ends)
            with self._in_hand(connection, target, body, flow, ends):
                control = self._control
                overloaded = None
                if not control.begin(flow, ends):
                    overloaded = await self._turn(target, flow, body, started, ends)
                try:
                    trace = self._begin_trace(parent(request))
                    reply = await self._judge(
                        target, body, started, ends, overloaded=overloaded, flow=flow, trace=trace
                    )
                finally:
                    if overloaded is None:
                        control.end(flow)
        except TooLarge as error:
            error.review = self._oversized(request, error, target, started, ends)
            raise
        if len(reply.body) > SLOW_BYTES:
            await asyncio.sleep(0)  # it has just been encoded, and to encrypt it takes as long again
        return web.Response(
            status=reply.status, body=reply.body, headers={"Content-Type": reply.content_type, "Server": SERVER}
        )

    async def _turn(self, target: Target, flow: Flow, body: bytes, started: float, ends: float) -> Failure | None:
        """Wait for the turn; see FlowControl."""
        try:
            return await self._control.turn(flow, cost_of(body), started, ends)
        except asyncio.CancelledError:
            # The request is not read yet, so there is no other record of it.
            self._events.count(REVIEWS_CANCELED, target.phase)
            raise

    def _oversized(
        self, request: web.BaseRequest, error: TooLarge, target: Target, started: float, ends: float
    ) -> OversizedReview | None:
        """The review that a body that is too large begins with; None if it does not say whose it is."""
        found = envelope(error.prefix)
        if found is None:
            return None
        trace = self._begin_trace(parent(request))
        return OversizedReview(envelope=found, target=target, trace=trace, started=started, ends=ends, why=error.text)

    @contextmanager
    def _in_hand(self, connection: Connection, target: Target, body: bytes, flow: Flow, ends: float) -> Iterator[None]:
        """While a review waits and is judged: counts it and watches its time.

        Raises:
            Refused: as the judge does; and INTERNAL where it breaks, because whatever happens in there is answered.
        """
        load = self.load
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        # The connection's sweep watches the deadline: a timer per request costs 5 us, and would never fire.
        connection.review = task, ends + self._limits.overrun_seconds
        load.reviews += 1
        try:
            yield
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever it is, there is an answer
            _require_own(error, task, target, overdue=connection.review is None)
            text = f"{Reason.INTERNAL}: this review could not be judged; see the gateway's log"
            raise Refused(Refusal.INTERNAL, text) from None
        finally:
            load.reviews -= 1
            load.bodies.release(flow, len(body))
            connection.review = None

    async def _refused(self, request: web.BaseRequest, refused: Refused) -> web.StreamResponse:
        """Answer a refusal. If the body is incomplete, read its rest after the answer, then close the connection."""
        connection = cast("Connection", request.protocol)
        connection.refused(refused.refusal, refused.text)
        response = self._refusal(refused)
        complete = request.content.is_eof()
        # Where a request with doubtful framing ends is unknown, and so is where another one begins.
        doubtful = refused.refusal is Refusal.BODY_FRAMING
        if not complete or doubtful or self._is_last_reply(connection):
            response.force_close()
        if not complete:
            await response.prepare(request)
            await response.write_eof()
            await self._bodies.drain(request)
        return response

    def _refusal(self, refused: Refused) -> web.Response:
        review = refused.review if isinstance(refused, TooLarge) else None
        if review is None:
            return answer(refused.refusal, refused.text, challenge=refused.challenge)
        body = self._refuse(review)
        return web.Response(body=body, headers={"Content-Type": "application/json", "Server": SERVER})

    def _note(self, refusal: Refusal, *, peer: str, why: str) -> None:
        self._refusals.write(refusal.value, peer=peer, why=why)
        self._events.count(HTTP_REQUESTS_REJECTED, refusal)
        limit = _LIMIT_OF.get(refusal)
        if limit is not None:
            self._events.count(LIMIT_HITS, limit)


def _require_own(
    error: Exception | asyncio.CancelledError, task: "asyncio.Task[Any]", target: Target, *, overdue: bool
) -> None:
    """Log an error inside the gateway, which the caller answers; raise a Refused, or a cancellation by the client."""
    if isinstance(error, Refused):
        raise error
    where = {"phase": target.phase.value, "entry": target.entry}
    if isinstance(error, asyncio.CancelledError):
        if task.cancelling() and not overdue:
            # The client has hung up, or the server stops.
            raise error
        # The review is overdue, or something inside the gateway was cancelled.
        task.uncancel()
        _LOG.error("a review was canceled inside the gateway", **where, overdue=overdue, exc_info=error)
    else:
        _LOG.error("a review failed inside the gateway", **where, exc_info=error)
