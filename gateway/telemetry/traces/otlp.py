"""OpenTelemetry's OTLP exporters, and our spans as its own. Imported by the exporting thread only.

What the exporters log goes into our one line about a failure: they log each attempt.
"""

import logging
import os
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from gateway.telemetry.traces.partial_success import CollectorAnswer
from gateway.telemetry.traces.settings import GRPC, TraceSettings
from gateway.telemetry.traces.span import Span

_SCOPE: Final = "admission-gateway"
_NANOSECONDS: Final = 1e9
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)


class LastMessage(logging.Handler):
    """Keeps the last message of OpenTelemetry's loggers, which go nowhere else."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._messages: deque[str] = deque(maxlen=1)
        logger = logging.getLogger("opentelemetry")
        logger.propagate = False
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self._messages.append(record.getMessage())

    def take(self) -> str:
        """The last message, on one line; "" if there is none since the last time."""
        return " ".join(self._messages.pop().split()) if self._messages else ""


class SpanSender:
    """An exporter, and what the receiver says of what it gets.

    Args:
        settings: where spans go.

    Raises:
        Exception: whatever OpenTelemetry raises for an endpoint, a certificate or a header that cannot be used.
    """

    def __init__(self, settings: TraceSettings) -> None:
        self._answer = CollectorAnswer(ExportTraceServiceResponse, "rejected_spans")
        self._exporter = self._made(settings)

    def _made(self, settings: TraceSettings) -> SpanExporter:
        endpoint = settings.endpoint or None
        if settings.protocol == GRPC:
            from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415 - one of two
                OTLPSpanExporter,
            )

            exporter = OTLPSpanExporter(endpoint=endpoint)
            self._answer.watch_grpc(exporter)
            return exporter
        from opentelemetry.exporter.otlp.proto.http import trace_exporter  # noqa: PLC0415 - one of two

        return trace_exporter.OTLPSpanExporter(endpoint=endpoint, session=self._answer.session())

    def export(self, spans: Sequence[Span | ReadableSpan], resource: Resource) -> tuple[int, str]:
        """Export spans, with the exporter's own retries and timeout.

        Returns:
            how many the receiver has, and why not all, if it said that.
        """
        scope = InstrumentationScope(_SCOPE, resource.attributes.get("service.version"))  # type: ignore[arg-type]
        made = [_readable(span, resource, scope) if isinstance(span, Span) else span for span in spans]
        self._answer.clear()
        if self._exporter.export(made) is not SpanExportResult.SUCCESS:
            return 0, ""
        rejected = self._answer.rejected(len(made))
        return len(made) - rejected, self._answer.explained(len(made)) if rejected else ""

    def shutdown(self) -> None:
        """Close its connection; an export under way fails."""
        self._exporter.shutdown()


def resource_of(service: str) -> Resource:
    """This process. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come before what is known otherwise."""
    try:
        found = version("admission-gateway")
    except PackageNotFoundError:
        found = ""
    own: Mapping[str, str] = {
        "service.name": service,
        "service.version": found,
        "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
        "telemetry.sdk.language": "python",
        "telemetry.sdk.name": "opentelemetry",
        "telemetry.sdk.version": version("opentelemetry-sdk"),
    }
    return Resource({name: text for name, text in own.items() if text}).merge(OTELResourceDetector().detect())


def _readable(span: Span, resource: Resource, scope: InstrumentationScope) -> ReadableSpan:
    trace_id = int(span.trace_id, 16)
    state = TraceState.from_header([span.tracestate]) if span.tracestate else None
    context = SpanContext(trace_id, span.span_id, is_remote=False, trace_flags=_SAMPLED, trace_state=state)
    parent = None
    if span.parent_id:
        parent = SpanContext(trace_id, span.parent_id, is_remote=span.is_parent_remote, trace_flags=_SAMPLED)
    return ReadableSpan(
        name=span.name,
        context=context,
        parent=parent,
        resource=resource,
        attributes=span.attributes,
        links=[
            Link(SpanContext(int(link.trace_id, 16), link.span_id, is_remote=False, trace_flags=_SAMPLED))
            for link in span.links
        ],
        kind=SpanKind[span.kind.value],
        status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
        start_time=round(span.started * _NANOSECONDS),
        end_time=round(span.ended * _NANOSECONDS),
        instrumentation_scope=scope,
    )
