"""Circuit breakers: when they open, what they let through, and when they close. Time is a number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports.grpc.breaker import CircuitBreaker
from gateway.transports.limits import TransportLimits

LIMITS = TransportLimits(
    worker_circuit_calls=4,
    worker_circuit_share=0.5,
    worker_circuit_window_seconds=10.0,
    worker_circuit_open_seconds=5.0,
)


def broken(*, at=100.0):
    """A breaker that calls have opened at a moment."""
    breaker = CircuitBreaker(LIMITS)
    for _ in range(LIMITS.worker_circuit_calls):
        breaker.started(at)
        breaker.ended(at, at, failed=True)
    return breaker


def test_a_new_one_is_closed():
    """An endpoint that has not failed is called."""
    assert CircuitBreaker(LIMITS).allows(0.0)
    assert CircuitBreaker(LIMITS).is_closed


def test_failures_open_it():
    """As many as are judged; then nothing is let through."""
    assert not broken().allows(100.0)
    assert not broken().is_closed


def test_successes_do_not_open_it():
    """Whatever their number."""
    breaker = CircuitBreaker(LIMITS)
    for _ in range(100):
        breaker.ended(0.0, 0.0, failed=False)
    assert breaker.is_closed


def test_few_calls_are_not_judged():
    """One call fewer than worker_circuit_calls says nothing."""
    breaker = CircuitBreaker(LIMITS)
    for _ in range(LIMITS.worker_circuit_calls - 1):
        breaker.ended(0.0, 0.0, failed=True)
    assert breaker.is_closed


def test_fewer_than_the_share_do_not_open_it():
    """Two of five are fewer than half; the third of six is half."""
    breaker = CircuitBreaker(LIMITS)
    for failed in (False, False, False, True, True):
        breaker.ended(0.0, 0.0, failed=failed)
    assert breaker.is_closed
    breaker.ended(0.0, 0.0, failed=True)
    assert not breaker.is_closed


def test_what_is_older_than_the_window_does_not_count():
    """Failures of long ago and failures of now are no rule."""
    breaker = CircuitBreaker(LIMITS)
    for _ in range(3):
        breaker.ended(0.0, 0.0, failed=True)
    for _ in range(3):
        breaker.ended(10.0, 10.0, failed=True)
    assert breaker.is_closed
    breaker.ended(10.0, 10.0, failed=True)
    assert not breaker.is_closed


def test_its_opening_is_reported_once():
    """At the call that opened it."""
    reported = []
    breaker = CircuitBreaker(LIMITS, lambda: reported.append("opened"))
    for _ in range(8):
        breaker.ended(0.0, 0.0, failed=True)
    assert reported == ["opened"]


def test_after_a_while_one_is_let_through_at_a_time():
    """Half-open, a second call is not let through while the probe is under way; it is not closed meanwhile."""
    breaker = broken()
    assert not breaker.allows(104.999)
    assert breaker.allows(105.0)
    breaker.started(105.0)
    assert not breaker.allows(105.0)
    assert not breaker.allows(109.999)
    assert not breaker.is_closed


def test_one_that_never_ends_is_followed_by_another():
    """A probe without an end does not keep it open for ever."""
    breaker = broken()
    breaker.started(105.0)
    assert breaker.allows(110.0)


def test_a_success_closes_it_and_everything_is_forgotten():
    """After a probe that succeeds it takes as many failures to open it as at the beginning."""
    breaker = broken()
    breaker.started(105.0)
    breaker.ended(105.1, 105.0, failed=False)
    for _ in range(LIMITS.worker_circuit_calls - 1):
        breaker.ended(105.2, 105.2, failed=True)
    assert breaker.is_closed


def test_a_probe_that_fails_opens_it_again():
    """For the same while."""
    breaker = broken()
    breaker.started(105.0)
    breaker.ended(106.0, 105.0, failed=True)
    assert not breaker.allows(110.999)
    assert breaker.allows(111.0)


def test_a_probe_that_says_nothing_is_forgotten():
    """And the next call is let through."""
    breaker = broken()
    breaker.started(105.0)
    breaker.ignored(105.0)
    assert breaker.allows(105.1)


@pytest.mark.parametrize("failed", [False, True, None])
def test_what_began_before_it_opened_is_no_probe(failed):
    """How a call ends that was under way when it opened neither closes it, nor opens it anew, nor lets another in."""
    breaker = broken()
    breaker.started(105.0)
    if failed is None:
        breaker.ignored(99.0)
    else:
        breaker.ended(105.5, 99.0, failed=failed)
    assert not breaker.allows(105.6)
    breaker.ended(105.7, 105.0, failed=False)
    assert breaker.is_closed


STEPS = st.tuples(
    st.floats(min_value=0.0, max_value=12.0),
    st.sampled_from(["call", "success", "failure", "forget"]),
)


@pytest.mark.property
@given(st.lists(STEPS, max_size=60))
def test_whatever_happens_it_is_left_alone_and_then_tried(steps):
    """While open it lets nothing through before its time; and when that is over, and a probe has had the same while,
    it always lets one through.
    """
    opened = []
    breaker, now, under_way = CircuitBreaker(LIMITS, lambda: opened.append(True)), 0.0, []
    closes_at = 0.0
    for pause, what in steps:
        now += pause
        if now < closes_at:
            assert not breaker.allows(now)
        if what == "call" and breaker.allows(now):
            breaker.started(now)
            under_way.append(now)
        elif under_way and what == "forget":
            breaker.ignored(under_way.pop(0))
        elif under_way and what != "call":
            seen = len(opened)
            breaker.ended(now, under_way.pop(0), failed=what == "failure")
            if len(opened) > seen:
                closes_at = now + LIMITS.worker_circuit_open_seconds
        assert breaker.allows(max(now, closes_at) + LIMITS.worker_circuit_open_seconds)
