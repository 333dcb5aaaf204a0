"""One create through kube-apiserver with its tracing on is one trace: API server, gateway, workers of all languages.

Each test has a service or an object of its own, so that no span of an earlier test can stand for one of its own.
"""

import asyncio
import json
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.e2e.api_server import ApiServer
from tests.e2e.client import Client, eventually
from tests.e2e.cluster import prepare
from tests.e2e.objects import pod
from tests.e2e.worker_process import WorkerProcess
from tests.integration.process import Lines
from tests.integration.running import policy
from tests.otlp_receiver import otlp_grpc
from tests.workers.commands import EXPORTING, SAMPLES, command

pytestmark = pytest.mark.e2e

COLLECTOR = Path(__file__).parents[2] / "deploy/demo/collector/bin/collector"
CALL = "admission.worker.v1.Worker/Review"


@pytest.fixture(scope="module", params=["receiver", "collector"])
def received(request, tmp_path_factory):
    """The OTLP receiver of all processes of the trace; they export to it, or to OpenTelemetry's collector before it."""
    with otlp_grpc() as (url, receiver):
        if request.param == "receiver":
            receiver.url = url
            yield receiver
        else:
            with collector(url, tmp_path_factory.mktemp("collector")) as receiver.url:
                yield receiver


@contextmanager
def collector(receiver, folder):
    """The collector that deploy/demo builds, which passes on what it gets; its URL."""
    assert COLLECTOR.exists(), f"{COLLECTOR} is not there: build it with `make build-collector`"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "{}:{}".format(*free.getsockname())
    exporter = {"endpoint": receiver.removeprefix("http://"), "tls": {"insecure": True}}
    known = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": address}}}},
        "processors": {"batch": {"timeout": "100ms"}},
        "exporters": {"otlp": exporter},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["otlp"], "processors": ["batch"], "exporters": ["otlp"]}},
        },
    }
    (folder / "collector.yaml").write_text(json.dumps(known))
    process = subprocess.Popen([COLLECTOR, f"--config={folder / 'collector.yaml'}"], stderr=subprocess.PIPE)
    log = Lines(process.stderr)
    try:
        assert log.find(lambda line: "Everything is ready" in line), log.all()
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def api_server(tmp_path_factory, received):
    """kube-apiserver that samples every request."""
    folder = tmp_path_factory.mktemp("traced-api-server")
    tracing = {
        "apiVersion": "apiserver.config.k8s.io/v1beta1",
        "kind": "TracingConfiguration",
        "endpoint": received.url.removeprefix("http://"),
        "samplingRatePerMillion": 1_000_000,
    }
    (folder / "tracing").write_text(json.dumps(tracing))
    server = ApiServer(folder, f"--tracing-config-file={folder / 'tracing'}")
    try:
        asyncio.run(_prepared(server.ready()))
        yield server
    finally:
        server.stop()


async def _prepared(server):
    async with Client(server) as client:
        await prepare(client)


@pytest.fixture(autouse=True)
def exporting(monkeypatch, received):
    """All processes that the tests start export at once, to the receiver."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")


@pytest.fixture
def start_worker(tmp_path, monkeypatch):
    """Start a worker, as a service of this name; gives its target."""
    started = []

    def start(argv, *, service):
        program, *arguments = argv
        with monkeypatch.context() as patch:
            patch.setenv("OTEL_SERVICE_NAME", service)
            # Of the receiver's signals, it has traces only.
            patch.setenv("OTEL_METRICS_EXPORTER", "none")
            patch.setenv("OTEL_LOGS_EXPORTER", "none")
            worker = WorkerProcess(f"unix:{tmp_path}/worker.sock", *arguments, program=(program,))
        started.append(worker)
        return worker.ready().target

    yield start
    for worker in started:
        worker.stop()


@pytest.mark.parametrize("language", EXPORTING)
async def test_a_create_is_one_trace_from_the_api_server_to_the_worker(cluster, received, start_worker, language):
    """The API server's request, the gateway's review and call, the policy's function: each in the one before."""
    service = f"policies-in-{language}"
    target = start_worker(command(EXPORTING, language), service=service)
    await cluster.enforce(workers={"exporting": target}, validating=[policy("traced", worker="exporting")])
    reply = await cluster.create(pod(f"traced-{language}"))
    assert reply.code == 201, reply
    function = await only(received, lambda span: span.service == service)
    assert (function.name, function.kind) == ("admission.worker/traced", Span.SPAN_KIND_SERVER)
    assert function.attributes["admission.verdict"] == "allow"
    review = await review_above(await parent(function, received), received, reply)
    assert review.attributes["admission.name"] == f"traced-{language}"
    assert review.attributes["admission.uid"] == function.attributes["admission.uid"]


@pytest.mark.parametrize("language", SAMPLES)
async def test_without_opentelemetrys_sdk_a_policy_runs_in_the_gateways_call(cluster, received, start_worker, language):
    """What its function finds as the current trace context is the gateway's call, in the API server's trace."""
    target = start_worker([*command(SAMPLES, language), "--conformance"], service=f"samples-in-{language}")
    await cluster.enforce(workers={"echo": target}, validating=[policy("echo", worker="echo", policy="probe-echo")])
    reply = await cluster.create(pod(f"echo-{language}"))
    assert reply.code == 422, reply
    found = cluster.client.server.audited(reply.audit_id)
    (current,) = [text for key, text in found.items() if key.endswith("_traceparent")]
    _, trace_id, span_id, flags = current.split("-")
    call = await only(received, lambda span: (span.trace_id, span.span_id) == (trace_id, span_id))
    assert flags == "01"
    review = await review_above(call, received, reply)
    assert review.attributes["admission.name"] == f"echo-{language}"
    assert f"samples-in-{language}" not in {span.service for span in received.spans}


async def review_above(call, received, reply):
    """The gateway's review that a call of a worker is of, which the API server's request of this reply called."""
    assert (call.name, call.service) == (CALL, "admission-gateway")
    turn = await parent(call, received)
    review = await parent(turn, received)
    assert (turn.service, review.service) == ("admission-gateway", "admission-gateway")
    assert review.kind == Span.SPAN_KIND_SERVER
    chain = [await parent(review, received)]
    while chain[-1].parent_id:
        chain.append(await parent(chain[-1], received))
    assert {span.service for span in chain} == {"apiserver"}
    assert reply.audit_id in [span.attributes.get("audit-id") for span in chain], chain
    return review


async def parent(span, received):
    """The span that another names as its parent, in its trace; waits for it."""
    return await only(received, lambda each: (each.trace_id, each.span_id) == (span.trace_id, span.parent_id))


async def only(received, condition):
    """The one span that the condition is true for; waits for it."""

    async def found():
        return [span for span in received.spans if condition(span)]

    (span,) = await eventually(found)
    return span
