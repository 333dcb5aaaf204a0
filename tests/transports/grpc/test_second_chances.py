"""Second replicas for late asks, and circuits that open: who is asked, and who is left alone. Replicas are played."""

from time import monotonic

import pytest

from gateway.deciding.verdicts import Allow, Deny, Failure
from gateway.reasons import Reason
from gateway.transports.grpc import asking as asking_module
from gateway.transports.grpc.attempts import Ending
from gateway.transports.grpc.breaker import Circuit
from gateway.transports.grpc.hedging import NEEDED, RESERVE
from tests.integration.running import until
from tests.transports.grpc.fleets import Asked, played
from tests.transports.reaching import judge

NAME = judge().qualified_name
BROKEN = Failure(reason=Reason.WORKER_UNAVAILABLE, message="broken")
FAILED = Failure(reason=Reason.WORKER_FAILURE, message="could not judge")
LATE = Failure(reason=Reason.WORKER_TIMEOUT, message="late")
WORDS = {Ending.UNSENT: BROKEN, Ending.LOST: BROKEN, Ending.SAID: FAILED, Ending.LATE: LATE}

SOON = 0.001
DENIED = Deny(message="no", code=403, reason="Forbidden")


def end(attempt, ending):
    attempt.ended(WORDS[ending], ending)


def first(fleet):
    """Who was asked first, and that attempt."""
    ((place, attempt),) = fleet.attempts()
    return place, attempt


def second(fleet, before):
    """Who was asked after that, and that attempt."""
    ((place, attempt),) = [each for each in fleet.attempts() if each[1] is not before]
    return place, attempt


def open_attempt(fleet):
    """The one attempt that is open."""
    (attempt,) = [attempt for _, attempt in fleet.attempts() if attempt in attempt._asking._tries]
    return attempt


def lead(fleet, asked, play):
    """Let each attempt of an ask go as ``play`` has it, until the ask has its answer."""
    while not asked.answers:
        attempt = open_attempt(fleet)
        (place,) = [place for place, each in fleet.attempts() if each is attempt]
        play(place, attempt)


# --------------------------------------------------------------------------------------------------- hedging


def known(fleet, seconds=SOON):
    """The policy's latencies are known."""
    for _ in range(NEEDED):
        fleet.worker.chances.took(NAME, seconds)


async def test_a_second_replica_is_asked_when_the_first_is_late():
    """After the 95th percentile, and the first verdict counts: the other attempt is cancelled."""
    for winner in (0, 1):
        async with played("a", "b", worker_hedge_seconds=SOON) as fleet:
            known(fleet)
            asked = Asked(fleet)
            one = first(fleet)
            await until(lambda fleet=fleet: len(fleet.attempts()) == 2)
            tries = [one, second(fleet, one[1])]
            assert tries[0][0] is not tries[1][0]
            tries[winner][1].answered(DENIED)
            loser, attempt = tries[1 - winner]
            assert asked.answer is DENIED
            assert loser.cancelled == [attempt]
            assert fleet.events.counts["hedge"] == 1
            assert fleet.events.counts.get("hedge_won", 0) == winner


async def test_a_failure_does_not_end_it_while_another_may_still_answer():
    """The first verdict counts, not the first failure."""
    async with played("a", "b", worker_hedge_seconds=SOON) as fleet:
        known(fleet)
        asked = Asked(fleet)
        _, one = first(fleet)
        await until(lambda: len(fleet.attempts()) == 2)
        _, two = second(fleet, one)
        end(two, Ending.SAID)
        assert asked.answers == []
        one.answered(Allow())
        assert asked.answer == Allow()


async def test_when_all_have_failed_the_last_one_says_why():
    """A hedged ask is not sent a third time."""
    async with played("a", "b", "c", worker_hedge_seconds=SOON) as fleet:
        known(fleet)
        asked = Asked(fleet)
        _, one = first(fleet)
        await until(lambda: len(fleet.attempts()) == 2)
        _, two = second(fleet, one)
        end(one, Ending.LOST)
        end(two, Ending.SAID)
        assert asked.answer is FAILED
        assert len(fleet.attempts()) == 2


@pytest.mark.parametrize("why_not", ["alone", "side effects", "unknown", "too late", "nobody left"])
async def test_nobody_is_hedged(why_not):
    """Without another replica, with side effects, without known latencies, with too little time, or with an open
    circuit everywhere else.
    """
    async with played(*("a" if why_not == "alone" else "ab"), worker_hedge_seconds=SOON) as fleet:
        if why_not != "unknown":
            known(fleet, 30.0 if why_not == "too late" else SOON)
        if why_not == "nobody left":
            for replica in fleet.worker._fleet.replicas:
                replica.circuit = lambda policy, now, a=replica.address: Circuit.CLOSED if a == "a" else Circuit.SOFT
        deadline = {"deadline": monotonic() + 20.0} if why_not == "too late" else {}
        asked = Asked(fleet, cancellable=why_not != "side effects", **deadline)
        _, attempt = first(fleet)
        alarm = attempt._asking._alarm
        if alarm is not None:
            attempt._asking._hedge()
        assert len(fleet.attempts()) == 1
        assert (alarm is not None) == (why_not == "nobody left")
        attempt.answered(Allow())
        assert asked.answer == Allow()


async def test_hedges_have_a_budget():
    """However late everything is, no more than their share and the reserve."""
    asks = 400
    async with played("a", "b", worker_hedge_seconds=SOON, worker_hedge_share=0.05) as fleet:
        known(fleet, 30.0)
        for _ in range(asks):
            Asked(fleet)
            attempt = open_attempt(fleet)
            attempt._asking._hedge()
            attempt.answered(Allow())
        hedges = len(fleet.attempts()) - asks
        assert fleet.events.counts["hedge"] == hedges
        assert 0.05 * asks - 1 <= hedges <= 0.05 * asks + RESERVE


