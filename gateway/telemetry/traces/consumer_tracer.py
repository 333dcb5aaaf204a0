"""Spans of a bridge: one for each call that it takes from a queue, between the gateway's span and the worker's."""

from time import monotonic, time
from typing import Final

from gateway.engine.trace_context import NO_TRACE, TraceContext, parent_of
from gateway.telemetry.events import Events
from gateway.telemetry.traces.export import SpanExport, span_counter
from gateway.telemetry.traces.sampling import HeadSampler
from gateway.telemetry.traces.settings import TraceSettings
from gateway.telemetry.traces.span import Span, SpanKind, Value, shortened

SERVICE: Final = "admission-gateway-bridge"
"""``service.name``, where no variable sets another."""


class ConsumerTracer:
    """Begins and exports the spans of a bridge's calls: those that the gateway sampled.

    Args:
        settings: of the export.
        stream: the queue's.
        events: counts spans.
    """

    def __init__(self, settings: TraceSettings, stream: str, events: Events) -> None:
        self._stream = stream
        self._sampler = HeadSampler(ratio=0.0, slow_seconds=0.0)
        self._export = SpanExport(settings, SERVICE, span_counter(events))

    def begin(self, traceparent: str, tracestate: str) -> TraceContext:
        """The context that the worker gets for a call with this one."""
        parent = parent_of([traceparent], [tracestate] if tracestate else []) if traceparent else None
        return NO_TRACE if parent is None else self._sampler.begin(parent)

    def ended(self, trace: TraceContext, policy: str, started: float, verdict: str) -> None:
        """Export the span of a call that has begun at ``started`` (``time.monotonic``), if it is sampled.

        ``verdict`` is allow, deny or failure, or a reason code.
        """
        if not trace.sampled:
            return
        now, offset = monotonic(), time() - monotonic()
        attributes: dict[str, Value] = {
            "messaging.system": "redis",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": self._stream,
            "admission.worker.policy": shortened(policy),
            "admission.verdict": verdict,
        }
        error = verdict if verdict.isupper() else ""
        if error:
            attributes["error.type"] = error
        span = Span(
            name=f"process {self._stream}",
            kind=SpanKind.CONSUMER,
            trace_id=trace.trace_id,
            span_id=trace.span_id,
            parent_id=int(trace.parent_id, 16),
            is_parent_remote=True,
            tracestate=trace.tracestate,
            started=offset + started,
            ended=offset + now,
            attributes=attributes,
            error=error,
        )
        self._export.put((span,))

    def start(self) -> None:
        """Begin to export, in the running loop."""
        self._export.start()

    async def stop(self) -> None:
        """Export what waits, for a bounded time."""
        await self._export.stop()
