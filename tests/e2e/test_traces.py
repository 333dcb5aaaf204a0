"""One create through kube-apiserver with its tracing on is one trace: API server, gateway, workers of all languages."""

import asyncio
import json
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.api_server import ApiServer
from tests.e2e.client import Client, eventually
from tests.e2e.cluster import prepare
from tests.e2e.objects import pod
from tests.e2e.worker_process import WorkerProcess
from tests.integration.process import Lines
from tests.integration.running import policy
from tests.otlp_receiver import otlp_grpc
from tests.workers.commands import SAMPLES, command

pytestmark = pytest.mark.e2e

EXPORTING = Path(__file__).parent / "exporting.py"
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
    """Start a worker; gives its target."""
    started = []

    def start(name, *arguments, service="", **options):
        if service:
            monkeypatch.setenv("OTEL_SERVICE_NAME", service)
        worker = WorkerProcess(f"unix:{tmp_path}/{name}.sock", *map(str, arguments), **options)
        monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
        started.append(worker)
        return worker.ready().target

    yield start
    for worker in started:
        worker.stop()


def reviews(received, name):
    """The gateway's spans of the reviews of an object."""
    return [span for span in received.spans if span.attributes.get("admission.name") == name]


async def test_a_create_is_one_trace_from_the_api_server_to_the_worker(cluster, received, start_worker):
    """The API server's call of the webhook, the gateway's review and call, and the policy's span, each in the last."""
    samples = start_worker("exporting", EXPORTING, service="samples")
    judge = policy("labels", worker="traced", policy="no-privileged")
    await cluster.enforce(workers={"traced": samples}, validating=[judge])
    reply = await cluster.create(pod("traced"))
    assert reply.code == 201, reply

    async def is_complete():
        return bool(received.named("admission.worker/no-privileged"))

    await eventually(is_complete)
    (worker,) = received.named("admission.worker/no-privileged")
    chain = [worker]

    async def is_whole():
        by_id = {span.span_id: span for span in received.spans if span.trace_id == worker.trace_id}
        while parent := by_id.get(chain[-1].parent_id):
            chain.append(parent)
        return chain[-1].service == "apiserver" and not chain[-1].parent_id

    await eventually(is_whole)
    services = list(dict.fromkeys(span.service for span in chain))
    assert services == ["samples", "admission-gateway", "apiserver"], chain
    assert CALL in [span.name for span in chain]
    assert [span.parent_id for span in chain[:-1]] == [span.span_id for span in chain[1:]]


@pytest.mark.parametrize("language", SAMPLES)
async def test_a_policy_in_each_language_runs_in_the_api_servers_trace(cluster, received, start_worker, language):
    """The trace context in the policy's function is that of the API server's trace: the gateway's call, or below it."""
    program, *arguments = _command(language)
    target = start_worker(language, *arguments, "--conformance", program=(program,))
    await cluster.enforce(workers={"echo": target}, validating=[policy("echo", worker="echo", policy="probe-echo")])
    name = f"echo-{language}"
    reply = await cluster.create(pod(name))
    assert reply.code == 422, reply
    found = cluster.client.server.audited(reply.audit_id)
    (current,) = [text for key, text in found.items() if key.endswith("_traceparent")]

    async def is_exported():
        return bool(reviews(received, name)) and any(span.service == "apiserver" for span in received.spans)

    await eventually(is_exported)
    (review,) = reviews(received, name)
    (call,) = [span for span in received.named(CALL) if span.trace_id == review.trace_id]
    assert current == f"00-{call.trace_id}-{call.span_id}-01"


def _command(language):
    """The argv of a sample worker; the test is skipped if it is not built."""
    try:
        return command(SAMPLES, language)
    except AssertionError as missing:
        pytest.skip(str(missing))
