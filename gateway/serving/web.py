"""The parts of aiohttp that the HTTP server uses, without the parts that only cost startup time.

``aiohttp.web`` is not imported: it imports applications, routes, static files and WebSockets.

``aiohttp.connector`` creates two default TLS contexts for clients when it is imported. Each reads the system's
certificate authorities, which took a tenth of the startup of ``serve``. The gateway's clients pass their own context
(``ssl=``), so this module prevents the reading. The default contexts then trust no authority: a client call without
``ssl=`` fails.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _without_authorities() -> Iterator[None]:
    # Hides the method of the base class. mypy rejects the assignment to a method.
    setattr(ssl.SSLContext, "set_default_verify_paths", lambda _: None)  # noqa: B010
    try:
        yield
    finally:
        del ssl.SSLContext.set_default_verify_paths


with _without_authorities():
    from aiohttp.http_exceptions import LineTooLong
    from aiohttp.http_writer import HttpVersion10, HttpVersion11
    from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
    from aiohttp.web_exceptions import HTTPInternalServerError
    from aiohttp.web_protocol import RequestHandler
    from aiohttp.web_protocol import _ErrInfo as ErrInfo
    from aiohttp.web_request import BaseRequest
    from aiohttp.web_response import Response, StreamResponse
    from aiohttp.web_server import Server

__all__ = [
    "EMPTY_PAYLOAD",
    "BaseRequest",
    "ErrInfo",
    "HTTPInternalServerError",
    "HttpVersion10",
    "HttpVersion11",
    "LineTooLong",
    "RequestHandler",
    "Response",
    "Server",
    "StreamReader",
    "StreamResponse",
]
