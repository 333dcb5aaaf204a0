"""Circuits that open: which endpoints are called, and which are not. Connections are played."""

from time import monotonic

import pytest

from gateway.engine.verdicts import Allow, Failure
from gateway.reasons import Reason
from gateway.transports.grpc import retries as retries_module
from gateway.transports.grpc.call_attempt import CallResult
from tests.integration.running import until
from tests.transports.grpc.endpoints import Called, played
from tests.transports.reaching import judge

BROKEN = Failure(reason=Reason.WORKER_UNAVAILABLE, message="broken")
FAILED = Failure(reason=Reason.WORKER_FAILURE, message="could not judge")
LATE = Failure(reason=Reason.WORKER_TIMEOUT, message="late")
WORDS = {CallResult.UNSENT: BROKEN, CallResult.LOST: BROKEN, CallResult.FAILED: FAILED, CallResult.LATE: LATE}


def fail(place, result):
    """The call that is open at a place has no verdict."""
    place.open[0].ended(WORDS[result], result)


def is_closed(endpoints, place, about=None):
    (replica,) = [each for each in endpoints.worker._endpoints.endpoints if each.address == place.address]
    return replica.is_closed((about or judge()).qualified_name)


def lead(endpoints, called, play):
    """Let each attempt of a call go as ``play`` has it, until the call has its answer."""
    while not called.answers:
        (place,) = [place for place in endpoints.made if place.open]
        play(place)


@pytest.mark.parametrize("cancellable", [True, False])
@pytest.mark.parametrize("result", [CallResult.LOST, CallResult.FAILED])
async def test_failures_open_the_circuit(result, cancellable):
    """Of that policy at that address, which is not called any more; the other address and policy are."""
    async with played("a", "b", worker_circuit_calls=4) as endpoints:

        def play(place):
            if place.address == "a":
                fail(place, result)
            else:
                place.open[0].answered(Allow())

        for _ in range(10):
            lead(endpoints, Called(endpoints, cancellable=cancellable), play)
        a, b = endpoints.made
        assert not is_closed(endpoints, a)
        assert is_closed(endpoints, b)
        assert is_closed(endpoints, a, judge("other"))
        assert endpoints.events["circuit_opened"] == 1
        before = len(a.attempts)
        for _ in range(4):
            Called(endpoints)
        assert len(a.attempts) == before


async def test_failures_that_workers_answer_never_open_the_last_circuit():
    """It may be the document: where all addresses fail alike, the last one is called on, and no call fails unasked."""
    async with played("a", "b", worker_circuit_calls=2) as endpoints:
        for _ in range(40):
            called = Called(endpoints)
            lead(endpoints, called, lambda place: fail(place, CallResult.FAILED))
            assert called.answer is FAILED
        assert [is_closed(endpoints, place) for place in endpoints.made].count(True) == 1


async def test_a_failure_that_the_only_endpoint_answers_does_not_open_its_circuit():
    """It is called all the same: nothing is won by not doing so."""
    async with played("a", worker_circuit_calls=1) as endpoints:
        for _ in range(3):
            Called(endpoints)
            fail(endpoints.made[0], CallResult.FAILED)
        assert is_closed(endpoints, endpoints.made[0])
        assert len(endpoints.made[0].attempts) == 3


async def test_what_never_left_says_nothing_of_the_endpoint():
    """No circuit opens for it."""
    async with played("a", worker_circuit_calls=1) as endpoints:
        Called(endpoints)
        fail(endpoints.made[0], CallResult.UNSENT)
        assert is_closed(endpoints, endpoints.made[0])


@pytest.mark.parametrize("seconds", [10.0, 15.0])
@pytest.mark.parametrize("how", ["late", "cancelled"])
async def test_being_late_opens_the_circuit(monkeypatch, how, seconds):
    """Whether the transport or the review notices first; also where the API server waits somewhat less than the policy
    may take.
    """
    about = judge(timeout=seconds)
    async with played("a", worker_circuit_calls=1) as endpoints:
        called = Called(endpoints, about, deadline=(begun := monotonic()) + 10.0)
        monkeypatch.setattr(retries_module, "monotonic", lambda: begun + 10.0)
        if how == "late":
            fail(endpoints.made[0], CallResult.LATE)
        else:
            called.cancel()
        assert not is_closed(endpoints, endpoints.made[0], about)


async def test_an_answer_in_time_is_no_failure(monkeypatch):
    """However little of the time was left."""
    async with played("a", worker_circuit_calls=1) as endpoints:
        Called(endpoints, deadline=(begun := monotonic()) + 10.0)
        monkeypatch.setattr(retries_module, "monotonic", lambda: begun + 9.9)
        endpoints.made[0].open[0].answered(Allow())
        assert is_closed(endpoints, endpoints.made[0])


async def test_a_review_that_has_no_time_left_says_little_of_the_endpoint(monkeypatch):
    """A tenth of the policy's time is not all of it: an endpoint that was called too late is not to blame."""
    about = judge(timeout=10.0)
    async with played("a", worker_circuit_calls=1) as endpoints:
        Called(endpoints, about, deadline=(begun := monotonic()) + 1.0)
        monkeypatch.setattr(retries_module, "monotonic", lambda: begun + 1.0)
        fail(endpoints.made[0], CallResult.LATE)
        assert is_closed(endpoints, endpoints.made[0], about)


async def test_an_early_cancel_reports_nothing():
    """A review that another policy decided is not the endpoint's doing."""
    async with played("a", worker_circuit_calls=1) as endpoints:
        called = Called(endpoints)
        called.cancel()
        assert is_closed(endpoints, endpoints.made[0])


async def test_open_circuits_everywhere_fail_at_once():
    """Waiting would cost every review its time; the failure says what happened."""
    async with played("a", worker_circuit_calls=1) as endpoints:
        Called(endpoints, cancellable=False)
        fail(endpoints.made[0], CallResult.LOST)
        called = Called(endpoints)
        await until(lambda: called.answers)
        assert called.answer.reason is Reason.WORKER_UNAVAILABLE
        assert "the circuit breaker of policy 'judge' is open (for 5 s at a time)" in called.answer.message
        assert Called(endpoints, judge("other")).answers == []
        assert len(endpoints.made[0].attempts) == 2
