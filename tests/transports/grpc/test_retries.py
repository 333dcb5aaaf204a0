"""One call: its first endpoint, its retries, and which verdict counts. The endpoints are scripted."""

import asyncio
from time import monotonic

import pytest

from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.reasons import Reason
from gateway.transports.grpc import retries as retries_module
from gateway.transports.grpc import worker as worker_module
from gateway.transports.grpc.call_attempt import CallResult
from gateway.transports.grpc.connection import State
from gateway.transports.grpc.retries import MAX_SENT, MAX_UNSENT
from gateway.transports.grpc.retry_budget import RESERVE
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import until
from tests.transports.grpc.endpoints import Called, played

BROKEN = Failure(reason=Reason.WORKER_UNAVAILABLE, message="broken")
FAILED = Failure(reason=Reason.WORKER_FAILURE, message="could not judge")
LATE = Failure(reason=Reason.WORKER_TIMEOUT, message="late")
WORDS = {CallResult.UNSENT: BROKEN, CallResult.LOST: BROKEN, CallResult.FAILED: FAILED, CallResult.LATE: LATE}

DENIED = Deny(message="no", code=403, reason="Forbidden")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A pause that takes one turn of the loop."""
    monkeypatch.setattr(retries_module, "SAME_CONNECTION_SECONDS", 0.0)


async def turn():
    """What is to happen next happens."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def end(attempt, result):
    attempt.ended(WORDS[result], result)


def first(endpoints):
    """Who was called first, and that attempt."""
    ((place, attempt),) = endpoints.attempts()
    return place, attempt


def second(endpoints, before):
    """Who was called after that, and that attempt."""
    ((place, attempt),) = [each for each in endpoints.attempts() if each[1] is not before]
    return place, attempt


def open_attempt(endpoints):
    """The one attempt that is open."""
    (attempt,) = [attempt for place in endpoints.made for attempt in place.open]
    return attempt


def lead(endpoints, called, play):
    """Let each attempt of a call go as ``play`` has it, until the call has its answer."""
    while not called.answers:
        attempt = open_attempt(endpoints)
        (place,) = [place for place, each in endpoints.attempts() if each is attempt]
        play(place, attempt)


# ----------------------------------------------------------------------------------------------------- again


@pytest.mark.parametrize("cancellable", [True, False])
@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("result", list(CallResult))
async def test_who_may_be_called_again(result, replicas, cancellable):
    """The table: after each result, with and without side effects, alone or among replicas."""
    async with played(*"abc"[:replicas]) as endpoints:
        called = Called(endpoints, cancellable=cancellable)
        place, attempt = first(endpoints)
        end(attempt, result)
        await turn()
        again = len(endpoints.attempts()) - 1
        expected = {
            CallResult.UNSENT: True,
            CallResult.LOST: cancellable,
            CallResult.FAILED: cancellable and replicas > 1,
            CallResult.LATE: False,
        }[result]
        assert again == expected
        if not expected:
            assert called.answer is WORDS[result]
            return
        assert called.answers == []
        place_again, attempt_again = second(endpoints, attempt)
        if result is not CallResult.UNSENT:
            assert (place_again is place) == (replicas == 1)
        attempt_again.answered(DENIED)
        assert called.answer is DENIED


@pytest.mark.parametrize("result", [CallResult.LOST, CallResult.FAILED])
async def test_an_call_is_sent_twice_at_most(result):
    """One that kills its worker does not go on to kill all of them."""
    async with played(*"abcd") as endpoints:
        called = Called(endpoints)
        _, attempt = first(endpoints)
        end(attempt, result)
        _, again = second(endpoints, attempt)
        end(again, result)
        assert len(endpoints.attempts()) == MAX_SENT
        assert called.answer is WORDS[result]


