"""Redis' clock is known to half of the shortest round trip, whatever the local clock shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports.queue.clock import RedisClock


def sample(clock, *, at, there, took, share=0.5):
    """Sample TIME: sent at ``at``, at Redis' time ``there``; ``share`` of the round trip ``took`` was the request."""
    answer = there + took * share
    clock.sample(at, at + took, int(answer), int(answer % 1 * 1e6))


@pytest.mark.property
@given(
    trips=st.lists(st.tuples(st.floats(0.0, 0.5), st.floats(0, 1)), min_size=1, max_size=20),
    ahead=st.floats(-1e6, 1e9),
)
def test_it_is_wrong_by_half_of_the_shortest_round_trip_at_most(trips, ahead):
    """The error is at most half of the shortest round trip, however it divides into both ways."""
    clock = RedisClock(lambda: 2000.0)
    for number, (took, share) in enumerate(trips):
        at = 2_000_000.0 + number
        sample(clock, at=at, there=at + ahead, took=took, share=share)
    kept = trips[-8:]
    error = abs(clock.at(3_000_000.0) / 1000 - (3_000_000.0 + ahead))
    assert error <= min(took for took, _ in kept) / 2 + 0.003


def test_a_clock_that_was_set():
    """A sample that contradicts the earlier ones replaces them: another server answers now."""
    clock = RedisClock(lambda: 0.0)
    sample(clock, at=0.0, there=1000.0, took=0.001)
    sample(clock, at=1.0, there=901.0, took=0.2)
    assert abs(clock.at(1.0) - 901_000) <= 100


def test_both_directions_agree():
    """``until`` is the inverse of ``at``."""
    clock = RedisClock(lambda: 5.0)
    sample(clock, at=1.0, there=1_700_000_000.0, took=0.0)
    assert clock.now() == 1_700_000_004_000
    assert abs(clock.until(clock.at(7.25)) - 7.25) < 0.002


def test_times_are_limited():
    """Infinite deadlines become the largest number, negative ones 0."""
    clock = RedisClock(lambda: 0.0)
    sample(clock, at=0.0, there=1000.0, took=0.0)
    assert clock.at(float("inf")) == 2**52
    assert clock.at(-1e12) == 0


def test_there_is_no_time_before_the_first_sample():
    """The clock raises ValueError instead of guessing."""
    clock = RedisClock()
    assert not clock.is_known
    for method in (clock.now, lambda: clock.at(0.0), lambda: clock.until(0)):
        with pytest.raises(ValueError, match="is not known yet"):
            method()
