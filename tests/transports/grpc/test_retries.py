"""One ask: to whom it is put, to whom it is put again, and whose verdict counts. The replicas are played."""

import asyncio
from time import monotonic

import pytest

from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.reasons import Reason
from gateway.transports.grpc.call_attempt import CallResult
from gateway.transports.grpc.retries import SENT, UNSENT
from gateway.transports.grpc.retry_budget import RESERVE
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import until
from tests.transports.grpc.fleets import Asked, played

BROKEN = Failure(reason=Reason.WORKER_UNAVAILABLE, message="broken")
FAILED = Failure(reason=Reason.WORKER_FAILURE, message="could not judge")
LATE = Failure(reason=Reason.WORKER_TIMEOUT, message="late")
WORDS = {CallResult.UNSENT: BROKEN, CallResult.LOST: BROKEN, CallResult.SAID: FAILED, CallResult.LATE: LATE}

DENIED = Deny(message="no", code=403, reason="Forbidden")


def end(attempt, ending):
    attempt.ended(WORDS[ending], ending)


def first(endpoints):
    """Who was asked first, and that attempt."""
    ((place, attempt),) = endpoints.attempts()
    return place, attempt


def second(endpoints, before):
    """Who was asked after that, and that attempt."""
    ((place, attempt),) = [each for each in endpoints.attempts() if each[1] is not before]
    return place, attempt


def open_attempt(endpoints):
    """The one attempt that is open."""
    (attempt,) = [attempt for place in endpoints.made for attempt in place.open]
    return attempt


def lead(endpoints, asked, play):
    """Let each attempt of an ask go as ``play`` has it, until the ask has its answer."""
    while not asked.answers:
        attempt = open_attempt(endpoints)
        (place,) = [place for place, each in endpoints.attempts() if each is attempt]
        play(place, attempt)


# ----------------------------------------------------------------------------------------------------- again


@pytest.mark.parametrize("cancellable", [True, False])
@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("ending", list(CallResult))
async def test_who_may_be_asked_again(ending, replicas, cancellable):
    """The table: after each ending, with and without side effects, alone or among replicas."""
    async with played(*"abc"[:replicas]) as endpoints:
        asked = Asked(endpoints, cancellable=cancellable)
        place, attempt = first(endpoints)
        end(attempt, ending)
        again = len(endpoints.attempts()) - 1
        expected = {
            CallResult.UNSENT: True,
            CallResult.LOST: cancellable,
            CallResult.SAID: cancellable and replicas > 1,
            CallResult.LATE: False,
        }[ending]
        assert again == expected
        if not expected:
            assert asked.answer is WORDS[ending]
            return
        assert asked.answers == []
        place_again, attempt_again = second(endpoints, attempt)
        if ending is not CallResult.UNSENT:
            assert (place_again is place) == (replicas == 1)
        attempt_again.answered(DENIED)
        assert asked.answer is DENIED


@pytest.mark.parametrize("ending", [CallResult.LOST, CallResult.SAID])
async def test_an_ask_is_sent_twice_at_most(ending):
    """One that kills its worker does not go on to kill all of them."""
    async with played(*"abcd") as endpoints:
        asked = Asked(endpoints)
        _, attempt = first(endpoints)
        end(attempt, ending)
        _, again = second(endpoints, attempt)
        end(again, ending)
        assert len(endpoints.attempts()) == SENT
        assert asked.answer is WORDS[ending]


async def test_what_never_left_does_not_count_as_sent():
    """It is put again, a few times; then the worker is taken to be away."""
    async with played("a", "b") as endpoints:
        asked = Asked(endpoints)
        for _ in range(UNSENT):
            end(open_attempt(endpoints), CallResult.UNSENT)
        assert asked.answers == []
        end(open_attempt(endpoints), CallResult.UNSENT)
        assert asked.answer.reason is Reason.WORKER_UNAVAILABLE
        assert len(endpoints.attempts()) == UNSENT + 1


async def test_side_effects_are_sent_again_only_if_they_never_left():
    """Then once more, wherever it may be; after that nobody knows, and they are not."""
    async with played("a", "b") as endpoints:
        asked = Asked(endpoints, cancellable=False)
        _, attempt = first(endpoints)
        end(attempt, CallResult.UNSENT)
        _, again = second(endpoints, attempt)
        end(again, CallResult.LOST)
        assert len(endpoints.attempts()) == 2
        assert asked.answer is BROKEN


