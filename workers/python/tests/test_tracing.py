"""OpenTelemetry: the policy's span belongs to the gateway's trace, in each kind of function."""

import os
import subprocess
import sys
import threading
from contextvars import ContextVar

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, AlwaysRecordSampler, ParentBased, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from admission_worker import Worker, deny, tracing
from workers.python.tests.client import Client, batch, connected, policy_call, worker_pb2

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PROVIDER = "OTEL_PYTHON_TRACER_PROVIDER"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


UNSAMPLED = f"00-{TRACE}-{PARENT}-00"

FOLLOWS = ParentBased(ALWAYS_ON)
"""OpenTelemetry's default sampler."""


def provided(monkeypatch, sampler):
    """Set a provider with this sampler; returns what has the recorded spans."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(sampler=sampler)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter.get_finished_spans


@pytest.fixture
def exported(monkeypatch):
    """The recorded spans of the tests' provider."""
    return provided(monkeypatch, FOLLOWS)


@pytest.fixture
def worker():
    """Policies that deny with their current trace context."""
    made = Worker("test", version="1")

    @made.validating("plain")
    def plain(request):
        return deny(tracing.current().traceparent)

    @made.validating("async")
    async def coroutine(request):
        return deny(tracing.current().traceparent)

    @made.validating("blocking", blocking=True)
    def blocking(request):
        assert threading.current_thread() is not threading.main_thread()
        return deny(tracing.current().traceparent)

    @made.validating("raises")
    def raises(request):
        message = "a secret"
        raise ValueError(message)

    return made


async def _review(client, one, traceparent, tracestate=""):
    request = worker_pb2.ReviewRequest(call=one).SerializeToString()
    call = client.channel.unary_unary("/admission.worker.v1.Worker/Review", None, worker_pb2.ReviewResponse.FromString)
    return (await call(request, metadata=(("traceparent", traceparent), ("tracestate", tracestate)))).outcome


@pytest.mark.parametrize("policy", ["plain", "async", "blocking"])
async def test_the_span_is_a_child_of_the_gateways_on_both_calls(worker, exported, policy):
    """On Review the parent is metadata, on the stream a field; the span is current while the function runs."""
    async with connected(worker) as client:
        unary = await _review(client, policy_call(policy, uid="u-1"), TRACEPARENT, "a=1,b=2")
        calls = client.stream()
        await calls.send(batch(policy_call(policy, uid="u-1", traceparent=TRACEPARENT, tracestate="a=1,b=2")))
        streamed = (await calls.rest())[1]
    spans = exported()
    assert [span.name for span in spans] == [f"admission.worker/{policy}"] * 2
    for span, outcome in zip(spans, (unary, streamed), strict=True):
        assert f"{span.parent.span_id:016x}" == PARENT
        assert span.context.trace_state.to_header() == "a=1,b=2"
        assert outcome.deny.message == f"00-{TRACE}-{span.context.span_id:016x}-01"
        assert span.attributes == {
            "admission.policy": policy,
            "admission.uid": "u-1",
            "admission.verdict": "deny",
        }


async def test_what_a_policy_raises_is_not_in_the_span(worker, exported):
    """The span of a policy that raises is an error without the exception's text."""
    async with connected(worker) as client:
        await _review(client, policy_call("raises"), TRACEPARENT)
    (span,) = exported()
    assert span.attributes["admission.verdict"] == "failure"
    assert span.status.status_code is trace.StatusCode.ERROR
    assert "secret" not in span.to_json()
    assert span.events == ()


@pytest.mark.parametrize("wrong", ["", "garbage", "00-0-0-00", TRACEPARENT.upper() + "-x"])
async def test_a_traceparent_that_cannot_be_read_begins_a_trace(worker, exported, wrong):
    """An invalid traceparent is ignored, and the verdict is the same."""
    async with connected(worker) as client:
        calls = client.stream()
        await calls.send(batch(policy_call("plain", traceparent=wrong)))
        outcome = (await calls.rest())[1]
    (span,) = exported()
    assert span.parent is None
    assert outcome.deny.message


async def test_without_a_provider_the_gateways_trace_is_current(worker):
    """With only the API installed the policy has the gateway's trace context."""
    async with connected(worker) as client:
        assert (await _review(client, policy_call("async"), TRACEPARENT)).deny.message == TRACEPARENT
        assert (await client.review(policy_call("async"))).deny.message == ""


@pytest.mark.parametrize("is_set_up", [False, True], ids=["no provider", "provider"])
async def test_a_call_that_is_not_sampled_costs_no_span(worker, monkeypatch, is_set_up):
    """Its headers are not read, and no tracer is asked; most calls are like that where traces are on."""
    if is_set_up:
        provided(monkeypatch, FOLLOWS)
    for owner, name in ((TraceContextTextMapPropagator, "extract"), (trace, "get_tracer")):
        monkeypatch.setattr(owner, name, lambda *_, name=name, **__: pytest.fail(name))

    @worker.validating("judge")
    def judge(request):
        return deny("judged")

    async with connected(worker) as client:
        assert (await _review(client, policy_call("judge"), UNSAMPLED)).deny.message == "judged"


