"""Exports spans in a thread, from a bounded queue. Nothing waits for it.

    the queue is full      new spans are dropped
    the receiver fails     the exporter tries again for up to its timeout; then the batch is lost
    it takes a part        the spans that it rejects are lost
    stop                   what waits is exported, for a bounded time; then the rest is dropped, with a batch that is
                           being exported

``count`` is called in the event loop with what became of how many spans. The log has one line when exporting begins to
fail, at most one a minute, and one when it works again.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import structlog

from gateway.telemetry.events import Events
from gateway.telemetry.table import TRACE_SPANS
from gateway.telemetry.traces.settings import TraceSettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from gateway.telemetry.traces.otlp import LastMessage, SpanSender
    from gateway.telemetry.traces.span import Span

_LOG: Final = structlog.get_logger(__name__)

DROPPED: Final = "dropped"
EXPORTED: Final = "exported"
FAILED: Final = "failed"
"""What becomes of a span: the queue was full, or the process stopped; the receiver has it; exporting it failed."""

QUIET_SECONDS: Final = 60.0
"""Between two lines about failures."""

CLOSING_SECONDS: Final = 0.5
"""For an export under way to fail, when a stop has closed its connection."""

_WHY_CHARACTERS: Final = 300


def span_counter(events: Events) -> Callable[[str, int], None]:
    """Counts what becomes of spans."""
    return lambda result, spans: events.count(TRACE_SPANS, result, amount=spans)


class SpanExport:
    """The queue, and the thread that empties it.

    Args:
        settings: where spans go, and in which batches.
        service: the service's name, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES have one.
        count: called with what became of spans, and how many, in the loop in which ``start`` was called.
    """

    def __init__(self, settings: TraceSettings, service: str, count: Callable[[str, int], object]) -> None:
        self._settings = settings
        self._service = service
        self._count = count
        self._queue: deque[Span | ReadableSpan] = deque()
        self._due = threading.Event()
        self._is_stopping = False
        self._ends = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()
        self._batches = threading.Lock()  # of the two below
        self._in_flight = 0
        self._is_over = False
        self._exporter: SpanSender | None = None
        self._resource: Any = None
        self._messages: LastMessage | None = None
        self._is_failing = False
        self._quiet_until = 0.0
        self._thread = threading.Thread(target=self._run, name="span-export", daemon=True)

    def start(self) -> None:
        """Start the thread, in the running loop."""
        self._loop = asyncio.get_running_loop()
        for warning in self._settings.warnings:
            _LOG.warning("a setting of traces is ignored", why=warning)
        _LOG.info("traces are exported", endpoint=self._settings.shown_endpoint, protocol=self._settings.protocol)
        # Not in the thread: what is imported after the start is collected as garbage again and again, and the imports
        # would compete with the first reviews.
        self._begin()
        self._thread.start()

    def put(self, spans: "Sequence[Span | ReadableSpan]") -> None:
        """Queue spans; those that do not fit are dropped. Called in the loop."""
        queue, batches = self._queue, self._settings.batches
        room = max(batches.queue_spans - len(queue), 0)
        if self._is_stopping:
            room = 0
        queue.extend(spans[:room])
        if len(spans) > room:
            self._count(DROPPED, len(spans) - room)
        if len(queue) >= batches.batch_spans:
            self._due.set()

    async def stop(self) -> None:
        """Export what waits, for ``stop_seconds`` at most."""
        if self._loop is None or self._is_stopping:
            return
        seconds = self._settings.batches.stop_seconds
        self._ends = monotonic() + seconds
        self._is_stopping = True
        self._due.set()
        if not await self._has_ended(seconds) and self._exporter is not None:
            # An export under way fails at once, or is left to a thread that ends with the process.
            threading.Thread(target=self._close, args=(self._exporter,), name="span-export-close", daemon=True).start()
            await self._has_ended(CLOSING_SECONDS)
        with self._batches:
            self._is_over = True
            left = len(self._queue) + self._in_flight
        if left:
            self._count(DROPPED, left)
        if left or not self._ended.is_set():
            _LOG.warning("spans were not exported before the stop", spans=left, seconds=seconds)

    async def _has_ended(self, seconds: float) -> bool:
        """Whether the thread ends within this time. No thread waits for it: there may be none left that could."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)
        return self._ended.is_set()

    # ------------------------------------------------------------------------------------------- in the thread

    def _run(self) -> None:
        batches = self._settings.batches
        while not self._is_stopping:
            self._due.wait(batches.delay_seconds)
            self._due.clear()
            self._export_all()
        self._export_all()
        if self._exporter is not None:
            self._close(self._exporter)
        self._in_loop(self._ended.set)

    def _close(self, exporter: "SpanSender") -> None:
        with suppress(Exception):
            exporter.shutdown()

    def _export_all(self) -> None:
        while not (self._is_stopping and monotonic() > self._ends) and (batch := self._next()):
            self._export(batch)

    def _next(self) -> "list[Span | ReadableSpan]":
        """The next batch, which is in flight until it is reported; none: there is nothing to do."""
        queue, most = self._queue, self._settings.batches.batch_spans
        with self._batches:
            if self._is_over:
                return []
            batch = [queue.popleft() for _ in range(min(len(queue), most))]
            self._in_flight = len(batch)
        return batch

    def _begin(self) -> bool:
        """Make the exporter. It is made again for each batch until that succeeds: a certificate may come later."""
        try:
            from gateway.telemetry.traces import otlp  # noqa: PLC0415 - takes as long to import as half of the rest

            self._messages = self._messages or otlp.LastMessage()
            self._resource = self._resource or otlp.resource_of(self._service)
            self._exporter = otlp.SpanSender(self._settings)
        except Exception as error:  # noqa: BLE001 - whatever an endpoint or a certificate causes: logged
            self._failed(f"{type(error).__name__}: {error}")
            return False
        return True

    def _export(self, spans: "list[Span | ReadableSpan]") -> None:
        exported, why = 0, ""
        if self._exporter is not None or self._begin():
            assert self._exporter is not None  # noqa: S101 - begun
            try:
                exported, why = self._exporter.export(spans, self._resource)
            except Exception as error:  # noqa: BLE001 - the thread goes on
                why = f"{type(error).__name__}: {error}"
            if exported < len(spans):
                self._failed(why or (self._messages.take() if self._messages else ""))
        if exported == len(spans) and self._is_failing:
            self._is_failing = False
            _LOG.info("traces are exported again", endpoint=self._settings.shown_endpoint)
        self._report({EXPORTED: exported, FAILED: len(spans) - exported})

    def _failed(self, why: str) -> None:
        self._is_failing = True
        if monotonic() >= self._quiet_until:
            self._quiet_until = monotonic() + QUIET_SECONDS
            endpoint = self._settings.shown_endpoint
            _LOG.warning(
                "traces cannot be exported; their spans are lost", endpoint=endpoint, why=why[:_WHY_CHARACTERS]
            )

    def _report(self, results: Mapping[str, int]) -> None:
        """Count what became of the batch, unless the stop has counted it as dropped."""
        with self._batches:
            self._in_flight = 0
            if self._is_over:
                return
        for result, number in results.items():
            if number:
                self._in_loop(self._count, result, number)

    def _in_loop(self, call: Callable[..., object], *arguments: object) -> None:
        assert self._loop is not None  # noqa: S101 - set before the thread starts
        with suppress(RuntimeError):  # the loop is closed: the process ends, and with it the counters
            self._loop.call_soon_threadsafe(call, *arguments)
