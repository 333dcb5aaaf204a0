"""The decision log as OTLP logs: over both protocols, to a collector that may be away, slow or rejecting."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
import pytest
from msgspec.structs import replace
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as pb
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as service

from gateway.engine.trace_context import TraceContext
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import FailurePolicy
from gateway.reasons import Reason
from gateway.telemetry.background_writer import WriteError
from gateway.telemetry.decision_document import decision_document, encoded
from gateway.telemetry.labels import Drop
from gateway.telemetry.otlp_logs import OtlpSink
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import always, deny, scripted
from tests.telemetry.test_decision_log import denied
from tests.world import decide
from tests.world import policy as value_policy

pytestmark = pytest.mark.integration

TRACE = "0af7651916cd43dd8448eb211c80319c"


class Received(service.LogsServiceServicer):
    """What a collector got; ``refusal`` is the HTTP status or the gRPC code with which it answers, "hang": none."""

    def __init__(self):
        self.requests = []
        self.headers = {}
        self.refusal = None
        self.closing = threading.Event()

    def Export(self, request, context):  # noqa: N802 - the contract's name
        self.headers = dict(context.invocation_metadata())
        if self.refusal == "hang":
            self.closing.wait(30)
        elif self.refusal is not None:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not today")
        self.requests.append(request)
        return pb.ExportLogsServiceResponse()

    @property
    def records(self):
        scopes = [scope for each in self.requests for of in each.resource_logs for scope in of.scope_logs]
        return [record for scope in scopes for record in scope.log_records]


@contextmanager
def over_grpc():
    received = Received()
    server = grpc.server(ThreadPoolExecutor(2))
    service.add_LogsServiceServicer_to_server(received, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}", received
    finally:
        received.closing.set()
        server.stop(0).wait()


@contextmanager
def over_http():
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            received.headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if received.refusal == "hang":
                received.closing.wait(30)
            elif received.refusal is None and self.path == "/v1/logs":
                received.requests.append(pb.ExportLogsServiceRequest.FromString(body))
            self.send_response(400 if received.refusal else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        received.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


COLLECTORS = {"grpc": over_grpc, "http/protobuf": over_http}


@pytest.fixture(params=COLLECTORS)
def collector(request, monkeypatch):
    """A collector, of which OpenTelemetry's variables tell; without retries that take long."""
    with COLLECTORS[request.param]() as (endpoint, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", request.param)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=one")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "gate")
        yield received


def line(answer, **fields):
    decision, _ = decide([value_policy("p", **fields)], {"p": answer})
    traced = replace(decision, trace=TraceContext(traceparent=f"00-{TRACE}-{'b' * 16}-01"))
    return encoded(decision_document(traced, offset=1_000_000.0)) + b"\n"


def attributes(pairs):
    return {pair.key: pair.value.string_value for pair in pairs}


def test_a_decision_is_a_log_record(collector):
    """With the line as its body, its time, its trace and a severity by its outcome."""
    ignored = Failure(reason=Reason.WORKER_TIMEOUT, message="late")
    lines = [line(Deny(message="no")), line(ignored, failure_policy=FailurePolicy.IGNORE), line(Allow())]
    sink = OtlpSink()
    sink.write(lines)
    sink.close()
    assert collector.headers["x-tenant"] == "one"
    (request,) = collector.requests
    assert attributes(request.resource_logs[0].resource.attributes)["service.name"] == "gate"
    assert [record.body.string_value for record in collector.records] == [each.decode().rstrip() for each in lines]
    assert [record.severity_text for record in collector.records] == ["INFO", "WARN", "INFO"]
    first = collector.records[0]
    assert attributes(first.attributes) == {
        "admission.uid": "u1",
        "admission.phase": "mutating",
        "admission.outcome": "denied",
    }
    assert (first.event_name, first.trace_id.hex()) == ("admission_gateway.decision", TRACE)
    assert first.time_unix_nano == 1_000_100 * 10**9


@pytest.mark.parametrize("refusal", [True, "hang"])
def test_what_the_collector_does_not_take_is_an_error(collector, refusal):
    """It rejects, or does not answer in time; the next batch is tried again."""
    sink = OtlpSink()
    collector.refusal = refusal
    with pytest.raises(WriteError) as raised:
        sink.write([line(Allow())])
    assert (raised.value.reason, raised.value.written) == (Drop.REJECTED, 0)
    assert str(raised.value)
    if refusal != "hang":
        collector.refusal = None
        sink.write([line(Allow())])
        assert len(collector.records) == 1
    sink.close()


def test_an_invalid_variable_is_ignored_with_a_warning(collector, logs, monkeypatch):
    """The variable of all signals holds. (Over gRPC any name is one to resolve; a protocol is ignored alike.)"""
    over_grpc = "grpc" in OtlpSink().name
    name, text = ("PROTOCOL", "http/json") if over_grpc else ("ENDPOINT", "garbage")
    monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_LOGS_{name}", text)
    sink = OtlpSink()
    sink.write([line(Allow())])
    sink.close()
    assert len(collector.records) == 1
    (entry,) = [each for each in logs() if each["message"] == "a setting of the decision log is ignored"]
    assert entry["why"].startswith("OTEL_EXPORTER_OTLP_LOGS_")


async def test_a_gateway_without_its_collector_answers(gateway, collector, monkeypatch):
    """Decisions are lost and counted, and reviews are decided; then the collector is back."""
    collector.refusal = True
    async with scripted("judge", review=always(deny())) as target:
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge")]))
        async with gateway(known, decision_log="otlp") as served:
            await denied(served, 3)
            await until(lambda: served.metric("decisions_dropped_total", output="log", reason="rejected") == 3)
            collector.refusal = None
            await denied(served, 1)
            await until(lambda: collector.records)
    (record,) = collector.records
    assert json.loads(record.body.string_value)["outcome"] == "denied"
