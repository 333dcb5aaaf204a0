"""Writes records in a thread of its own: those who make them never wait, whatever the place they are written to does.

Records wait in memory, bounded in number and in bytes, those included that are being written. What does not fit is
dropped, and so is what cannot be written: a full disk, a missing directory, a pipe that is closed or never read, a
collector that is away. Each dropped record is counted under its reason (``Drop``). The log has one message when records
begin to be dropped, and one when they are written again, however many there were.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final, Protocol

import structlog

from gateway.telemetry.labels import Drop

_LOG: Final = structlog.get_logger(__name__)

WAITING_RECORDS: Final = 10_000
"""Records that wait to be written: at 2 KB each 20 MB, of which ``WAITING_BYTES`` is less; a second of the worst case,
in which every review is denied."""

WAITING_BYTES: Final = 16_777_216
"""Their bytes: 1.6 % of the memory budget's default, and some seconds of a disk that stalls."""

RESERVE: Final = 4
"""Those that must not be lost may take 1/4 more than both: an unjudged admission is not dropped because the log
of what was decided is behind."""

BATCH_BYTES: Final = 262_144
"""Bytes that are written at once: a few hundred records with one system call; four times what a pipe holds."""

STOP_SECONDS: Final = 2.0
"""How long the shutdown waits for the remaining records to be written."""


QUIET_SECONDS: Final = 10.0
"""How long no record must have been dropped until the log says that they are written again: a disk that is nearly full
takes some and refuses others."""


class WriteError(Exception):
    """Records cannot be written now. ``written``: how many of them were, the first ones; ``str(error)`` says why."""

    def __init__(self, message: str, *, written: int = 0, reason: Drop = Drop.WRITE_ERROR) -> None:
        super().__init__(message)
        self.written = written
        self.reason = reason


class Sink(Protocol):
    """Where records are written. It is used by one thread only, and may block."""

    @property
    def name(self) -> str:
        """What messages call it."""

    def write(self, records: Sequence[bytes]) -> None:
        """Write these records, in order.

        Raises:
            WriteError: some are not written. The next call tries again.
        """

    def close(self) -> None:
        """Release everything; never raises."""


class BackgroundWriter:
    """Writes records to a sink.

    Args:
        sink: where they are written.
        dropped: counts dropped records: the reason, and how many. Called in the event loop.
        records: how many may wait; ``size`` how many bytes.
        batch_bytes: how many bytes are written at once, at least one record.
    """

    def __init__(
        self,
        sink: Sink,
        dropped: Callable[[Drop, int], object],
        *,
        records: int = WAITING_RECORDS,
        size: int = WAITING_BYTES,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self._sink = sink
        self._dropped = dropped
        self._max_records = records
        self._max_bytes = size
        self._batch_bytes = batch_bytes
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._records = 0  # those that are being written included, as their bytes
        self._bytes = 0
        self._stopping = False
        self._lost = 0  # since the log said that records are dropped
        self._last_drop = 0.0
        self._thread = threading.Thread(target=self._run, name=f"writer {sink.name}", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin to write; in the event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    @property
    def full(self) -> bool:
        """Whether the next record would be dropped: then there is no need to make it."""
        return self._records >= self._max_records or self._bytes >= self._max_bytes

    def put(self, record: bytes, *, reserved: bool = False) -> None:
        """Write this record soon, or drop it. Never waits, never raises.

        ``reserved``: it may also take the room that is reserved for what must not be lost.
        """
        records, size = self._max_records, self._max_bytes
        if reserved:
            records, size = records + records // RESERVE, size + size // RESERVE
        with self._changed:
            if self._records < records and self._bytes + len(record) <= size:
                self._waiting.append(record)
                self._records += 1
                self._bytes += len(record)
                self._changed.notify()
                return
        self.drop(Drop.FULL, error=f"{self._records} records of {self._bytes} bytes wait to be written")

    def drop(self, reason: Drop, count: int = 1, *, error: str = "") -> None:
        """Count records that are not written, and log the first of them, unless they are only too large; in the event
        loop.
        """
        if reason is not Drop.TOO_LARGE:
            self._log_drop(reason, count, error)
        self._dropped(reason, count)

    def _log_drop(self, reason: Drop, count: int, error: str) -> None:
        with self._changed:
            first = not self._lost
            self._lost += count
            self._last_drop = monotonic()
        if first:
            _LOG.error(
                "decisions cannot be written; they are dropped until they can",
                to=self._sink.name,
                reason=reason.value,
                error=error,
            )

    def _drop_from_thread(self, reason: Drop, count: int, error: str) -> None:
        self._log_drop(reason, count, error)
        assert self._loop is not None  # noqa: S101 - the thread runs
        with contextlib.suppress(RuntimeError):  # the loop is closed: its metrics are read no more
            self._loop.call_soon_threadsafe(self._dropped, reason, count)

    def stop(self) -> None:
        """Write what waits and end; what is not written after ``STOP_SECONDS`` is dropped. May be called twice."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._loop is None:
            return
        self._thread.join(STOP_SECONDS)
        with self._changed:
            left = self._records
            self._waiting.clear()
            self._records = self._bytes = 0
        if left:
            self.drop(Drop.SHUTDOWN, left, error=f"not written within {STOP_SECONDS} seconds")

    def _run(self) -> None:
        while batch := self._next():
            size = sum(map(len, batch))
            try:
                self._sink.write(batch)
            except WriteError as error:
                self._drop_from_thread(error.reason, len(batch) - error.written, str(error))
            except Exception as error:  # noqa: BLE001 - an error of the sink must not end the thread
                self._drop_from_thread(Drop.INTERNAL, len(batch), f"{type(error).__name__}: {error}")
            else:
                self._written()
            with self._changed:
                self._records = max(self._records - len(batch), 0)
                self._bytes = max(self._bytes - size, 0)
        self._sink.close()

    def _next(self) -> list[bytes]:
        """The next records, as soon as there are any; none: it is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            batch: list[bytes] = []
            size = 0
            while self._waiting and (not batch or size + len(self._waiting[0]) <= self._batch_bytes):
                batch.append(self._waiting.popleft())
                size += len(batch[-1])
            return batch

    def _written(self) -> None:
        with self._changed:
            if not self._lost or monotonic() - self._last_drop < QUIET_SECONDS:
                return
            lost, self._lost = self._lost, 0
        _LOG.warning("decisions are written again", to=self._sink.name, dropped=lost)
