"""A worker that exports its traces, in each language, set up as its SDK's README shows."""

import re

import grpc
import pytest

from gateway.transports.proto.admission.worker.v1 import worker_pb2
from tests.docs.pages import pages
from tests.e2e.worker_process import WorkerProcess
from tests.otlp_receiver import otlp_grpc
from tests.workers.commands import EXPORTING, ROOT, command, languages

SOURCES = {
    "python": "tests/e2e/exporting.py",
    "go": "workers/go/examples/exporting/main.go",
    "node": "workers/node/examples/exporting.js",
    "rust": "workers/rust/examples/exporting.rs",
    "java": "workers/java/exporting/src/main/java/dev/admissiongateway/exporting/Exporting.java",
}

NEVER = str(24 * 60 * 60 * 1000)
"""Milliseconds between two batches of spans: no test takes a day."""

EXPORTER = re.compile(
    r"SpanExporter\(|SpanExporter::|TraceExporter\(|otlptracegrpc\.New|AutoConfiguredOpenTelemetrySdk"
)

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def stripped(text):
    """The lines of a text without their indents."""
    return "\n".join(line.strip() for line in text.splitlines())


@pytest.mark.parametrize(("language", "source"), SOURCES.items())
def test_the_readme_shows_the_program_that_is_tested(language, source):
    """The one block that sets up an exporter is a part of the program, line by line."""
    of_readme = pages()[f"workers/{language}/README.md"].blocks()
    (shown,) = [block.text for block in of_readme if EXPORTER.search(block.text)]
    assert stripped(shown) in stripped((ROOT / source).read_text())


@pytest.mark.integration
@pytest.mark.parametrize("language", languages(EXPORTING))
def test_a_worker_that_stops_exports_its_last_spans(language, tmp_path, monkeypatch):
    """SIGTERM ends the process before a batch is due; the span of its only call is not lost, and names its parent."""
    program, *arguments = command(EXPORTING, language)
    with otlp_grpc() as (url, receiver):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", NEVER)
        monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
        monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
        monkeypatch.setenv("OTEL_SERVICE_NAME", language)
        worker = WorkerProcess(f"unix:{tmp_path}/worker.sock", *arguments, program=(program,))
        try:
            reviewed(worker.ready().target)
            assert receiver.spans == []
            assert worker.terminate() == 0
        finally:
            worker.stop()
    (span,) = receiver.spans
    assert (span.service, span.name) == (language, "admission.worker/traced")
    assert f"00-{span.trace_id}-{span.parent_id}-01" == PARENT


def reviewed(target):
    """Have the policy of the worker judge one document, which it allows."""
    call = worker_pb2.PolicyCall(policy="traced", phase=worker_pb2.PHASE_VALIDATING, settings=b"{}", document=b"{}")
    # "Rust's h2 rejects" a socket's path: workers/README.md.
    with grpc.insecure_channel(target, [("grpc.default_authority", "localhost")]) as channel:
        review = channel.unary_unary(
            "/admission.worker.v1.Worker/Review",
            worker_pb2.ReviewRequest.SerializeToString,
            worker_pb2.ReviewResponse.FromString,
        )
        reply = review(worker_pb2.ReviewRequest(call=call), metadata=[("traceparent", PARENT)], wait_for_ready=True)
    assert reply.outcome.HasField("allow"), reply
