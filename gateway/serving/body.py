"""Reads the body of one request, within its limits: size, time, and the memory of all bodies together.

A body that is refused must still be read. Observed on kube-apiserver: 413-then-close loses the reply ("connection
reset by peer", 7 of 8); reply, then drain, then close: 8 of 8 delivered. So ``drain`` reads on after the answer,
within limits of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from gateway.reasons import Reason
from gateway.serving import web
from gateway.serving.connection import Connection, MalformedBody
from gateway.serving.in_flight_shares import Flow, InFlightShares
from gateway.serving.limits import Limits
from gateway.serving.refusals import Refusal, Refused, quote
from gateway.serving.tenants import PREFIX_BYTES, UNKNOWN, tenant_of

if TYPE_CHECKING:
    from gateway.serving.oversized import OversizedReview


class Load:
    """Gauges of one HTTP server; they return to zero when it is idle.

    ``requests`` are requests whose answer is not made yet, ``reviews`` those of them that are being judged, ``bodies``
    the bytes of all their bodies that have arrived, at most ``body_bytes_in_flight``. ``idle`` is set while there are
    no requests. The server counts requests and reviews up and down, and releases the bytes of the bodies that it got.
    """

    __slots__ = ("bodies", "idle", "requests", "reviews")

    def __init__(self, body_bytes_in_flight: int) -> None:
        self.requests = 0
        self.reviews = 0
        self.bodies = InFlightShares(body_bytes_in_flight)
        self.idle = asyncio.Event()
        self.idle.set()

    @property
    def body_bytes(self) -> int:
        """The bytes of all bodies that have arrived and are not answered yet."""
        return self.bodies.taken


class TooLarge(Refused):
    """A body beyond the limit; ``prefix`` is the part of it that has been read, at most ``uid_prefix_bytes``.

    ``review``: that of the prefix; None: it does not say whose it is. The server finds it.
    """

    def __init__(self, text: str, prefix: bytes) -> None:
        super().__init__(Refusal.BODY_SIZE, text)
        self.prefix = prefix
        self.review: OversizedReview | None = None


class BodyReader:
    """Reads request bodies for one HTTP server."""

    def __init__(self, limits: Limits, load: Load) -> None:
        self._limits = limits
        self._load = load

    async def read(
        self, request: web.BaseRequest, client: Hashable, entry: Hashable, ends: float
    ) -> tuple[bytes, Flow]:
        """The whole body and whose it is: it is counted in ``load.bodies`` until the caller releases it.

        ``client`` and ``entry`` are those of the flow; ``ends`` is the end of the request's budget, on the loop's
        clock.

        Raises Refused, TooLarge; ConnectionError or CancelledError if the client hangs up.
        """
        declared = request.content_length
        if declared is not None and declared > self._limits.body_bytes:
            raise TooLarge(self._too_large(f"{declared} bytes"), await self._prefix(request, ends))
        content = request.content
        if "Expect" in request.headers:
            await _continue(request)
        if content.is_eof():
            # The usual case: header and body came in one piece.
            body = content.read_nowait()
            if declared is None:
                self._require_size(body)
            flow = Flow(client, tenant_of(body), entry)
            self._charge(flow, len(body))
            return body, flow
        return await self._gather(request, client, entry, ends)

    async def drain(self, request: web.BaseRequest) -> None:
        """Read the rest of a refused body, and discard it. Returns at its end or at a limit."""
        left = self._limits.drain_bytes
        try:
            async with asyncio.timeout(self._limits.drain_seconds):
                while left > 0 and (chunk := await request.content.readany()):
                    left -= len(chunk)
        except MalformedBody:
            await _connection(request).linger()
        except (TimeoutError, ConnectionError):
            return

    async def _gather(
        self, request: web.BaseRequest, client: Hashable, entry: Hashable, ends: float
    ) -> tuple[bytes, Flow]:
        bodies, body, charged = self._load.bodies, bytearray(), 0
        flow, complete = Flow(client, UNKNOWN, entry), False
        try:
            async with _arriving(request, ends):
                while not complete:
                    chunk = await request.content.readany()
                    complete = not chunk
                    body += chunk
                    self._require_size(body)
                    if not complete and len(body) < PREFIX_BYTES:
                        # Whose it is has not arrived yet. All connections together have 4 MB of this.
                        continue
                    # Anew: what has arrived of it is no reason to refuse the rest.
                    bodies.release(flow, charged)
                    charged = 0
                    if flow.tenant is UNKNOWN:
                        flow = Flow(client, tenant_of(bytes(body[:PREFIX_BYTES])), entry)
                    self._charge(flow, len(body))
                    charged = len(body)
        except BaseException:
            bodies.release(flow, charged)
            raise
        return bytes(body), flow

    def _require_size(self, body: bytes | bytearray) -> None:
        """Raises TooLarge."""
        if len(body) > self._limits.body_bytes:
            observed = f"no declared length and {len(body)} bytes so far"
            raise TooLarge(self._too_large(observed), bytes(body[: self._limits.uid_prefix_bytes]))

    def _charge(self, flow: Flow, size: int) -> None:
        """Count so many bytes of a body. Raises Refused."""
        bodies, limit = self._load.bodies, self._limits.body_bytes_in_flight
        if size and not bodies.acquire(flow, size):
            raise Refused(
                Refusal.MEMORY,
                f"{Reason.OVERLOADED}: too many large requests at once, in all or of this namespace: {bodies.taken} "
                f"bytes of bodies are in flight, and the limit is {limit}, of which a namespace has at most as much as "
                "is left; add replicas, or narrow the rules of the policies",
            )

    async def _prefix(self, request: web.BaseRequest, ends: float) -> bytes:
        """The beginning of a body that will not be read whole, for its uid."""
        if "Expect" in request.headers:
            # A client that waits for "100 Continue" has sent nothing yet, and should send nothing.
            return b""
        prefix = b""
        async with _arriving(request, ends):
            while len(prefix) < self._limits.uid_prefix_bytes and (chunk := await request.content.readany()):
                prefix += chunk[: self._limits.uid_prefix_bytes]
        return prefix[: self._limits.uid_prefix_bytes]

    def _too_large(self, observed: str) -> str:
        return (
            f"{Reason.REQUEST_TOO_LARGE}: this AdmissionReview has {observed}, the limit is {self._limits.body_bytes}; "
            "make the object smaller, or exclude it by the rules or objectSelector of the webhook configuration"
        )


@asynccontextmanager
async def _arriving(request: web.BaseRequest, ends: float) -> AsyncIterator[None]:
    """While chunks of a body are awaited: ends the wait with the budget, and turns what went wrong into Refused."""
    connection = _connection(request)
    connection.awaited = request.content
    try:
        async with asyncio.timeout_at(ends):
            yield
    except TimeoutError as error:
        declared = "an undeclared number of" if request.content_length is None else str(request.content_length)
        raise Refused(
            Refusal.BODY_TIME,
            f"the body did not arrive while it could still be answered: {request.content.total_bytes} of {declared} "
            "bytes; look at the network between the API server and the gateway, and at timeoutSeconds",
        ) from error
    except MalformedBody as error:
        raise Refused(Refusal.BODY_FRAMING, f"the body's chunks are malformed: {error}") from error
    except (ConnectionError, asyncio.CancelledError):
        if request.transport is None:
            connection.refused(Refusal.HANGUP, "the client closed before the body of its request was complete")
        raise
    finally:
        connection.awaited = None


def _connection(request: web.BaseRequest) -> Connection:
    return cast("Connection", request.protocol)


async def _continue(request: web.BaseRequest) -> None:
    """Answer ``Expect: 100-continue``; only web.Application does so by itself."""
    if request.version < web.HttpVersion11:
        # RFC 9110, 10.1.1: "A server that receives a 100-continue expectation in an HTTP/1.0 request MUST ignore that
        # expectation."
        return
    expected = request.headers["Expect"]
    if expected.lower() != "100-continue":
        raise Refused(Refusal.EXPECTATION, f"Expect: {quote(expected)} is not supported; leave it out")
    if request.content.total_bytes == 0 and not request.content.is_eof():
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # aiohttp considers a response begun as soon as bytes were written.
        request.writer.output_size = 0