async def test_what_never_left_does_not_count_as_sent():
    """It is put again, a few times; then the worker is taken to be away."""
    async with played("a", "b") as endpoints:
        called = Called(endpoints)
        for _ in range(MAX_UNSENT):
            end(open_attempt(endpoints), CallResult.UNSENT)
        assert called.answers == []
        end(open_attempt(endpoints), CallResult.UNSENT)
        assert called.answer.reason is Reason.WORKER_UNAVAILABLE
        assert len(endpoints.attempts()) == MAX_UNSENT + 1


async def test_side_effects_are_sent_again_only_if_they_never_left():
    """Then once more, at any endpoint; after that the result is unknown, and they are not."""
    async with played("a", "b") as endpoints:
        called = Called(endpoints, cancellable=False)
        _, attempt = first(endpoints)
        end(attempt, CallResult.UNSENT)
        _, again = second(endpoints, attempt)
        end(again, CallResult.LOST)
        assert len(endpoints.attempts()) == 2
        assert called.answer is BROKEN


async def test_the_calls_of_a_broken_stream_are_retried_alone():
    """At the next endpoint as well: a call that broke the stream breaks no other call's."""
    for replicas in (1, 2):
        async with played(*"ab"[:replicas]) as endpoints:
            Called(endpoints)
            _, attempt = first(endpoints)
            end(attempt, CallResult.LOST)
            await turn()
            place, again = second(endpoints, attempt)
            assert place.unary == [again]


async def test_a_call_is_not_retried_on_a_connection_that_turns_out_to_be_lost():
    """It waits for the next one, as if it had never been retried."""
    async with played("a", is_supervised=True) as endpoints:
        called = Called(endpoints)
        place, attempt = first(endpoints)
        end(attempt, CallResult.LOST)
        lose(endpoints, place)
        await turn()
        assert (place.open, called.answers) == ([], [])
        place.state = State.READY
        endpoints.worker._update()
        second(endpoints, attempt)[1].answered(DENIED)
        assert called.answer is DENIED


async def test_a_call_that_is_cancelled_before_its_retry_is_not_retried():
    """Nothing is sent for it."""
    async with played("a") as endpoints:
        called = Called(endpoints)
        _, attempt = first(endpoints)
        end(attempt, CallResult.LOST)
        called.cancel()
        await turn()
        assert len(endpoints.attempts()) == 1


async def test_it_keeps_its_call_of_its_own_when_it_has_to_wait():
    """If all connections were lost together, it is put to the next one as a call as well."""
    async with played("a") as endpoints:
        Called(endpoints)
        place, attempt = first(endpoints)
        place.is_serving = False
        place.state = type(place.state).CONNECTING
        endpoints.worker._update()
        end(attempt, CallResult.LOST)
        assert len(endpoints.attempts()) == 1
        place.is_serving, place.state = True, type(place.state).READY
        endpoints.worker._update()
        _, again = second(endpoints, attempt)
        assert place.unary == [again]


def lose(endpoints, place):
    """The connection is lost, and its address refuses connections."""
    place.state, place.why = State.CONNECTING, "refused"
    endpoints.worker._update()


async def test_calls_wait_for_a_worker_that_is_started_again():
    """Those that were lost with it, and new ones: they are sent as soon as it can be called."""
    async with played("a", is_supervised=True) as endpoints:
        lost = Called(endpoints)
        place, attempt = first(endpoints)
        lose(endpoints, place)
        end(attempt, CallResult.LOST)
        new = Called(endpoints)
        await asyncio.sleep(0)
        assert (lost.answers, new.answers, place.open) == ([], [], [])
        place.state = State.READY
        endpoints.worker._update()
        for each in tuple(place.open):
            each.answered(DENIED)
        assert (lost.answer, new.answer) == (DENIED, DENIED)


