"""Calls that wait until their worker may have them: in turn, for a bounded time, and each ends once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.documents.documents import Document
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Allow, Failure
from gateway.reasons import Reason
from gateway.telemetry.labels import Transport
from gateway.telemetry.metrics import Metrics
from gateway.transports.call_meter import CallMeter
from gateway.transports.limits import TransportLimits
from tests.samples import sample_value
from tests.virtual.loop import VirtualLoop, clocks
from tests.world import policy

POLICIES = {name: policy(name) for name in ("one", "other")}
SECONDS = 60.0


class SlowWorker:
    """A channel whose calls end when the test says so, or at their deadline. ``most``: that were open at once."""

    name = "labels"

    def __init__(self, loop):
        self.loop = loop
        self.open = {}
        self.most = 0

    def call(self, call, answered, fits=None):
        del fits
        alarm = self.loop.call_at(call.deadline, self.end, call, Failure(reason=Reason.WORKER_TIMEOUT, message="late"))
        self.open[call.id] = answered, alarm
        self.most = max(self.most, len(self.open))
        return lambda: call.cancellable and self.forget(call)

    def forget(self, call):
        answered, alarm = self.open.pop(call.id)
        alarm.cancel()
        return answered

    def end(self, call, answer):
        self.forget(call)(call, answer)


class Callers:
    """Calls of tenants, and what became of each: the answer, None while it has none."""

    def __init__(self, loop, limit):
        self.loop, self.worker, self.metrics = loop, SlowWorker(loop), Metrics()
        limits = TransportLimits(worker_in_flight=limit)
        self.meter = CallMeter(self.worker, Transport.GRPC, self.metrics, limits=limits)
        self.calls, self.answers, self.cancels = [], [], []

    def call(self, name="one", namespace="a", *, seconds=SECONDS, cancellable=True):
        number = len(self.calls)
        call = PolicyCall(
            id=number,
            policy=POLICIES[name],
            document=Document(content=b"{}", digest=b""),
            deadline=self.loop.time() + seconds,
            uid="u",
            cancellable=cancellable,
            namespace=namespace,
        )
        self.calls.append(call)
        self.answers.append(None)
        self.inside(lambda: self.cancels.append(self.meter.call(call, lambda _, answer: self.answered(number, answer))))
        return number

    def inside(self, step):
        """Do it in the loop."""
        self.loop.call_soon(step)
        self.loop.run_until_idle()

    def cancel(self, number):
        self.inside(self.cancels[number])

    def answered(self, number, answer):
        assert self.answers[number] is None
        self.answers[number] = answer

    def end(self, number):
        self.inside(lambda: self.worker.end(self.calls[number], Allow()))

    @property
    def at_worker(self):
        return sorted(self.worker.open)

    def value(self, name, **labels):
        return sample_value(self.metrics, "admission_gateway_" + name, labels)


@pytest.fixture
def callers():
    """Callers of a worker that may have four open calls, of which three of one tenant."""
    loop = VirtualLoop()
    with clocks(loop):
        yield Callers(loop, 4)
    loop.close()


def test_a_burst_is_judged(callers):
    """Ten calls at once of a worker that may have three of them: each gets its verdict, in the order they came."""
    for _ in range(10):
        callers.call()
    assert callers.at_worker == [0, 1, 2]
    for number in range(10):
        callers.end(number)
        assert callers.at_worker == list(range(number + 1, min(number + 4, 10)))
    assert callers.answers == [Allow()] * 10
    assert callers.value("limit_hits_total", limit="worker_in_flight") is None


def test_a_call_waits_for_a_time_only(callers):
    """Then it fails with who, which limit, what was seen, how long, and what to do; and it is counted."""
    for _ in range(4):
        callers.call()
    callers.loop.run_for(1.9)
    assert callers.answers[3] is None
    callers.loop.run_for(0.2)
    failure = callers.answers[3]
    assert failure.reason is Reason.OVERLOADED
    assert failure.message.startswith("worker 'labels' has 3 of the 4 open calls that worker_in_flight allows")
    assert failure.message.endswith("run more replicas of the worker; the call waited for 2.0 s")
    assert callers.value("limit_hits_total", limit="worker_in_flight") == 1
    assert callers.value("worker_calls_in_flight", worker="labels", transport="grpc") == 3
    callers.end(0)
    assert callers.at_worker == [1, 2]


def test_half_of_the_time_is_left_for_others(callers):
    """The failure comes at half of the call's time, so that a failurePolicy and other policies have the rest."""
    for _ in range(3):
        callers.call()
    late = callers.call(seconds=1.0)
    callers.loop.run_for(0.51)
    assert callers.answers[late].reason is Reason.OVERLOADED


