"""A worker that exports its traces where OpenTelemetry's environment variables say, as the SDK's README shows."""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from admission_worker import Worker

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)

worker = Worker("exporting", version="1.0.0")


@worker.validating("traced")
def traced(request):
    """Allows."""


worker.main()