async def test_whoever_was_on_a_stream_that_broke_has_a_call_of_its_own():
    """On the next replica as well: if it was the one that broke the stream, it breaks nobody else's."""
    for replicas in (1, 2):
        async with played(*"ab"[:replicas]) as endpoints:
            Asked(endpoints)
            _, attempt = first(endpoints)
            end(attempt, CallResult.LOST)
            place, again = second(endpoints, attempt)
            assert place.alone == [again]


async def test_it_keeps_its_call_of_its_own_when_it_has_to_wait():
    """If all connections were lost together, it is put to the next one as a call as well."""
    async with played("a") as endpoints:
        Asked(endpoints)
        place, attempt = first(endpoints)
        place.is_serving = False
        place.state = type(place.state).CONNECTING
        endpoints.worker._look()
        end(attempt, CallResult.LOST)
        assert len(endpoints.attempts()) == 1
        place.is_serving, place.state = True, type(place.state).READY
        endpoints.worker._look()
        _, again = second(endpoints, attempt)
        assert place.alone == [again]


async def test_a_verdict_ends_it():
    """The answer is told once."""
    async with played("a", "b") as endpoints:
        asked = Asked(endpoints)
        _, attempt = first(endpoints)
        attempt.answered(Allow())
        assert asked.answer == Allow()
        assert len(endpoints.attempts()) == 1


async def test_nothing_is_put_again_after_the_deadline():
    """No time is left: the ask fails as it ended."""
    async with played("a", "b") as endpoints:
        asked = Asked(endpoints, deadline=monotonic() - 1)
        _, attempt = first(endpoints)
        end(attempt, CallResult.LOST)
        assert asked.answer is BROKEN


async def test_retries_of_failures_have_a_budget():
    """A worker that fails everything gets the reserve and its share more work, not twice as much."""
    asks = 200
    async with played("a", "b", worker_retry_share=0.2, worker_circuit_calls=100_000) as endpoints:
        for _ in range(asks):
            lead(endpoints, Asked(endpoints), lambda _, attempt: end(attempt, CallResult.SAID))
        retries = len(endpoints.attempts()) - asks
        assert endpoints.events["retry"] == retries
        assert 0.2 * asks <= retries <= 0.2 * asks + RESERVE


async def test_lost_ones_need_no_budget():
    """However many asks a killed replica had."""
    async with played("a", "b", worker_circuit_calls=100_000) as endpoints:
        asked = [Asked(endpoints) for _ in range(200)]
        lost = next(place for place in endpoints.made if place.attempts)
        for attempt in tuple(lost.attempts):
            end(attempt, CallResult.LOST)
        for place, attempt in endpoints.attempts():
            if place is not lost:
                attempt.answered(Allow())
        assert all(each.answers == [Allow()] for each in asked if each.answers)
        assert sum(bool(each.answers) for each in asked) == 200


async def test_an_ask_goes_only_where_it_fits():
    """Also when it is put again: nobody of another description is asked."""
    async with played("a", "b", "c") as endpoints:
        others = type(endpoints.made[0].description)
        endpoints.made[0].description = strange = object.__new__(others)
        fits = frozenset({endpoints.made[1].description})
        for _ in range(6):
            lead(endpoints, Asked(endpoints, fits=fits), lambda _, attempt: end(attempt, CallResult.LOST))
        assert endpoints.made[0].attempts == []
        no_consumer = Asked(endpoints, fits=frozenset({object.__new__(others)}))
        await until(lambda: no_consumer.answers)
        assert "nobody who is connected holds policy 'judge' as it was described" in no_consumer.answer.message
        assert strange is endpoints.made[0].description


# ---------------------------------------------------------------------------------------------------- cancel


async def test_a_cancelled_ask_is_cancelled_where_it_is():
    """And tells nobody anything."""
    async with played("a") as endpoints:
        asked = Asked(endpoints)
        place, attempt = first(endpoints)
        asked.cancel()
        assert place.cancelled == [attempt]
        asked.cancel()
        assert asked.answers == []
        await asyncio.wait_for(endpoints.worker.idle(), WAIT_SECONDS)


async def test_closing_cancels_everything():
    """Nobody is told, and nothing is open."""
    async with played("a") as endpoints:
        asked = Asked(endpoints)
        _, attempt = first(endpoints)
    assert asked.answers == []
    assert endpoints.made[0].cancelled == [attempt]
