"""Requests that get no verdict: why, and with which HTTP status. docs/reference/metrics.md is generated from this.

For the API server, each of these is a failure to call the webhook, and it applies its failurePolicy. It shows most of
the texts to its user, so each is one line with component, problem, limit, observed value and next step. None has
``Retry-After``: with one, kube-apiserver repeats the request until its timeout.
"""

import json
from http import HTTPStatus
from typing import Final, Protocol

from gateway.enums import StrEnum
from gateway.serving import web

SERVER: Final = "admission-gateway"
"""The ``Server`` header, without the versions that aiohttp's default discloses."""

_LONGEST_QUOTE: Final = 100
"""Characters of a client's text that an answer quotes."""


class Refusal(StrEnum):
    """Why a request, or a connection, got no verdict. The value is its word in logs and metrics."""

    UNAUTHENTICATED = "unauthenticated"
    """No credential of those that the gateway accepts, or a wrong one."""

    FORBIDDEN = "forbidden"
    """A client certificate without an allowed name; a wrong path where nothing but a path secret is accepted."""

    PATH = "path"
    """Neither ``/mutate`` nor ``/validate``, nor an entry of the configuration below them."""

    METHOD = "method"
    """Not POST."""

    NOT_READY = "not_ready"
    """No complete configuration is loaded yet, or the gateway has stopped."""

    CONTENT_TYPE = "content_type"
    """No ``Content-Type``, not ``application/json``, or in another charset than UTF-8."""

    CONTENT_ENCODING = "content_encoding"
    """Compressed or otherwise encoded."""

    EXPECTATION = "expectation"
    """``Expect`` other than ``100-continue``."""

    BODY_SIZE = "body_size"
    """Larger than ``body_bytes``, without a uid in its first 4096 bytes; with one, it gets a review with code 413."""

    BODY_TIME = "body_time"
    """The body did not arrive within the budget."""

    BODY_FRAMING = "body_framing"
    """Broken chunks, chunks of too much else than content, or a Transfer-Encoding other than ``chunked``."""

    MEMORY = "memory"
    """The bodies in flight are at their limit."""

    INTERNAL = "internal"
    """An error in the gateway."""

    MALFORMED = "malformed"
    """Not HTTP/1.1, or not understood."""

    HEADER_SIZE = "header_size"
    """The request line, a field or the header is too long."""

    HEADER_MEMORY = "header_memory"
    """The unfinished headers of all clients are at their limit."""

    HEADER_TIME = "header_time"
    """The header did not arrive in time."""

    CONNECTIONS = "connections"
    """The connections are at their limit; closed without an answer."""

    PLAIN_HTTP = "plain_http"
    """Plain HTTP on the TLS port."""

    TLS = "tls"
    """The handshake failed, or the TLS connection broke."""

    HANGUP = "hangup"
    """The client closed before its request was complete."""

    UNREAD = "unread"
    """The client does not read its answer."""


STATUS: Final = {
    Refusal.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    Refusal.FORBIDDEN: HTTPStatus.FORBIDDEN,
    Refusal.PATH: HTTPStatus.NOT_FOUND,
    Refusal.METHOD: HTTPStatus.METHOD_NOT_ALLOWED,
    Refusal.NOT_READY: HTTPStatus.SERVICE_UNAVAILABLE,
    Refusal.CONTENT_TYPE: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    Refusal.CONTENT_ENCODING: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    Refusal.EXPECTATION: HTTPStatus.EXPECTATION_FAILED,
    Refusal.BODY_SIZE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Refusal.BODY_TIME: HTTPStatus.REQUEST_TIMEOUT,
    Refusal.BODY_FRAMING: HTTPStatus.BAD_REQUEST,
    Refusal.MEMORY: HTTPStatus.TOO_MANY_REQUESTS,
    Refusal.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
    Refusal.MALFORMED: HTTPStatus.BAD_REQUEST,
    Refusal.HEADER_SIZE: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    Refusal.HEADER_MEMORY: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    Refusal.HEADER_TIME: HTTPStatus.REQUEST_TIMEOUT,
    Refusal.PLAIN_HTTP: HTTPStatus.BAD_REQUEST,
}
"""The refusals that are answered."""


class Refused(Exception):  # noqa: N818 - an outcome, raised to leave the steps of a request
    """A request that gets no verdict: ``refusal``, and ``text`` for the client (one line, without a newline).

    ``challenge`` is the value of the header that a 401 must have.
    """

    def __init__(self, refusal: Refusal, text: str, *, challenge: str = "") -> None:
        super().__init__(text)
        self.refusal = refusal
        self.text = text
        self.challenge = challenge


class Note(Protocol):
    """Records, once, that a request or connection was refused, in the log and the metrics."""

    def __call__(self, refusal: Refusal, *, peer: str, why: str) -> None:
        """``peer`` is the client's address; ``why`` is one line."""


def answer(refusal: Refusal, text: str, *, allow: str = "POST", challenge: str = "") -> web.Response:
    """The HTTP answer to a refusal.

    ``allow`` is the value of the header that a 405 must have (RFC 9110, 15.5.6), ``challenge`` of that of a 401.
    """
    headers = _headers(refusal, allow)
    if refusal is Refusal.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = challenge
    return web.Response(status=STATUS[refusal], body=line(text), headers=headers)


def raw_answer(refusal: Refusal, text: str) -> bytes:
    """The answer to a refusal outside of HTTP: the bytes to write before the connection is closed."""
    status, body = STATUS[refusal], line(text)
    head = f"HTTP/1.1 {status} {status.phrase}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    fields = "".join(f"{name}: {value}\r\n" for name, value in _headers(refusal, "").items())
    return f"{head}{fields}\r\n".encode("ascii") + body


def line(text: str) -> bytes:
    """A plain text body of one line, with the gateway's name."""
    return f"admission-gateway: {text}\n".encode()


def quote(text: str) -> str:
    """A client's text as one short line in ASCII, whatever it holds: also bytes that are no UTF-8."""
    cut = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "..."
    return json.dumps(cut)


def _headers(refusal: Refusal, allow: str) -> dict[str, str]:
    headers = {"Content-Type": "text/plain; charset=utf-8", "Server": SERVER}
    if refusal is Refusal.METHOD:
        headers["Allow"] = allow
    return headers
