"""The connections to one webhook, and one POST over them, as kube-apiserver sends it.

HTTP/1.1, one call at a time on a connection, no pipelining. Connections are kept while they are idle, but no more than
``webhook_idle_connections``, and no longer than ``webhook_idle_seconds``. A call that is cancelled, by its deadline or
by its review, closes its connection, which is how the webhook notices it.

The headers are always exactly these, in this order: Host, User-Agent, Content-Length, Accept, Content-Type,
[Authorization], [Traceparent], [Tracestate], Accept-Encoding. No proxy, no cookies.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from types import SimpleNamespace
from typing import Final

import aiohttp
from aiohttp import hdrs
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest, ConnectionKey
from aiohttp.tracing import Trace
from msgspec import Struct
from yarl import URL

from gateway.transports.limits import TransportLimits
from gateway.transports.webhook.content import GzipError, TooLargeError, read_content
from gateway.transports.webhook.failures import Failures, WebhookCallError
from gateway.transports.webhook.host_overrides import HostOverrides
from gateway.transports.webhook.webhook_tls import WebhookTls

_USER_AGENT: Final = "kube-apiserver-admission"
_HEADER_BYTES: Final = 65_536
"""The maximum size of one header of an answer; aiohttp's default of 8 KB is for servers."""
_DNS_SECONDS: Final = 10
"""How long resolved addresses are cached: until then, calls use the old addresses of a webhook."""


class Post(Struct, frozen=True, kw_only=True):
    """One HTTP request; ``name`` is the webhook's, for messages."""

    name: str
    url: str
    body: bytes
    traceparent: str = ""
    tracestate: str = ""


class Received(Struct, frozen=True, kw_only=True):
    """A response with any status; ``location`` and ``retry_after`` are headers."""

    status: int
    content_type: str
    location: str
    retry_after: str
    body: bytes


class Client:
    """Calls one webhook.

    Args:
        authority: the Host header.
        overrides: resolves host names.
        limits: see TransportLimits.
        failures: converts errors to failures.
        hold: called with each change of the bytes of answers in memory.
        connections: called with each change of the number of connections: 1 or -1.
    """

    def __init__(
        self,
        authority: str,
        overrides: HostOverrides,
        limits: TransportLimits,
        failures: Failures,
        *,
        hold: Callable[[int], None],
        connections: Callable[[int], None],
    ) -> None:
        self._authority = authority
        self._limits = limits
        self._failures = failures
        self._hold = hold
        tracing = aiohttp.TraceConfig()
        tracing.on_connection_reuseconn.append(_reused)
        self._session = aiohttp.ClientSession(
            connector=_Connections(overrides, limits, connections),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.webhook_connect_seconds),
            trace_configs=[tracing],
            trust_env=False,
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
        )

    async def post(self, post: Post, tls: WebhookTls) -> Received:
        """Send a request, and read the whole response. The caller sets the deadline.

        Raises:
            WebhookCallError: there is no valid response.
        """
        trip = SimpleNamespace(reused=False)
        try:
            url = URL(post.url, encoded=True)
            async with self._session.post(
                url,
                data=post.body,
                headers=self._headers(post, tls),
                skip_auto_headers=(hdrs.USER_AGENT, hdrs.CONTENT_TYPE),
                ssl=tls.context,
                allow_redirects=False,
                trace_request_ctx=trip,
            ) as response:
                return await self._received(post, response)
        except (aiohttp.ClientError, aiohttp.http.HttpProcessingError, OSError) as error:
            failure = self._failures.of(
                post.name, post.url, error, has_client_certificate=tls.has_client_certificate, reused=trip.reused
            )
            raise WebhookCallError(failure, stale_connection=trip.reused and _nothing_came(error)) from None
        except (ValueError, OverflowError) as error:
            raise WebhookCallError(self._failures.unusable(post.name, self._failures.one_line(str(error)))) from None

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    def _headers(self, post: Post, tls: WebhookTls) -> dict[str, str]:
        headers: dict[str, str] = {
            hdrs.HOST: self._authority,
            hdrs.USER_AGENT: _USER_AGENT,
            hdrs.CONTENT_LENGTH: str(len(post.body)),
            hdrs.ACCEPT: "application/json, */*",
            hdrs.CONTENT_TYPE: "application/json",
        }
        if tls.authorization:
            headers[hdrs.AUTHORIZATION] = tls.authorization
        if post.traceparent:
            headers["Traceparent"] = post.traceparent
            if post.tracestate:
                headers["Tracestate"] = post.tracestate
        headers[hdrs.ACCEPT_ENCODING] = "gzip"
        return headers

    async def _received(self, post: Post, response: aiohttp.ClientResponse) -> Received:
        coding = response.headers.get(hdrs.CONTENT_ENCODING, "").strip()
        is_gzip = coding.lower() == "gzip"
        if coding and not is_gzip and coding.lower() != "identity":
            response.close()
            raise WebhookCallError(self._failures.unsupported_encoding(post.name, coding))
        pieces: list[bytes] = []
        held = 0
        limit = self._limits.webhook_answer_bytes
        try:
            # aclosing, so that an error while the body is read closes the decompression too.
            async with aclosing(read_content(response.content.iter_any(), gzip=is_gzip, limit=limit)) as content:
                async for piece in content:
                    self._hold(len(piece))
                    held += len(piece)
                    pieces.append(piece)
            body = b"".join(pieces)
        except TooLargeError:
            raise WebhookCallError(self._failures.too_large(post.name, limit)) from None
        except GzipError:
            raise WebhookCallError(self._failures.broken_gzip(post.name)) from None
        finally:
            self._hold(-held)
            if not response.content.at_eof():
                response.close()
        return Received(
            status=response.status,
            content_type=response.headers.get(hdrs.CONTENT_TYPE, ""),
            location=response.headers.get(hdrs.LOCATION, ""),
            retry_after=response.headers.get(hdrs.RETRY_AFTER, ""),
            body=body,
        )


class _Connections(aiohttp.TCPConnector):
    """aiohttp's pool, with a limit of its idle connections, which aiohttp does not have."""

    def __init__(self, overrides: HostOverrides, limits: TransportLimits, changed: Callable[[int], None]) -> None:
        super().__init__(
            limit=limits.webhook_connections,
            keepalive_timeout=limits.webhook_idle_seconds,
            ttl_dns_cache=_DNS_SECONDS,
            resolver=overrides,
        )
        self._most_idle = limits.webhook_idle_connections
        self._report_changed = changed

    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        ends = should_close or protocol.should_close or sum(map(len, self._conns.values())) >= self._most_idle
        if ends and not self._closed:
            # Aborted, not closed: TLS would wait for the peer's close_notify, and a peer that hangs sends none.
            protocol.abort()
        super()._release(key, protocol, should_close=ends)

    async def _create_connection(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> ResponseHandler:
        protocol = await super()._create_connection(req, traces, timeout)
        closed = protocol.closed
        if closed is not None:
            self._report_changed(1)
            closed.add_done_callback(self._lost)
        return protocol

    def _lost(self, closed: asyncio.Future[None]) -> None:
        if not closed.cancelled():
            closed.exception()  # retrieved, so that asyncio does not log it
        self._report_changed(-1)


async def _reused(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: object) -> None:
    context.trace_request_ctx.reused = True


def _nothing_came(error: Exception) -> bool:
    """Whether the connection ended before the first line of an answer."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return isinstance(error.message, str)
    return isinstance(error, OSError) and not isinstance(error, aiohttp.ClientConnectorError)
