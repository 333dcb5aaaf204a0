"""Backlog and rate of a request stream, and the registry of bridges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports.descriptions import Description
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue.codec import GONE_MS
from gateway.transports.queue.consumer_registry import ConsumerRegistry, RegisteredBridge
from gateway.transports.queue.request_stream import RequestStream

ONE, TWO = (Description(pb.DescribeResponse(version=version)) for version in "12")


def bridge(*, at=0, answered=0, capacity=10, description=ONE, lane="a"):
    return RegisteredBridge(description=description, lane=lane, capacity=capacity, answered=answered, at=at)


def busy(lane, *, seconds, a_second, length=100):
    """Observe busy seconds with so many answers each."""
    for second in range(seconds + 1):
        lane.length = length
        lane.observe({"b": bridge(at=1000 * second, answered=a_second * second)})


def test_a_backlog_that_takes_too_long():
    """100 calls at 10 a second take about ten seconds: too long for 5 s, but not for 11 s."""
    lane = RequestStream()
    busy(lane, seconds=10, a_second=10)
    backlog = lane.backlog(5.0)
    assert backlog.length == 100
    assert 9 < backlog.seconds <= 10
    assert lane.backlog(11.0) is None


def test_the_rate_of_an_idle_minute_does_not_count():
    """After one call a second, a burst of a hundred is not rejected."""
    lane = RequestStream()
    for second in range(10):
        lane.length = 1
        lane.observe({"b": bridge(at=1000 * second, answered=second)})
    lane.unsent = 100
    assert lane.backlog(1.0) is None
    lane.length, lane.unsent = 100, 0
    lane.observe({"b": bridge(at=10_000, answered=10)})
    assert lane.backlog(1.0) is None


def test_calls_within_capacity_are_no_backlog():
    """A call is not rejected while bridges have capacity for it, however slow they are."""
    lane = RequestStream()
    busy(lane, seconds=10, a_second=0, length=10)
    assert lane.backlog(0.1) is None
    lane.unsent = 1
    assert lane.backlog(0.1) is not None


def test_a_moment_without_answers_is_no_rate():
    """A bridge that pauses for three seconds after a burst causes no rejections; one that has stopped does."""
    lane = RequestStream()
    busy(lane, seconds=3, a_second=0)
    assert lane.backlog(5.0) is None
    lane.observe({"b": bridge(at=4000, answered=100)})
    lane.observe({"b": bridge(at=5000, answered=200)})
    assert lane.backlog(5.0) is None
    stopped = RequestStream()
    busy(stopped, seconds=5, a_second=0)
    assert stopped.backlog(5.0) is not None


def test_bridges_that_come_and_go_are_no_answers():
    """The counter of a bridge that restarts or joins does not count as answers."""
    lane = RequestStream()
    busy(lane, seconds=6, a_second=10)
    lane.length = 100
    lane.observe({"b": bridge(at=7000, answered=0), "c": bridge(at=7000, answered=10_000)})
    assert lane.backlog(5.0) is not None


@pytest.mark.property
@given(
    lengths=st.lists(st.integers(0, 200), max_size=20),
    answered=st.lists(st.integers(0, 500), min_size=20, max_size=20),
    left=st.floats(0.001, 60),
)
def test_more_time_never_causes_a_rejection(lengths, answered, left):
    """A call that is accepted with some time left is accepted with more."""
    lane = RequestStream()
    for second, length in enumerate(lengths):
        lane.length = length
        lane.observe({"b": bridge(at=1000 * second, answered=sum(answered[:second]))})
    if lane.backlog(left) is None:
        assert lane.backlog(2 * left) is None


def test_a_late_presence_is_gone():
    """A presence counts for five seconds."""
    registry = ConsumerRegistry()
    assert registry.update({"b": bridge(at=100_000)}, 100_000, 0)
    assert not registry.update({"b": bridge(at=100_000)}, 100_000 + GONE_MS, 0)
    assert registry.live == (ONE,)
    assert registry.update({"b": bridge(at=100_000)}, 100_001 + GONE_MS, 0)
    assert (registry.live, registry.described(), registry.lanes()) == ((), {}, ())


def test_bridges_stay_present_just_after_redis_is_back():
    """After a loss of data bridges count as present for five more seconds."""
    registry = ConsumerRegistry()
    registry.update({"b": bridge(at=100_000)}, 100_000, 0)
    assert not registry.update({}, 200_000, 199_000)
    assert registry.live == (ONE,)
    assert registry.update({}, 199_000 + GONE_MS, 199_000)
    assert registry.live == ()


def test_a_presence_from_the_future_does_not_count():
    """A clock that jumps leaves no bridge present for ever."""
    registry = ConsumerRegistry()
    registry.update({"b": bridge(at=1_000_000)}, 100_000, 0)
    assert registry.live == ()


def test_lanes_are_those_of_the_descriptions_that_fit():
    """A call that was made for one description goes to a lane with a bridge that has it."""
    registry = ConsumerRegistry()
    found = {
        "b": bridge(at=100_000),
        "c": bridge(at=100_000, description=TWO, lane="b"),
        "d": bridge(at=100_000, description=TWO, lane="b"),
    }
    registry.update(found, 100_000, 0)
    assert registry.lanes() == ("a", "b")
    assert registry.lanes(frozenset((ONE,))) == ("a",)
    assert registry.lanes(frozenset((TWO,))) == ("b",)
    assert registry.described() == {ONE: 1, TWO: 2}
    assert set(registry.of("b")) == {"c", "d"}
