"""Exports spans in a thread, from a bounded queue. Nothing waits for it.

    the queue is full      new spans are dropped
    the receiver fails     the exporter tries again for up to its timeout; then the batch is lost
    stop                   what waits is exported, for a bounded time; then the rest is dropped

``count`` is called in the event loop with what became of how many spans. The log has one line when exporting begins to
fail, at most one a minute, and one when it works again.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import structlog

from gateway.telemetry.traces.settings import TraceSettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from gateway.telemetry.traces.otlp import LastMessage
    from gateway.telemetry.traces.span import Span

_LOG: Final = structlog.get_logger(__name__)

DROPPED: Final = "dropped"
EXPORTED: Final = "exported"
FAILED: Final = "failed"
"""What becomes of a span: the queue was full, or the process stopped; the receiver has it; exporting it failed."""

QUIET_SECONDS: Final = 60.0
"""Between two lines about failures."""

_WHY_CHARACTERS: Final = 300


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
        self._exporter: Any = None
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
        if not self._thread.is_alive():
            return
        seconds = self._settings.batches.stop_seconds
        self._ends = monotonic() + seconds
        self._is_stopping = True
        self._due.set()
        await asyncio.to_thread(self._thread.join, seconds)
        if self._thread.is_alive() and self._exporter is not None:
            # An export under way fails at once, or is left to a thread that ends with the process.
            await asyncio.to_thread(self._exporter.shutdown)
            await asyncio.to_thread(self._thread.join, 0.5)
        left = len(self._queue)
        if left or self._thread.is_alive():
            self._count(DROPPED, left)
            _LOG.warning("spans were not exported before the stop", spans=left, seconds=seconds)

    # ------------------------------------------------------------------------------------------- in the thread

    def _run(self) -> None:
        batches = self._settings.batches
        while not self._is_stopping:
            self._due.wait(batches.delay_seconds)
            self._due.clear()
            self._export_all()
        self._export_all()
        if self._exporter is not None:
            self._exporter.shutdown()

    def _export_all(self) -> None:
        queue, most = self._queue, self._settings.batches.batch_spans
        while queue and not (self._is_stopping and monotonic() > self._ends):
            self._export([queue.popleft() for _ in range(min(len(queue), most))])

    def _begin(self) -> bool:
        """Make the exporter. It is made again for each batch until that succeeds: a certificate may come later."""
        try:
            from gateway.telemetry.traces import otlp  # noqa: PLC0415 - takes as long to import as half of the rest

            self._messages = self._messages or otlp.LastMessage()
            self._resource = self._resource or otlp.resource_of(self._service)
            self._exporter = otlp.exporter_of(self._settings)
        except Exception as error:  # noqa: BLE001 - whatever an endpoint or a certificate causes: logged
            self._failed(f"{type(error).__name__}: {error}")
            return False
        return True

    def _export(self, spans: "list[Span | ReadableSpan]") -> None:
        is_exported, why = False, ""
        if self._exporter is not None or self._begin():
            try:
                from gateway.telemetry.traces import otlp  # noqa: PLC0415 - as in _begin

                is_exported = otlp.exported(self._exporter, spans, self._resource)
            except Exception as error:  # noqa: BLE001 - the thread goes on
                why = f"{type(error).__name__}: {error}"
            if not is_exported:
                self._failed(why or (self._messages.take() if self._messages else ""))
        if is_exported and self._is_failing:
            self._is_failing = False
            _LOG.info("traces are exported again", endpoint=self._settings.shown_endpoint)
        self._report(EXPORTED if is_exported else FAILED, len(spans))

    def _failed(self, why: str) -> None:
        self._is_failing = True
        if monotonic() >= self._quiet_until:
            self._quiet_until = monotonic() + QUIET_SECONDS
            endpoint = self._settings.shown_endpoint
            _LOG.warning(
                "traces cannot be exported; their spans are lost", endpoint=endpoint, why=why[:_WHY_CHARACTERS]
            )

    def _report(self, result: str, number: int) -> None:
        assert self._loop is not None  # noqa: S101 - set before the thread starts
        try:
            self._loop.call_soon_threadsafe(self._count, result, number)
        except RuntimeError:
            # The loop is closed: the process ends, and with it the counters.
            return
