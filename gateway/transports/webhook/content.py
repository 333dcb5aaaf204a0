"""The body of an answer, read into memory: bounded, and unpacked where it is gzip.

``webhook_answer_bytes`` counts what comes out; of what comes in no more is read either. So a few kilobytes that unpack
to gigabytes end as soon as the bound is passed, and an answer without end ends there or at the call's deadline. What is
held counts for the worker's backlog (``worker_backlog_bytes``) until the answer is read.
"""

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Final

_GZIP: Final = 16 + zlib.MAX_WBITS
_STEP: Final = 1_048_576
"""Bytes that are unpacked at a time: a few milliseconds, then the others have their turn."""


class TooLargeError(Exception):
    """More bytes than may be read."""


class GzipError(Exception):
    """It is said to be gzip, and is not, or not all of it."""


async def read_content(chunks: AsyncIterator[bytes], *, gzip: bool, limit: int) -> AsyncGenerator[bytes, None]:
    """The pieces of a body, unpacked.

    Args:
        chunks: as they come.
        gzip: whether to unpack them.
        limit: bytes that the body may have, packed or not.

    Raises:
        TooLargeError, GzipError: see there.
    """
    unpacking = _Unpacking() if gzip else None
    came = left = limit
    async for chunk in chunks:
        came -= len(chunk)
        if came < 0:
            raise TooLargeError
        for piece in (chunk,) if unpacking is None else unpacking.pieces(chunk):
            left -= len(piece)
            if left < 0:
                raise TooLargeError
            if unpacking is not None and len(piece) == _STEP:
                await asyncio.sleep(0)
            yield piece
    if unpacking is not None:
        unpacking.end()


class _Unpacking:
    """gzip, one member after another (RFC 1952), a step at a time."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._is_begun = False

    def pieces(self, packed: bytes) -> Iterator[bytes]:
        while packed:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)
            self._is_begun = True
            try:
                piece = self._member.decompress(packed, _STEP)
            except zlib.error as error:
                raise GzipError(str(error)) from None
            packed = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if piece:
                yield piece

    def end(self) -> None:
        if self._is_begun and not self._member.eof:
            raise GzipError("it ends in the middle")
