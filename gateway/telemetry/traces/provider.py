"""OpenTelemetry's tracer provider for a process whose spans others make: ``hook-worker``, by the Python SDK.

Its spans are those of calls that the gateway sampled. They go through the same bounded export as the gateway's.
"""

from typing import Final

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

from gateway.telemetry.events import Events
from gateway.telemetry.traces.export import SpanExport, span_counter
from gateway.telemetry.traces.otlp import resource_of
from gateway.telemetry.traces.settings import TraceSettings

SERVICE: Final = "admission-gateway-hook-worker"
"""``service.name``, where no variable sets another."""


class SpanProvider(SpanProcessor):
    """Exports what OpenTelemetry's API is used for in this process, from ``start`` to ``stop``.

    Args:
        settings: of the export.
        events: counts spans.
    """

    def __init__(self, settings: TraceSettings, events: Events) -> None:
        self._export = SpanExport(settings, SERVICE, span_counter(events))

    def start(self) -> None:
        """Become the process's provider, in the running loop."""
        provider = TracerProvider(sampler=ParentBased(ALWAYS_OFF), resource=resource_of(SERVICE))
        provider.add_span_processor(self)
        trace.set_tracer_provider(provider)
        self._export.start()

    async def stop(self) -> None:
        """Export what waits, for a bounded time."""
        await self._export.stop()

    def on_end(self, span: ReadableSpan) -> None:
        """Called by OpenTelemetry for each span that has ended."""
        self._export.put((span,))
