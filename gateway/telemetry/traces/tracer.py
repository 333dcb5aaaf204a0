"""Traces of the reviews of one gateway: begins them, and passes the spans of those that count to the export.

The spans are made from the Decision, some time after the review, and only if they are exported. Before that a trace
costs two numbers and the header for the workers.
"""

from gateway.engine.decision import Decision
from gateway.telemetry.decision_batch import DecisionBatch
from gateway.telemetry.events import Events
from gateway.telemetry.traces.decision_spans import decision_spans
from gateway.telemetry.traces.export import SpanExport, span_counter
from gateway.telemetry.traces.settings import TraceSettings

SERVICE = "admission-gateway"
"""``service.name``, where no variable sets another."""


class ReviewTracer:
    """Begins traces, and observes the decisions that are traced.

    Args:
        settings: of the export.
        events: counts spans.
    """

    def __init__(self, settings: TraceSettings, events: Events) -> None:
        self.begin = settings.sampler.begin
        """Gives the trace of a review, with the API server's span or None as its parent."""
        self._export = SpanExport(settings, SERVICE, span_counter(events))
        self._batch = DecisionBatch(lambda decision: self._export.put(decision_spans(decision)))

    def decided(self, decision: Decision) -> None:
        """Export the spans of a decision that is traced."""
        self._batch.add(decision)

    def start(self) -> None:
        """Begin to export, in the running loop."""
        self._export.start()

    async def stop(self) -> None:
        """Export what waits, for a bounded time."""
        self._batch.flush()
        await self._export.stop()
