"""Circuit breakers: what opens them, what probes them, and what closes them. Time is a number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports.grpc.breaker import PROBE_SECONDS, PROBES, CircuitBreaker
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
        breaker.late(at, at - 5.0)
    return breaker


def test_a_new_one_is_closed():
    """An endpoint that has not failed is called."""
    assert CircuitBreaker(LIMITS).is_closed


def test_silence_opens_it():
    """As many late attempts as are judged, and no answer in the time of any of them."""
    assert not broken().is_closed


@pytest.mark.parametrize("is_verdict", [True, False])
def test_late_attempts_do_not_open_it_while_others_are_answered(is_verdict):
    """An endpoint that answers anything in the time of the late attempt is alive: the object was slow."""
    breaker = CircuitBreaker(LIMITS)
    for moment in range(100, 1000):
        if is_verdict:
            breaker.answered(moment - 1.0, moment - 1.5)
        else:
            breaker.responded(moment - 1.0)
        breaker.late(moment, moment - 5.0)
    assert breaker.is_closed


def test_an_answer_before_the_attempt_excuses_nothing():
    """Silence since then is silence."""
    breaker = CircuitBreaker(LIMITS)
    breaker.answered(94.0, 93.0)
    for _ in range(LIMITS.worker_circuit_calls):
        breaker.late(100.0, 95.0)
    assert not breaker.is_closed


def test_verdicts_of_other_endpoints_open_it():
    """Attempts that failed here, and whose documents were judged elsewhere."""
    breaker = CircuitBreaker(LIMITS)
    for _ in range(LIMITS.worker_circuit_calls):
        breaker.failed(100.0)
    assert not breaker.is_closed


def test_successes_do_not_open_it():
    """Whatever their number."""
    breaker = CircuitBreaker(LIMITS)
    for _ in range(100):
        breaker.answered(0.0, 0.0)
    assert breaker.is_closed


def test_few_calls_are_not_judged():
    """One call fewer than worker_circuit_calls says nothing."""
    breaker = CircuitBreaker(LIMITS)
    for _ in range(LIMITS.worker_circuit_calls - 1):
        breaker.failed(0.0)
    assert breaker.is_closed


def test_fewer_than_the_share_do_not_open_it():
    """Three of seven are fewer than half; the fourth of eight is half. Successes count from the first failure on."""
    breaker = CircuitBreaker(LIMITS)
    breaker.failed(0.0)
    for _ in range(4):
        breaker.answered(0.0, 0.0)
    for _ in range(2):
        breaker.failed(0.0)
    assert breaker.is_closed
    breaker.failed(0.0)
    assert not breaker.is_closed


def test_what_is_older_than_the_window_does_not_count():
    """Failures of long ago and failures of now are no rule."""
    breaker = CircuitBreaker(LIMITS)
    for _ in range(3):
        breaker.failed(0.0)
    for _ in range(3):
        breaker.failed(10.0)
    assert breaker.is_closed
    breaker.failed(10.0)
    assert not breaker.is_closed


def test_its_changes_are_reported_once_each():
    """At the attempt that opened it, and at the verdict that closed it."""
    reported = []
    breaker = CircuitBreaker(LIMITS, reported.append)
    for _ in range(8):
        breaker.failed(0.0)
    breaker.answered(1.0, 0.5)
    breaker.answered(1.0, 0.5)
    assert reported == [True, False]


def test_probes_are_wanted_at_once_and_bounded():
    """The first as soon as it opens, the next a moment later, and no more than a few at a time."""
    breaker = broken()
    now = 100.0
    for _ in range(PROBES):
        assert breaker.wants_probe(now)
        breaker.probe_started(now, now + 5.0)
        assert not breaker.wants_probe(now)
        now += PROBE_SECONDS
    assert not breaker.wants_probe(now)
    breaker.probe_ended()
    assert breaker.wants_probe(now)


def test_probes_that_never_end_are_followed_by_others():
    """What is past its deadline takes no place."""
    breaker = broken()
    for number in range(PROBES):
        breaker.probe_started(100.0 + number, 105.0 + number)
    assert breaker.wants_probe(105.0)


def test_a_closed_one_wants_no_probes():
    """It gets the calls themselves."""
    assert not CircuitBreaker(LIMITS).wants_probe(100.0)


def test_a_verdict_closes_it_and_everything_is_forgotten():
    """After that it takes as many failures to open it as at the beginning."""
    breaker = broken()
    breaker.answered(100.2, 100.1)
    assert breaker.is_closed
    for _ in range(LIMITS.worker_circuit_calls - 1):
        breaker.failed(100.2)
    assert breaker.is_closed


def test_a_failure_that_the_worker_returns_does_not_close_it():
    """It answers, but it does not judge."""
    breaker = broken()
    breaker.responded(100.2)
    assert not breaker.is_closed


def test_what_began_before_it_opened_does_not_close_it():
    """The endpoint may have judged it before it failed."""
    breaker = broken()
    breaker.answered(100.1, 99.9)
    assert not breaker.is_closed


def test_calls_with_side_effects_are_let_through_now_and_then():
    """One each worker_circuit_open_seconds: they have no copies."""
    breaker = broken()
    assert not breaker.lets_through(104.9)
    assert breaker.lets_through(105.0)
    assert not breaker.lets_through(105.0)
    assert breaker.lets_through(110.0)


EVENTS = st.tuples(
    st.floats(min_value=0.0, max_value=6.0),
    st.sampled_from(["late", "failed", "answered", "responded", "probe", "probe ended"]),
    st.floats(min_value=0.0, max_value=6.0),
)


@pytest.mark.property
@given(st.lists(EVENTS, max_size=80))
def test_whatever_happens_it_can_be_probed_and_one_verdict_closes_it(events):
    """Whatever came before, an open circuit wants a probe within the time that the probes under way have, and the
    verdict of a call that starts now closes it.
    """
    breaker, now, probes = CircuitBreaker(LIMITS), 100.0, []
    for pause, what, took in events:
        now += pause
        began = now - took
        match what:
            case "late":
                breaker.late(now, began)
            case "failed":
                breaker.failed(now)
            case "answered":
                breaker.answered(now, began)
            case "responded":
                breaker.responded(now)
            case "probe" if breaker.wants_probe(now):
                breaker.probe_started(now, now + 5.0)
                probes.append(now)
            case "probe ended" if probes:
                probes.pop(0)
                breaker.probe_ended()
        if not breaker.is_closed:
            assert breaker.wants_probe(now + 5.0 + PROBE_SECONDS)
    breaker.answered(now + 1.0, now)
    assert breaker.is_closed


@pytest.mark.property
@given(st.lists(st.tuples(st.floats(min_value=0.0, max_value=4.9), st.integers(0, 30)), max_size=40))
def test_slow_objects_never_open_it_while_others_are_judged(steps):
    """However many attempts are late, if some other call is judged within the timeout of each of them."""
    breaker, now = CircuitBreaker(LIMITS), 100.0
    breaker.answered(now, now)
    for pause, late in steps:
        now += pause
        for _ in range(late):
            breaker.late(now, now - 5.0)
        breaker.answered(now, now - 0.01)
        assert breaker.is_closed
