"""Reads the body of an answer into memory: limited in size, and decompressed if it is gzip.

``webhook_answer_bytes`` limits the decompressed size and the received size. So reading stops at the limit, also for a
few kilobytes that decompress to gigabytes, and for an endless answer there or at the call's deadline. Bytes in memory
count for the worker's backlog (``worker_backlog_bytes``) until the answer is read.
"""

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Final

_GZIP: Final = 16 + zlib.MAX_WBITS
_STEP: Final = 1_048_576
"""Bytes that are decompressed at a time: a few milliseconds, then other tasks run."""


class TooLargeError(Exception):
    """The body is larger than the limit."""


class GzipError(Exception):
    """The body is declared as gzip, and is invalid or truncated."""


async def read_content(chunks: AsyncIterator[bytes], *, gzip: bool, limit: int) -> AsyncGenerator[bytes, None]:
    """The pieces of a body, decompressed.

    Args:
        chunks: as received.
        gzip: whether to decompress them.
        limit: the maximum size of the body, compressed and decompressed.

    Raises:
        TooLargeError, GzipError: see there.
    """
    decompressor = _GzipDecompressor() if gzip else None
    left_compressed = left = limit
    async for chunk in chunks:
        left_compressed -= len(chunk)
        if left_compressed < 0:
            raise TooLargeError
        for piece in (chunk,) if decompressor is None else decompressor.pieces(chunk):
            left -= len(piece)
            if left < 0:
                raise TooLargeError
            if decompressor is not None and len(piece) == _STEP:
                await asyncio.sleep(0)
            yield piece
    if decompressor is not None:
        decompressor.end()


class _GzipDecompressor:
    """gzip, one member after another (RFC 1952), a step at a time."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._has_begun = False

    def pieces(self, compressed: bytes) -> Iterator[bytes]:
        while compressed:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)
            self._has_begun = True
            try:
                piece = self._member.decompress(compressed, _STEP)
            except zlib.error as error:
                raise GzipError(str(error)) from None
            compressed = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if piece:
                yield piece

    def end(self) -> None:
        if self._has_begun and not self._member.eof:
            raise GzipError("truncated")
