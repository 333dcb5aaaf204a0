"""The sample worker of the Python SDK, with spans in the gateway's traces: the SDK makes them, this exports them.

Where to, and as which service: OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_SERVICE_NAME.
"""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from admission_worker.samples import worker

if __name__ == "__main__":
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    worker.main()
