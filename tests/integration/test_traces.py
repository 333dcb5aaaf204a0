"""The spans of reviews, at a real OTLP receiver: which there are, how they hang together; and bad receivers."""

import asyncio
from contextlib import ExitStack

import grpc
import pytest
import structlog

from gateway.telemetry.traces.settings import trace_settings
from tests.docs.spans import PREFIX, attributes_of
from tests.integration.client import post
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import ALLOW, always, deny, scripted, status
from tests.otlp_receiver import otlp_grpc, otlp_http
from tests.traffic import recording

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, UNSAMPLED = (f"00-{TRACE}-{PARENT}-{flags}" for flags in ("01", "00"))

VALIDATING = recording("pod-create.1v")
MUTATING = recording("pod-create.0m")

GATEWAY_STAGES = ["admission.read", "admission.decode", "admission.match"]


class Traced:
    """A worker that keeps the trace contexts that it got."""

    def __init__(self, content=ALLOW):
        self.content = content
        self.metadata = []

    async def review(self, request, context):
        sent = dict(context.invocation_metadata())
        self.metadata.append((sent.get("traceparent"), sent.get("tracestate")))
        return self.content


def settings(url="http://127.0.0.1:1", *, environment=None, **flags):
    """Batches go at once."""
    chosen = {"OTEL_BSP_SCHEDULE_DELAY": "20", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"} | (environment or {})
    return trace_settings(chosen, endpoint=url, **flags)


@pytest.fixture
def logged():
    """The gateway's log."""
    with structlog.testing.capture_logs() as captured:
        yield captured


@pytest.fixture
def receiver():
    """A receiver over gRPC. Each span that it gets is in the documentation, with its attributes."""
    with otlp_grpc() as (url, received):
        received.url = url
        yield received
    for span in received.spans:
        assert {name for name in span.attributes if name.startswith(PREFIX)} <= attributes_of(span.name)


def reviewing(target, recorded=VALIDATING, **fields):
    """A configuration with one policy of this worker."""
    return configuration(source(workers={"scripted": target}, **{recorded.phase: [policy("judge", **fields)]}))


async def review(served, recorded=VALIDATING, *headers):
    path = "/mutate" if recorded.phase == "mutating" else "/validate"
    return await served.send(post(recorded.body, f"{path}?timeout=10s", *headers))


@pytest.mark.parametrize("receiving", [otlp_grpc, otlp_http])
async def test_a_sampled_review_is_a_trace_from_the_api_server_to_the_worker(gateway, receiving):
    """The review is a child of the API server's span, the worker's context a child of the call's span."""
    worker = Traced()
    with receiving() as (url, received):
        protocol = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc" if receiving is otlp_grpc else "http/protobuf"}
        async with (
            scripted("judge", review=worker.review) as target,
            gateway(reviewing(target), traces=settings(url, environment=protocol)) as served,
        ):
            answered = await review(served, VALIDATING, ("traceparent", SAMPLED), ("tracestate", "a=1,b=2"))
            assert answered.response["allowed"]
            await until(lambda: served.metric("trace_spans_total", result="exported") > 0)
    (root,) = received.named("POST /validate")
    assert (root.trace_id, root.parent_id, root.service) == (TRACE, PARENT, "admission-gateway")
    assert root.state == "a=1,b=2"
    turn = "admission.policy test/judge.test.example.com"
    assert received.children(root) == [*GATEWAY_STAGES, turn, "admission.compose", "admission.encode"]
    (call,) = received.named("admission.worker.v1.Worker/Review")
    assert received.children(received.named(turn)[0]) == [call.name]
    assert worker.metadata == [(f"00-{TRACE}-{call.span_id}-01", "a=1,b=2")]
    assert call.attributes["rpc.system.name"] == "grpc"
    assert call.attributes["admission.policy"] == "test/judge.test.example.com"
    assert root.attributes["admission.resource"] == "pods"
    assert not any(span.is_error for span in received.spans)


async def test_what_the_api_server_does_not_sample_is_exported_only_if_it_is_denied(gateway, receiver):
    """An allowed review has no spans; a denied one has, and its worker is not sampled."""
    worker = Traced()
    async with (
        scripted("judge", review=worker.review) as target,
        gateway(reviewing(target), traces=settings(receiver.url, ratio=1.0, slow_seconds=60)) as served,
    ):
        await review(served, VALIDATING, ("traceparent", UNSAMPLED))
        worker.content = deny()
        await review(served, VALIDATING, ("traceparent", UNSAMPLED))
        await until(lambda: served.metric("trace_spans_total", result="exported") > 0)
    (root,) = receiver.named("POST /validate")
    assert root.attributes["admission.outcome"] == "denied"
    assert root.attributes["admission.sampled"] is False
    assert not root.is_error
    assert [traceparent[-3:] for traceparent, _ in worker.metadata] == ["-00", "-00"]
    assert all(traceparent[3:35] == TRACE for traceparent, _ in worker.metadata)


@pytest.mark.parametrize(("failure_policy", "outcome"), [("Fail", "failed"), ("Ignore", "allowed")])
async def test_a_failure_is_exported_with_its_reason_code(gateway, receiver, failure_policy, outcome):
    """Ignored or not; nothing of what the worker said is in a span."""
    review_method = status(grpc.StatusCode.INTERNAL, "a secret")
    async with (
        scripted("judge", review=review_method) as target,
        gateway(
            reviewing(target, failurePolicy=failure_policy), traces=settings(receiver.url, ratio=0, slow_seconds=60)
        ) as served,
    ):
        await review(served)
        await until(lambda: served.metric("trace_spans_total", result="exported") > 0)
    (root,) = receiver.named("POST /validate")
    (call,) = receiver.named("admission.worker.v1.Worker/Review")
    assert root.attributes["admission.outcome"] == outcome
    assert call.attributes["error.type"] == call.status == "WORKER_FAILURE"
    assert root.is_error is (failure_policy == "Fail")
    assert "secret" not in repr(receiver.spans)


async def test_a_reviews_span_has_what_conventions_require_and_no_secret_of_its_path(gateway, receiver, tmp_path):
    """OpenTelemetry's attributes of an HTTP server; the path is shown without the secret that lets clients in."""
    secret = "a-secret-in-the-path-of-its-clients"
    (tmp_path / "secrets").write_text(secret)
    async with (
        scripted("judge", review=always(ALLOW)) as target,
        gateway(
            reviewing(target),
            traces=settings(receiver.url, ratio=1.0),
            path_secret_file=tmp_path / "secrets",
        ) as served,
    ):
        answered = await served.send(post(VALIDATING.body, f"/{secret}/validate?timeout=10s"))
        assert answered.response["allowed"]
        await until(lambda: receiver.named("POST /validate"))
    (root,) = receiver.named("POST /validate")
    assert {name: root.attributes[name] for name in root.attributes if not name.startswith(PREFIX)} == {
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "http.route": "/validate",
        "url.path": "/validate",
        "url.scheme": "https",
    }
    assert secret not in repr(receiver.spans)


async def test_a_slow_review_is_exported(gateway, receiver):
    """Whatever the sampler has decided."""
    async with (
        scripted("judge", review=always(ALLOW)) as target,
        gateway(reviewing(target), traces=settings(receiver.url, ratio=0, slow_seconds=0)) as served,
    ):
        assert (await review(served)).response["allowed"]
        await until(lambda: receiver.named("POST /validate"))


async def test_a_cached_verdict_has_a_span_instead_of_a_call(gateway, receiver):
    """The second review finds the verdict in memory, and calls no worker."""
    async with (
        scripted("judge", review=always(ALLOW)) as target,
        gateway(
            reviewing(target, cache={"ttl": "1m"}, inputs=["/object/metadata/labels"]),
            traces=settings(receiver.url, ratio=1.0),
        ) as served,
    ):
        for _ in range(2):
            await review(served)
        await until(lambda: len(receiver.named("POST /validate")) == 2)
    assert len(receiver.named("admission.worker.v1.Worker/Review")) == 1
    (cached,) = receiver.named("admission.cache")
    assert cached.attributes["admission.cache.result"] == "memory"


async def test_a_shared_call_is_linked(gateway, receiver):
    """A review that waits for another's equal call links to that call's span."""
    called, gate = asyncio.Event(), asyncio.Event()

    async def slow(request, context):
        called.set()
        await gate.wait()
        return ALLOW

    async with (
        scripted("judge", review=slow) as target,
        gateway(
            reviewing(target, cache={"ttl": "1m"}, inputs=["/object/metadata/labels"]),
            traces=settings(receiver.url, ratio=1.0),
        ) as served,
    ):
        first = asyncio.create_task(review(served))
        await called.wait()
        second = asyncio.create_task(review(served))
        await until(lambda: served.gateway.front.load.reviews == 2)
        gate.set()
        await asyncio.gather(first, second)
        await until(lambda: len(receiver.named("POST /validate")) == 2)
    (call,) = receiver.named("admission.worker.v1.Worker/Review")
    (shared,) = receiver.named("admission.cache")
    assert shared.attributes["admission.cache.result"] == "shared"
    assert shared.links == [(call.trace_id, call.span_id)]
    assert shared.trace_id != call.trace_id


async def test_prefetched_calls_are_children_of_the_review(gateway, receiver):
    """Each call has a span of its own, whose id its worker got; also a call that no turn used."""
    worker = Traced()
    policies = [policy(name) for name in ("one", "two", "three")]
    async with (
        scripted("one", "two", "three", review=worker.review) as target,
        gateway(
            configuration(source(workers={"scripted": target}, mutating=policies)),
            traces=settings(receiver.url, ratio=1.0),
        ) as served,
    ):
        assert (await review(served, MUTATING)).response["allowed"]
        await until(lambda: receiver.named("POST /mutate"))
    calls = receiver.named("admission.worker.v1.Worker/Review")
    assert {f"00-{call.trace_id}-{call.span_id}-01" for call in calls} == {sent for sent, _ in worker.metadata}
    assert len(calls) == 3


# ------------------------------------------------------------------------------------------------ bad receivers


@pytest.mark.parametrize("receiving", [otlp_grpc, otlp_http])
async def test_a_receiver_that_hangs_delays_nothing_and_does_not_hold_up_the_stop(gateway, receiving):
    """Reviews are answered, what does not fit the queue is dropped, and the stop is bounded."""
    protocol = "grpc" if receiving is otlp_grpc else "http/protobuf"
    environment = {
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_BSP_MAX_QUEUE_SIZE": "10",
        "OTEL_BSP_EXPORT_TIMEOUT": "100",
    }
    with receiving() as (url, received):
        received.refusal = "hang"
        async with (
            scripted("judge", review=always(ALLOW)) as target,
            gateway(reviewing(target), traces=settings(url, environment=environment, ratio=1.0)) as served,
        ):
            for _ in range(5):
                assert (await review(served)).response["allowed"]
            await until(lambda: received.headers)
            for _ in range(5):
                assert (await review(served)).response["allowed"]
            assert served.metric("trace_spans_total", result="dropped") > 0
            assert served.metric("trace_spans_total", result="exported") == 0


@pytest.mark.parametrize(
    ("receiving", "refusal"),
    [(otlp_grpc, grpc.StatusCode.PERMISSION_DENIED), (otlp_http, 403)],
    ids=["grpc", "http"],
)
async def test_a_receiver_that_rejects_is_one_line_in_the_log(gateway, logged, receiving, refusal):
    """Each span that it rejects is counted; the log has one line, and one when it works again."""
    protocol = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc" if receiving is otlp_grpc else "http/protobuf"}
    with receiving() as (url, received):
        received.refusal = refusal
        async with (
            scripted("judge", review=always(ALLOW)) as target,
            gateway(reviewing(target), traces=settings(url, environment=protocol, ratio=1.0)) as served,
        ):
            for number in range(1, 4):
                await review(served)
                await until(lambda number=number: received.batches >= number)
            await until(lambda: served.metric("trace_spans_total", result="failed") >= 3)
            received.refusal = None
            await review(served)
            await until(lambda: served.metric("trace_spans_total", result="exported") > 0)
    events = [line["event"] for line in logged]
    assert events.count("traces cannot be exported; their spans are lost") == 1
    assert events.count("traces are exported again") == 1


@pytest.mark.parametrize(
    ("url", "environment"),
    [
        ("http://127.0.0.1:1", {}),
        ("http://no.such.host.invalid:4317", {}),
        ("http://127.0.0.1:1", {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}),
        ("https://127.0.0.1:1", {"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nonexistent/ca.crt"}),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://no host", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "::::", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}),
    ],
)
async def test_no_receiver_changes_no_answer(gateway, monkeypatch, url, environment):
    """An endpoint that does not exist, or is no URL: reviews are answered, spans are counted as lost."""
    environment |= {"OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_BSP_EXPORT_TIMEOUT": "100"}
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    async with (
        scripted("judge", review=always(ALLOW)) as target,
        gateway(reviewing(target), traces=settings(url, environment=environment, ratio=1.0)) as served,
    ):
        assert (await review(served)).response["allowed"]
        await until(lambda: served.metric("trace_spans_total", result="failed") > 0)


async def test_a_collector_that_comes_later_gets_what_follows(gateway):
    """Nothing is exported while it is away; once it is there, spans arrive."""
    with ExitStack() as stack:
        url, first = stack.enter_context(otlp_http())
        protocol = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        first.refusal = 400
        async with (
            scripted("judge", review=always(ALLOW)) as target,
            gateway(reviewing(target), traces=settings(url, environment=protocol, ratio=1.0)) as served,
        ):
            await review(served)
            await until(lambda: served.metric("trace_spans_total", result="failed") > 0)
            first.refusal = None
            await review(served)
            await until(lambda: first.named("POST /validate"))
