"""What is measured of a worker's calls: the same for all transports."""

import gc
import json
import weakref
from time import monotonic

import pytest

from gateway.documents.documents import Document
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.reasons import Reason
from gateway.telemetry.labels import Transport
from gateway.telemetry.metrics import Metrics
from gateway.transports.call_meter import CallMeter
from gateway.transports.worker_pool import WorkerPool
from tests.samples import sample_value
from tests.world import policy

POLICY = policy("one")
TRACE = "0af7651916cd43dd8448eb211c80319c"


class Channel:
    """A worker that answers when the test says so."""

    name = "labels"

    def __init__(self):
        self.open = None

    def call(self, call, answered, fits=None):
        del fits
        self.open = OpenCall(call, answered)
        return self.open.cancel

    def answer(self, answer):
        opened, self.open = self.open, None
        opened.answered(opened.call, answer)


class OpenCall:
    """A call at the worker. Its owner knows it as long as it is open; it keeps what it tells."""

    def __init__(self, call, answered):
        self.call = call
        self.answered = answered
        self.canceled = 0

    def cancel(self):
        self.canceled += 1


class Metered:
    """One call at a time, and the metrics."""

    def __init__(self):
        self.metrics = Metrics()
        self.channel = Channel()
        self.meter = CallMeter(self.channel, Transport.GRPC, self.metrics)
        self.answers = []

    def call(self, *, seconds=60.0, traceparent="", **how):
        call = PolicyCall(
            id=1,
            policy=POLICY,
            document=Document(content=b"{}", digest=b""),
            deadline=monotonic() + seconds,
            uid="u",
            cancellable=True,
            traceparent=traceparent,
        )
        return self.meter.call(call, lambda _, answer: self.answers.append(answer), **how)

    def value(self, name, **labels):
        return sample_value(self.metrics, "admission_gateway_" + name, labels)

    def counted(self, result):
        return self.value("worker_calls_total", worker="labels", transport="grpc", result=result)

    @property
    def measured(self):
        of_policy = {"phase": "mutating", "policy": POLICY.qualified_name}
        return (
            self.value("worker_calls_in_flight", worker="labels", transport="grpc"),
            self.value("worker_call_duration_seconds_count", worker="labels", transport="grpc"),
            self.value("policy_call_duration_seconds_count", **of_policy),
        )


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (Allow(), "allow"),
        (Deny(message="no"), "deny"),
        (Failure(reason=Reason.WORKER_TIMEOUT, message="x"), "failure"),
    ],
)
def test_an_answered_call_is_counted_by_its_verdict(answer, result):
    """It is in flight until it is answered, and its duration counts for the worker and for the policy."""
    metered = Metered()
    assert [metered.counted(each) for each in ("allow", "deny", "failure", "canceled")] == [0, 0, 0, 0]
    assert metered.measured == (0, 0, None)
    metered.call()
    assert metered.measured == (1, 0, None)
    metered.channel.answer(answer)
    assert metered.answers == [answer]
    assert metered.counted(result) == 1
    assert metered.measured == (0, 1, 1)


@pytest.mark.parametrize("reason", list(Reason))
def test_a_call_that_reaches_no_worker_has_no_duration(reason):
    """It fails at once: a worker that is away would look fast. It is counted as a failure."""
    metered = Metered()
    metered.call()
    metered.channel.answer(Failure(reason=reason, message="x"))
    assert metered.counted("failure") == 1
    worker_has_answered = reason in {"WORKER_FAILURE", "WORKER_TIMEOUT", "INVALID_RESPONSE", "INVALID_SETTINGS"}
    assert metered.measured == ((0, 1, 1) if worker_has_answered else (0, 0, None))


def test_a_canceled_call_has_no_duration():
    """It would say how long the review waited, and not how long the worker takes."""
    metered = Metered()
    metered.call()()
    assert (metered.counted("canceled"), metered.channel.open.canceled) == (1, 1)
    assert metered.measured == (0, 0, None)


def test_a_call_that_is_canceled_at_its_deadline_is_a_failure():
    """The engine may notice before the transport; else slow policies would look fast."""
    metered = Metered()
    metered.call(seconds=-0.001)()
    assert (metered.counted("failure"), metered.counted("canceled")) == (1, 0)
    assert metered.measured == (0, 1, 1)


def test_a_call_ends_once():
    """A cancellation after the answer changes nothing."""
    metered = Metered()
    cancel = metered.call()
    metered.channel.answer(Allow())
    cancel()
    assert (metered.counted("allow"), metered.counted("canceled")) == (1, 0)
    assert metered.measured == (0, 1, 1)


def test_a_shadow_counts_for_its_worker_alone():
    """The policy was not called."""
    metered = Metered()
    metered.call(of_policy=False)
    metered.channel.answer(Allow())
    assert metered.measured == (0, 1, None)


@pytest.mark.parametrize(("flags", "exemplars"), [("01", 2), ("03", 2), ("00", 0), ("02", 0)])
def test_a_sampled_call_is_an_exemplar(flags, exemplars):
    """Of both durations, with the trace id of the review."""
    metered = Metered()
    metered.call(traceparent=f"00-{TRACE}-00f067aa0ba902b7-{flags}")
    metered.channel.answer(Allow())
    _, text = metered.metrics.exposition(openmetrics=True)
    assert text.decode().count(f'# {{trace_id="{TRACE}"}}') == exemplars
    assert b"trace_id" not in metered.metrics.exposition()[1]


@pytest.mark.parametrize("ends", ["answered", "canceled"])
def test_a_call_that_has_ended_is_freed_at_once(ends):
    """Not by the garbage collector: it would have to run for every few reviews, and documents would wait for it."""
    metered = Metered()
    gc.collect()
    gc.disable()
    try:
        cancel = metered.call()
        measured = weakref.ref(cancel.__self__)
        if ends == "answered":
            metered.channel.answer(Allow())
        else:
            cancel()
        metered.channel.open = None
        del cancel
        assert measured() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("spec", "transport"),
    [
        ({"grpc": {"target": "unix:/nonexistent.sock"}}, "grpc"),
        ({"queue": {"stream": "admission:q", "keyFile": "/nonexistent"}}, "queue"),
        ({"webhook": {"url": "https://w.example.com/"}}, "webhook"),
        ({"hook": {"path": "/nonexistent.sh"}}, "hook"),
    ],
)
async def test_each_transport_is_named(spec, transport):
    """Its series are there from when the worker is used to when it is not."""
    document = {"apiVersion": "admission-gateway.dev/v1alpha1", "kind": "Worker", "metadata": {"name": "w"}}
    known = load([SourceText(name="w.yaml", content=json.dumps(document | {"spec": spec}).encode(), directory="/")])
    metrics = Metrics()
    pool = WorkerPool(events=metrics)
    pool.take(known.workers["w"])
    labels = {"worker": "w", "transport": transport}
    assert sample_value(metrics, "admission_gateway_worker_calls_total", labels | {"result": "allow"}) == 0
    assert sample_value(metrics, "admission_gateway_worker_calls_in_flight", labels) == 0
    await pool.close()
    assert 'worker="w"' not in metrics.exposition()[1].decode()