async def test_calls_wait_only_a_while_for_a_worker_that_is_started_again(monkeypatch):
    """Then they fail with the reason, and so do later ones at once, until it can be called."""
    monkeypatch.setattr(worker_module, "RESTART_WAIT_SECONDS", 0.01)
    async with played("a", is_supervised=True) as endpoints:
        lose(endpoints, endpoints.made[0])
        early = Called(endpoints)
        await until(lambda: early.answers)
        late = Called(endpoints)
        await until(lambda: late.answers)
        for called in (early, late):
            assert called.answer.reason is Reason.WORKER_UNAVAILABLE
            assert called.answer.message == "refused"


async def test_no_call_waits_for_a_worker_that_someone_else_runs():
    """Whether it is started again is unknown: the failure policy decides at once."""
    async with played("a") as endpoints:
        lose(endpoints, endpoints.made[0])
        called = Called(endpoints)
        await until(lambda: called.answers)
        assert called.answer.message == "refused"


async def test_a_verdict_ends_it():
    """There is one answer."""
    async with played("a", "b") as endpoints:
        called = Called(endpoints)
        _, attempt = first(endpoints)
        attempt.answered(Allow())
        assert called.answer == Allow()
        assert len(endpoints.attempts()) == 1


async def test_nothing_is_put_again_after_the_deadline():
    """No time is left: the call fails as it ended."""
    async with played("a", "b") as endpoints:
        called = Called(endpoints, deadline=monotonic() - 1)
        _, attempt = first(endpoints)
        end(attempt, CallResult.LOST)
        assert called.answer is BROKEN


async def test_retries_of_failures_have_a_budget():
    """A worker that fails everything gets the reserve and its share more work, not twice as much."""
    calls = 200
    async with played("a", "b", worker_retry_share=0.2, worker_circuit_calls=100_000) as endpoints:
        for _ in range(calls):
            lead(endpoints, Called(endpoints), lambda _, attempt: end(attempt, CallResult.FAILED))
        retries = len(endpoints.attempts()) - calls
        assert endpoints.events["retry"] == retries
        assert 0.2 * calls <= retries <= 0.2 * calls + RESERVE


async def test_lost_ones_need_no_budget():
    """However many calls a killed replica had."""
    async with played("a", "b", worker_circuit_calls=100_000) as endpoints:
        called = [Called(endpoints) for _ in range(200)]
        lost = next(place for place in endpoints.made if place.attempts)
        for attempt in tuple(lost.attempts):
            end(attempt, CallResult.LOST)
        for place, attempt in endpoints.attempts():
            if place is not lost:
                attempt.answered(Allow())
        assert all(each.answers == [Allow()] for each in called if each.answers)
        assert sum(bool(each.answers) for each in called) == 200


async def test_an_call_goes_only_where_it_fits():
    """Also when it is retried: no endpoint with another description is called."""
    async with played("a", "b", "c") as endpoints:
        others = type(endpoints.made[0].description)
        endpoints.made[0].description = strange = object.__new__(others)
        fits = frozenset({endpoints.made[1].description})
        for _ in range(6):
            lead(endpoints, Called(endpoints, fits=fits), lambda _, attempt: end(attempt, CallResult.LOST))
        assert endpoints.made[0].attempts == []
        no_consumer = Called(endpoints, fits=frozenset({object.__new__(others)}))
        await until(lambda: no_consumer.answers)
        assert "no connected replica has policy 'judge' as it was described" in no_consumer.answer.message
        assert strange is endpoints.made[0].description


# ---------------------------------------------------------------------------------------------------- cancel


async def test_a_cancelled_call_is_cancelled_where_it_is():
    """And reports nothing."""
    async with played("a") as endpoints:
        called = Called(endpoints)
        place, attempt = first(endpoints)
        called.cancel()
        assert place.cancelled == [attempt]
        called.cancel()
        assert called.answers == []
        await asyncio.wait_for(endpoints.worker.idle(), WAIT_SECONDS)


async def test_closing_cancels_everything():
    """There is no answer, and nothing is open."""
    async with played("a") as endpoints:
        called = Called(endpoints)
        _, attempt = first(endpoints)
    assert called.answers == []
    assert endpoints.made[0].cancelled == [attempt]
