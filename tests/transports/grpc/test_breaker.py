"""Circuit breakers: when they open, whom they let through, and when they close. Time is a number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports.grpc.breaker import Call, Circuit, CircuitBreaker
from gateway.transports.limits import TransportLimits

LIMITS = TransportLimits(
    worker_circuit_calls=4,
    worker_circuit_share=0.5,
    worker_circuit_window_seconds=10.0,
    worker_circuit_open_seconds=5.0,
)


def broken(call=Call.LOST, *, at=100.0):
    """A breaker that these calls have opened at a moment."""
    breaker = CircuitBreaker(LIMITS)
    for _ in range(LIMITS.worker_circuit_calls):
        breaker.entered(at)
        breaker.ended(call, at, at)
    return breaker


def test_a_new_one_is_closed():
    """Whoever has not failed is asked."""
    assert CircuitBreaker(LIMITS).state(0.0) is Circuit.CLOSED


@pytest.mark.parametrize(
    ("call", "circuit"), [(Call.FAILED, Circuit.SOFT), (Call.LOST, Circuit.FIRM), (Call.SLOW, Circuit.FIRM)]
)
def test_it_opens_as_firmly_as_it_costs_time(call, circuit):
    """Failures said in good time open it softly; lost and slow calls, which cost reviews their time, firmly."""
    assert broken(call).state(100.0) is circuit


def test_successes_do_not_open_it():
    """Whatever their number."""
    assert broken(Call.SUCCEEDED).state(100.0) is Circuit.CLOSED


def test_few_calls_are_not_judged():
    """One call fewer than worker_circuit_calls says nothing."""
    breaker = CircuitBreaker(LIMITS)
    for _ in range(LIMITS.worker_circuit_calls - 1):
        breaker.ended(Call.LOST, 0.0, 0.0)
    assert breaker.state(0.0) is Circuit.CLOSED


def test_fewer_than_the_share_do_not_open_it():
    """Two of five are fewer than half; the third of six is half."""
    breaker = CircuitBreaker(LIMITS)
    for call in (Call.SUCCEEDED, Call.SUCCEEDED, Call.SUCCEEDED, Call.LOST, Call.LOST):
        breaker.ended(call, 0.0, 0.0)
    assert breaker.state(0.0) is Circuit.CLOSED
    breaker.ended(Call.LOST, 0.0, 0.0)
    assert breaker.state(0.0) is Circuit.FIRM


def test_failed_and_lost_ones_together_open_it_softly():
    """Where lost and slow ones alone are too few, useless ones count with them."""
    breaker = CircuitBreaker(LIMITS)
    for call in (Call.SUCCEEDED, Call.SUCCEEDED, Call.LOST, Call.FAILED):
        breaker.ended(call, 0.0, 0.0)
    assert breaker.state(0.0) is Circuit.SOFT


def test_what_is_older_than_the_window_does_not_count():
    """Lost calls of long ago and lost calls of now are no rule."""
    breaker = CircuitBreaker(LIMITS)
    for _ in range(3):
        breaker.ended(Call.LOST, 0.0, 0.0)
    for _ in range(3):
        breaker.ended(Call.LOST, 10.0, 10.0)
    assert breaker.state(10.0) is Circuit.CLOSED
    breaker.ended(Call.LOST, 10.0, 10.0)
    assert breaker.state(10.0) is Circuit.FIRM


def test_its_opening_is_told_once():
    """Whoever listens is told how it opened, at the call that opened it."""
    told = []
    breaker = CircuitBreaker(LIMITS, told.append)
    for _ in range(8):
        breaker.ended(Call.SLOW, 0.0, 0.0)
    assert told == [Circuit.FIRM]


def test_after_a_while_one_is_let_through_at_a_time():
    """Half open, a second ask is not let through while the first one is under way."""
    breaker = broken()
    assert breaker.state(104.999) is Circuit.FIRM
    assert breaker.state(105.0) is Circuit.CLOSED
    breaker.entered(105.0)
    assert breaker.state(105.0) is Circuit.FIRM
    assert breaker.state(109.999) is Circuit.FIRM


def test_one_that_never_ends_is_followed_by_another():
    """A trial that nobody hears of again does not keep it open for ever."""
    breaker = broken()
    breaker.entered(105.0)
    assert breaker.state(110.0) is Circuit.CLOSED


def test_a_success_closes_it_and_everything_is_forgotten():
    """After a trial in good time it takes as many failures to open it as at the beginning."""
    breaker = broken()
    breaker.entered(105.0)
    breaker.ended(Call.SUCCEEDED, 105.1, 105.0)
    for _ in range(LIMITS.worker_circuit_calls - 1):
        breaker.ended(Call.LOST, 105.2, 105.2)
    assert breaker.state(105.2) is Circuit.CLOSED


@pytest.mark.parametrize(
    ("call", "circuit"), [(Call.FAILED, Circuit.SOFT), (Call.LOST, Circuit.FIRM), (Call.SLOW, Circuit.FIRM)]
)
def test_a_trial_that_goes_wrong_opens_it_again(call, circuit):
    """As firmly as that one went wrong, and for the same while."""
    breaker = broken()
    breaker.entered(105.0)
    breaker.ended(call, 106.0, 105.0)
    assert breaker.state(110.999) is circuit
    assert breaker.state(111.0) is Circuit.CLOSED


def test_a_trial_that_nobody_waited_for_says_nothing():
    """It is forgotten, and the next ask is let through."""
    breaker = broken()
    breaker.entered(105.0)
    breaker.forgotten(105.0)
    assert breaker.state(105.1) is Circuit.CLOSED


@pytest.mark.parametrize("call", [Call.SUCCEEDED, Call.SLOW, None])
def test_what_began_before_it_opened_is_no_trial(call):
    """How a call ends that was under way when it opened neither closes it, nor opens it anew, nor lets another in."""
    breaker = broken()
    breaker.entered(105.0)
    if call is None:
        breaker.forgotten(99.0)
    else:
        breaker.ended(call, 105.5, 99.0)
    assert breaker.state(105.6) is Circuit.FIRM
    breaker.ended(Call.SUCCEEDED, 105.7, 105.0)
    assert breaker.state(105.7) is Circuit.CLOSED


def test_who_goes_there_while_it_is_softly_open_does_not_delay_the_trial():
    """Asks that have nowhere better to go are none of its trials: after the while the next one is let through."""
    breaker = broken(Call.FAILED)
    breaker.entered(104.9)
    breaker.ended(Call.FAILED, 104.95, 104.9)
    assert breaker.state(105.0) is Circuit.CLOSED


STEPS = st.tuples(
    st.floats(min_value=0.0, max_value=12.0),
    st.sampled_from(["ask", "success", "failure", "loss", "slow", "forget"]),
)


@pytest.mark.property
@given(st.lists(STEPS, max_size=60))
def test_whatever_happens_it_is_left_alone_and_then_tried(steps):
    """While open it lets nobody through before its time; and when that is over, and a trial has had the same while,
    it always lets one through.
    """
    opened = []
    breaker, now, under_way = CircuitBreaker(LIMITS, opened.append), 0.0, []
    closes_at = 0.0
    calls = {"success": Call.SUCCEEDED, "failure": Call.FAILED, "loss": Call.LOST, "slow": Call.SLOW}
    for pause, what in steps:
        now += pause
        if now < closes_at:
            assert breaker.state(now) is opened[-1]
        if what == "ask" and breaker.state(now) is Circuit.CLOSED:
            breaker.entered(now)
            under_way.append(now)
        elif under_way and what == "forget":
            breaker.forgotten(under_way.pop(0))
        elif under_way and what != "ask":
            seen = len(opened)
            breaker.ended(calls[what], now, under_way.pop(0))
            if len(opened) > seen:
                closes_at = now + LIMITS.worker_circuit_open_seconds
        assert breaker.state(max(now, closes_at) + LIMITS.worker_circuit_open_seconds) is Circuit.CLOSED