def test_a_tenant_with_many_calls_delays_no_other_one(callers):
    """Places go round between tenants, however many calls one of them has waiting."""
    for _ in range(20):
        callers.call(namespace="greedy")
    other = callers.call(namespace="modest")
    assert other in callers.at_worker
    third, fourth = callers.call(namespace="third"), callers.call(namespace="fourth")
    callers.end(0)
    assert third in callers.at_worker
    callers.end(1)
    callers.end(2)
    assert fourth in callers.at_worker


def test_a_call_that_is_given_up_waits_no_more(callers):
    """It is not sent, and nothing is left of it."""
    for _ in range(5):
        callers.call()
    callers.cancel(3)
    callers.end(0)
    assert callers.at_worker == [1, 2, 4]
    callers.loop.run_for(10.0)
    assert callers.answers[3] is None
    assert callers.value("worker_calls_total", worker="labels", transport="grpc", result="canceled") == 1


def test_a_call_with_side_effects_keeps_its_place_when_it_is_given_up(callers):
    """It goes on at the worker, until its deadline at the latest."""
    for _ in range(3):
        callers.call(cancellable=False, seconds=1.5)
    waiting = callers.call()
    for number in range(3):
        callers.cancel(number)
    callers.loop.run_for(1.4)
    assert waiting not in callers.at_worker
    callers.loop.run_for(0.2)
    assert callers.at_worker == [waiting]


def test_an_error_of_the_channel_costs_one_call(callers, monkeypatch):
    """Its place is free again, whether it was taken at once or after a wait; who waited gets INTERNAL."""
    for _ in range(3):
        callers.call()
    broken, waiting = callers.call(), callers.call()
    with monkeypatch.context() as patched:
        patched.setattr(SlowWorker, "call", lambda *_: 1 / 0)
        callers.end(0)
        assert callers.answers[broken].reason is Reason.INTERNAL
        assert "ZeroDivisionError" in callers.answers[broken].message
        assert callers.answers[waiting].reason is Reason.INTERNAL
        callers.call()  # it raises, as the driver expects
    for _ in range(2):
        callers.call()
    assert len(callers.at_worker) == 3


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["call", "call", "call", "end", "cancel", "wait"]),
        st.sampled_from(["one", "other"]),
        st.sampled_from(["a", "b", ""]),
        st.booleans(),
        st.integers(0, 30),
    ),
    max_size=60,
)


@pytest.mark.property
@given(STEPS, st.integers(1, 6))
def test_every_call_ends_once_and_leaves_nothing(steps, limit):
    """Whatever is called, answered, given up and waited for: never more open than the limit, and no place is lost."""
    loop = VirtualLoop()
    with clocks(loop):
        callers, canceled = Callers(loop, limit), set()
        for what, name, namespace, flag, number in steps:
            if what == "call":
                callers.call(name, namespace, cancellable=flag, seconds=1.0 + number)
            elif what == "end" and callers.at_worker:
                callers.end(callers.at_worker[number % len(callers.at_worker)])
            elif what == "cancel" and callers.cancels:
                canceled.add(number % len(callers.cancels))
                callers.cancel(number % len(callers.cancels))
            elif what == "wait":
                loop.run_for(number / 10)
            assert callers.worker.most <= limit
        loop.run_for(SECONDS)
        assert callers.worker.open == {}
        assert all(answer is not None or number in canceled for number, answer in enumerate(callers.answers))
        assert (callers.meter._limit._open.open, len(callers.meter._limit._queue)) == (0, 0)
        assert callers.value("worker_calls_in_flight", worker="labels", transport="grpc") == 0
    loop.close()
