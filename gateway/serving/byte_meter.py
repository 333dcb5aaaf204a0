"""Counts what arrives on one connection and is no content: unfinished headers, and the framing of chunks.

aiohttp bounds a field and the number of fields, 64 x 8 KB, for each connection by itself, and neither chunk extensions
nor the digits of a chunk's size. 1,000 clients without credentials, each with 460 KB of an unfinished header, took 1.27
GB. So the bytes are counted as they arrive: each connection's, and of the headers those of all together.
"""

from typing import Final

from gateway.serving import web
from gateway.serving.limits import Limits
from gateway.serving.refusals import Refusal

FRAMING_BYTES: Final = 524_288
"""Bytes of a chunked body, as it is read, that may be something else than content: the header and what the parser has
not passed on yet (256 KB, one read of TLS), sizes, extensions, trailers. They may be more only if they are no more than
half of the content: chunks of 16 bytes have 8 of it. A chunk extension has no use here."""


class TooMuch(Exception):  # noqa: N818 - given to aiohttp as the reason for its answer
    """A connection has sent too much that is no content: ``refusal``, and the text for the client."""

    def __init__(self, refusal: Refusal, text: str) -> None:
        super().__init__(text)
        self.refusal = refusal


class UnfinishedHeaders:
    """The bytes of all unfinished headers of one server."""

    __slots__ = ("limit", "size")

    def __init__(self, limits: Limits) -> None:
        self.limit = limits.header_bytes_in_flight
        self.size = 0


class ByteMeter:
    """Of one connection. ``all_headers`` are those of its server."""

    __slots__ = ("_all", "_body", "_chunked", "_complete", "_header", "_limit", "_read")

    def __init__(self, limits: Limits, all_headers: UnfinishedHeaders) -> None:
        self._limit = limits.header_bytes
        self._all = all_headers
        self._body: web.StreamReader | None = None
        self._chunked = False
        self._complete = True
        self._header = 0
        self._read = 0

    def received(self, size: int, begun: tuple[object, web.StreamReader] | None) -> None:
        """``size`` bytes were parsed; ``begun`` is the last request whose header was complete with them, None: none.

        Raises:
            TooMuch: the connection must be read no further.
        """
        if begun is not None:
            header, self._body = begun
            self.finish()
            self._read = size
            self._chunked = getattr(header, "chunked", False)
            if size > self._limit:
                # In one read, with or without a body: rare enough to be added up.
                fields = getattr(header, "raw_headers", ())
                self._check_header(sum(len(name) + len(value) for name, value in fields))
        elif self._complete:
            self._header += size
            self._all.size += size
            self._check_header(self._header)
            self._check_all()
        else:
            self._read += size
        body = self._body
        self._complete = body is None or body.is_eof()
        if (
            self._chunked
            and body is not None
            and self._read > FRAMING_BYTES
            and self._read > FRAMING_BYTES + 3 * body.total_bytes // 2
        ):
            text = (
                f"more than {FRAMING_BYTES} bytes of chunk sizes and extensions; send Content-Length, or larger chunks"
            )
            raise TooMuch(Refusal.BODY_FRAMING, text)

    def fail(self, error: Exception) -> None:
        """The reader of the body gets this error."""
        if self._body is not None:
            self._body.set_exception(error)

    def finish(self) -> None:
        """The header is complete."""
        self._all.size -= self._header
        self._header = 0

    def close(self) -> None:
        """The connection has ended. Its body refers to it: without this it would be freed by a collection only."""
        self.finish()
        self._body = None

    def _check_header(self, size: int) -> None:
        if size > self._limit:
            text = f"a header of more than {self._limit} bytes; send fewer or shorter fields"
            raise TooMuch(Refusal.HEADER_SIZE, text)

    def _check_all(self) -> None:
        if self._all.size > self._all.limit:
            text = f"the unfinished headers of all clients have more than {self._all.limit} bytes; send it in one piece"
            raise TooMuch(Refusal.HEADER_MEMORY, text)
