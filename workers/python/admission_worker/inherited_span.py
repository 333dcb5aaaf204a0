"""The gateway's span as the current one, where the worker makes none of its own.

Spans that the function makes, and calls that it sends, continue the gateway's trace. Most functions do neither, so the
headers are read only when OpenTelemetry asks for the span's context. ``tracing`` imports this when it needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import context, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

if TYPE_CHECKING:
    from contextvars import Token

    from admission_worker.tracing import TraceContext


class InheritedSpan(trace.NonRecordingSpan):
    """A span that is not recorded, of the context that the gateway has sent.

    Args:
        sent: what cannot be read of it is ignored, as W3C requires.
    """

    def __init__(self, sent: TraceContext) -> None:
        # Not the parent's, which wants the context now.
        self._sent = sent
        self._read: trace.SpanContext | None = None

    def get_span_context(self) -> trace.SpanContext:
        """See the parent."""
        if self._read is None:
            found = TraceContextTextMapPropagator().extract(self._sent.headers)
            self._read = trace.get_current_span(found).get_span_context()
        return self._read

    def __repr__(self) -> str:
        return f"InheritedSpan({self.get_span_context()!r})"


def attach(sent: TraceContext) -> Token[context.Context]:
    """Make it the current span; ``detach`` ends that."""
    return context.attach(trace.set_span_in_context(InheritedSpan(sent)))


detach = context.detach