async def test_a_verdict_in_time_needs_no_second_replica():
    """The alarm is put away with the answer."""
    async with played("a", "b", worker_hedge_seconds=SOON) as fleet:
        known(fleet, 30.0)
        asked = Asked(fleet)
        _, attempt = first(fleet)
        asking = attempt._asking
        assert asking._alarm is not None
        attempt.answered(Allow())
        assert asking._alarm is None
        asking._hedge()
        assert len(fleet.attempts()) == 1
        assert asked.answer == Allow()


async def test_an_ask_that_never_left_has_one_alarm():
    """It is put again, and hedged once."""
    async with played("a", "b", worker_hedge_seconds=SOON) as fleet:
        known(fleet, 30.0)
        Asked(fleet)
        _, attempt = first(fleet)
        before = attempt._asking._alarm
        end(attempt, Ending.UNSENT)
        assert attempt._asking._alarm is before


# -------------------------------------------------------------------------------------------------- circuits


def circuit(fleet, place, about=None):
    (replica,) = [each for each in fleet.worker._fleet.replicas if each.address == place.address]
    return replica.circuit((about or judge()).qualified_name, monotonic())


@pytest.mark.parametrize(("ending", "opens"), [(Ending.LOST, Circuit.FIRM), (Ending.SAID, Circuit.SOFT)])
async def test_endings_open_a_circuit(ending, opens):
    """Lost ones firmly, failures softly; the other address and the other policy stay as they were."""
    async with played("a", "b", worker_circuit_calls=4) as fleet:

        def play(place, attempt):
            if place.address == "a":
                end(attempt, ending)
            else:
                attempt.answered(Allow())

        for _ in range(10):
            lead(fleet, Asked(fleet), play)
        a, b = fleet.made
        assert circuit(fleet, a) is opens
        assert circuit(fleet, b) is Circuit.CLOSED
        assert circuit(fleet, a, judge("other")) is Circuit.CLOSED
        assert fleet.events.counts["circuit_opened"] == 1
        before = len(a.attempts)
        for _ in range(4):
            Asked(fleet)
        assert len(a.attempts) == before


async def test_what_never_left_says_nothing_of_the_replica():
    """No circuit opens for it."""
    async with played("a", worker_circuit_calls=1) as fleet:
        Asked(fleet)
        _, attempt = first(fleet)
        end(attempt, Ending.UNSENT)
        assert circuit(fleet, fleet.made[0]) is Circuit.CLOSED


@pytest.mark.parametrize("seconds", [10.0, 15.0])
@pytest.mark.parametrize("how", ["late", "cancelled", "answered"])
async def test_taking_all_of_the_time_opens_a_circuit(monkeypatch, how, seconds):
    """Whether the answer comes just in time, or not in time, or the review gives up at its deadline; also where the
    API server waits somewhat less than the policy may take.
    """
    about = judge(timeout=seconds)
    async with played("a", worker_circuit_calls=1) as fleet:
        asked = Asked(fleet, about, deadline=(begun := monotonic()) + 10.0)
        place, attempt = first(fleet)
        monkeypatch.setattr(asking_module, "monotonic", lambda: begun + 10.0)
        if how == "late":
            end(attempt, Ending.LATE)
        elif how == "cancelled":
            asked.cancel()
        else:
            attempt.answered(Allow())
        assert circuit(fleet, place, about) is Circuit.FIRM


async def test_a_review_that_has_no_time_left_says_little_of_the_replica(monkeypatch):
    """A tenth of the policy's time is not all of it: whoever was asked too late is not to blame."""
    about = judge(timeout=10.0)
    async with played("a", worker_circuit_calls=1) as fleet:
        Asked(fleet, about, deadline=(begun := monotonic()) + 1.0)
        place, attempt = first(fleet)
        monkeypatch.setattr(asking_module, "monotonic", lambda: begun + 1.0)
        end(attempt, Ending.LATE)
        assert circuit(fleet, place, about) is Circuit.CLOSED


async def test_an_early_cancel_says_nothing():
    """A review that was decided by somebody else is not the replica's doing."""
    async with played("a", worker_circuit_calls=1) as fleet:
        asked = Asked(fleet)
        asked.cancel()
        assert circuit(fleet, fleet.made[0]) is Circuit.CLOSED


async def test_a_firmly_open_circuit_everywhere_fails_at_once():
    """Waiting would cost every review its time; the failure says what happened."""
    async with played("a", worker_circuit_calls=1) as fleet:
        asked = Asked(fleet, cancellable=False)
        _, attempt = first(fleet)
        end(attempt, Ending.LOST)
        asked = Asked(fleet)
        await until(lambda: asked.answers)
        assert asked.answer.reason is Reason.WORKER_UNAVAILABLE
        assert "is not asked about policy 'judge' for 5 s" in asked.answer.message
        assert Asked(fleet, judge("other")).answers == []
        assert len(fleet.attempts()) == 2


async def test_a_softly_open_circuit_everywhere_is_asked_all_the_same():
    """Whoever fails at once costs no time, and nobody fares better elsewhere."""
    async with played("a", worker_circuit_calls=1) as fleet:
        Asked(fleet)
        _, attempt = first(fleet)
        end(attempt, Ending.SAID)
        assert circuit(fleet, fleet.made[0]) is Circuit.SOFT
        Asked(fleet)
        assert len(fleet.attempts()) == 2
