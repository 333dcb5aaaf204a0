"""Logs a worker's standard output and error: one record for each line, and one for all lines of a traceback
(``output_records``).

The event loop that handles reviews reads the lines, so each worker's share is limited: ``LINES_A_SECOND`` are logged,
the others are counted. The pipe is always read to the end, because a worker with a full pipe would block in a write.

The gateway reads the pipe itself, without an asyncio transport: a transport closes it too, and uvloop's a second time,
when the file descriptor may belong to another file.
"""

import asyncio
from collections import deque
from typing import BinaryIO, Final

import structlog

from gateway.transports.output_records import OutputRecords

_LOG: Final = structlog.get_logger(__name__)

LINE_BYTES: Final = 65_536
"""The longest line of a worker's output that is logged as one."""

LAST_LINES: Final = 5
"""Lines that are kept to explain why the worker has ended, each cut after ``LAST_CHARACTERS``."""

LAST_CHARACTERS: Final = 200

LINES_A_SECOND: Final = 1_000
"""Lines of one worker that are logged in a second: at 20 µs each, 2 % of the loop's time."""

QUIET_SECONDS: Final = 0.1
"""Pause after which a record is complete: a program writes all lines of a traceback at once."""

_CHUNK_BYTES: Final = 65_536
"""The default capacity of a pipe on Linux, read at once."""


class WorkerOutput:
    """Logs one worker's output.

    Args:
        worker: the Worker's name.
        source: the reading end of a pipe, set to not blocking. The caller closes it.
    """

    def __init__(self, worker: str, source: BinaryIO) -> None:
        self._worker = worker
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._second = self._loop.time()
        self._room = LINES_A_SECOND
        self._left_out = 0
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._records = OutputRecords()
        self._quiet: asyncio.TimerHandle | None = None

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines that the worker wrote."""
        return tuple(self._last)

    async def log(self) -> None:
        """Log line by line, until the end of the output."""
        rest = b""
        try:
            while chunk := await self._chunk():
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) >= LINE_BYTES:
                    lines.append(rest)
                    rest = b""
                self._take(lines)
        finally:
            self._take([rest])
            self._flush()
            self._report_left_out()

    def _take(self, lines: list[bytes]) -> None:
        """Log the records that these lines complete, and the last one if nothing follows for a while."""
        if self._quiet is not None:
            self._quiet.cancel()
        for line in lines:
            for record in self._records.add(line):
                self._log(record)
        self._quiet = self._loop.call_later(QUIET_SECONDS, self._flush) if self._records.pending else None

    def _flush(self) -> None:
        if self._quiet is not None:
            self._quiet.cancel()
        for record in self._records.flush():
            self._log(record)

    async def _chunk(self) -> bytes:
        """The next bytes; empty at the end. Other tasks run first, however fast the worker writes."""
        while True:
            readable = self._loop.create_future()
            self._loop.add_reader(self._source, _resolve, readable)
            try:
                await readable
            finally:
                self._loop.remove_reader(self._source)
            chunk = self._source.read(_CHUNK_BYTES)
            if chunk is not None:
                return chunk

    def _log(self, record: list[bytes]) -> None:
        if self._loop.time() - self._second >= 1.0:
            self._report_left_out()
            self._second, self._room = self._loop.time(), LINES_A_SECOND
        texts = [line.decode(errors="replace").rstrip() for line in record]
        self._last.extend(text[:LAST_CHARACTERS] for text in texts[-LAST_LINES:])
        if not self._room:
            self._left_out += len(record)
            return
        _LOG.info("worker output", worker=self._worker, line="\n".join(texts))
        self._room = max(self._room - len(record), 0)

    def _report_left_out(self) -> None:
        if self._left_out:
            _LOG.warning(
                "a worker writes too many lines; some are not logged",
                worker=self._worker,
                lines=self._left_out,
                logged_a_second=LINES_A_SECOND,
            )
            self._left_out = 0


def _resolve(readable: "asyncio.Future[None]") -> None:
    if not readable.done():
        readable.set_result(None)