@pytest.mark.parametrize("policy", ["plain", "async", "blocking"])
@pytest.mark.parametrize("is_set_up", [False, True], ids=["no provider", "provider"])
async def test_what_the_gateway_has_not_sampled_continues_its_trace(worker, monkeypatch, is_set_up, policy):
    """The gateway's context is the current one, with its tracestate; spans inside it are not sampled either."""
    finished = provided(monkeypatch, FOLLOWS) if is_set_up else tuple
    inside = []

    def look():
        with trace.get_tracer("test").start_as_current_span("inside") as span:
            found = span.get_span_context()
            inside.append((f"{found.trace_id:032x}", int(found.trace_flags), found.trace_state.to_header()))
        return deny(repr(tuple(tracing.current())))

    async def look_later(request):
        return look()

    worker.validating("looks-plain")(lambda _request: look())
    worker.validating("looks-async")(look_later)
    worker.validating("looks-blocking", blocking=True)(lambda _request: look())
    async with connected(worker) as client:
        outcome = await _review(client, policy_call(f"looks-{policy}"), UNSAMPLED, "a=1,b=2")
    assert outcome.deny.message == repr((UNSAMPLED, "a=1,b=2"))
    assert inside == [(TRACE, 0, "a=1,b=2")]
    assert finished() == ()


@pytest.mark.parametrize(
    ("sampler", "is_recorded"),
    [
        (ParentBased(ALWAYS_OFF), False),
        (ParentBased(TraceIdRatioBased(1)), False),
        (ParentBased(ALWAYS_OFF, remote_parent_not_sampled=ALWAYS_ON), True),
        (TraceIdRatioBased(1), True),
        (AlwaysRecordSampler(ALWAYS_OFF), True),
        (ALWAYS_ON, True),
    ],
    ids=lambda value: value.get_description() if hasattr(value, "get_description") else None,
)
async def test_the_workers_sampler_decides_unless_it_follows_the_gateway(worker, monkeypatch, sampler, is_recorded):
    """A sampler that ignores the parent gets every call: the author wanted these spans."""
    recording = []

    @worker.validating("judge")
    def judge(request):
        recording.append(trace.get_current_span().is_recording())
        return deny("judged")

    provided(monkeypatch, sampler)
    async with connected(worker) as client:
        await _review(client, policy_call("judge"), UNSAMPLED)
    assert recording == [is_recorded]


def test_the_current_context_is_the_callers_again_after_the_call():
    """Also after an exception; and its repr names what was sent."""
    sent = tracing.TraceContext(UNSAMPLED)
    before = trace.get_current_span()
    shown = []

    def judge():
        with tracing.span("p", "u", sent):
            shown.append(repr(trace.get_current_span()))
            raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        judge()
    assert trace.get_current_span() is before
    assert f"0x{TRACE}" in shown[0]


WITHOUT = """
import sys
sys.modules["opentelemetry"] = None
from admission_worker import Worker, deny, tracing
sent = tracing.TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
with tracing.span("p", "u", sent) as verdict:
    verdict.record("deny")
    print(tracing.current() == sent)
"""


def test_a_worker_runs_without_opentelemetry():
    """A worker without OpenTelemetry starts and answers, and has the gateway's trace context."""
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


UNTRACED = """
import sys
from admission_worker import Worker, deny, tracing
for traceparent in ("", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"):
    with tracing.span("p", "u", tracing.TraceContext(traceparent)) as verdict:
        verdict.record("deny")
    print("opentelemetry" in sys.modules)
"""


@pytest.mark.parametrize(
    ("provider", "imported"), [({}, "False\nFalse\n"), ({PROVIDER: "sdk_tracer_provider"}, "True\nTrue\n")]
)
def test_opentelemetry_is_imported_for_a_provider_only(provider, imported):
    """Without the import no function can ask for a span; and the import takes a tenth of the start."""
    env = {name: text for name, text in os.environ.items() if not name.startswith("OTEL_")} | provider
    done = subprocess.run([sys.executable, "-c", UNTRACED], capture_output=True, text=True, check=True, env=env)
    assert done.stdout == imported


async def test_each_call_has_its_own_context():
    """Each call runs in its own context, in a thread too."""
    worker, mark = Worker("test", version="1"), ContextVar("mark", default="clean")

    def judge(request):
        found = mark.get()
        mark.set("dirty")
        return deny(found)

    async def judge_later(request):
        return judge(request)

    worker.validating("plain")(judge)
    worker.validating("async")(judge_later)
    worker.validating("blocking", blocking=True)(judge)
    policies = ("plain", "async", "blocking")
    async with connected(worker) as client:
        calls = client.stream()
        await calls.send(batch(*(policy_call(policy) for policy in policies * 3)))
        assert {outcome.deny.message for outcome in (await calls.rest()).values()} == {"clean"}
        assert {(await Client(client.channel).review(policy_call(policy))).deny.message for policy in policies * 2} == {
            "clean"
        }
