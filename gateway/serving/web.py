"""What the HTTP server uses of aiohttp, imported without what costs time and is not used.

``aiohttp.web`` itself is not imported: it brings applications, routes, static files and WebSockets.

``aiohttp.connector`` makes two TLS contexts when it is imported, for clients that name none, and each reads the
system's certificate authorities: a tenth of the time in which ``serve`` starts. Our clients name a context in each call
(``ssl=``), so the authorities are not read during the import. They trust nobody: a call that names none fails.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _without_authorities() -> Iterator[None]:
    # A method of the base class is hidden, and seen again. mypy would take the assignment for a mistake.
    setattr(ssl.SSLContext, "set_default_verify_paths", lambda _: None)  # noqa: B010
    try:
        yield
    finally:
        del ssl.SSLContext.set_default_verify_paths


with _without_authorities():
    from aiohttp.http_exceptions import LineTooLong
    from aiohttp.http_writer import HttpVersion11
    from aiohttp.streams import StreamReader
    from aiohttp.web_exceptions import HTTPInternalServerError
    from aiohttp.web_protocol import RequestHandler
    from aiohttp.web_protocol import _ErrInfo as ErrInfo
    from aiohttp.web_request import BaseRequest
    from aiohttp.web_response import Response, StreamResponse
    from aiohttp.web_server import Server

__all__ = [
    "BaseRequest",
    "ErrInfo",
    "HTTPInternalServerError",
    "HttpVersion11",
    "LineTooLong",
    "RequestHandler",
    "Response",
    "Server",
    "StreamReader",
    "StreamResponse",
]
