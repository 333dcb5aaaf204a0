"""Circuits that open: which endpoints are called, and which are not. Connections are played."""

import asyncio
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.verdicts import Allow, Failure
from gateway.reasons import Reason
from gateway.transports.grpc import breaker as breaker_module
from gateway.transports.grpc import probe as probe_module
from gateway.transports.grpc import retries as retries_module
from gateway.transports.grpc import worker as worker_module
from gateway.transports.grpc.call_attempt import CallResult
from tests.integration.running import until
from tests.transports.grpc.endpoints import Called, played
from tests.transports.reaching import judge

BROKEN = Failure(reason=Reason.WORKER_UNAVAILABLE, message="broken")
FAILED = Failure(reason=Reason.WORKER_FAILURE, message="could not judge")
LATE = Failure(reason=Reason.WORKER_TIMEOUT, message="late")
WORDS = {CallResult.UNSENT: BROKEN, CallResult.LOST: BROKEN, CallResult.FAILED: FAILED, CallResult.LATE: LATE}
TIMEOUT = judge().timeout


class Clock:
    """The time of calls to workers."""

    def __init__(self, monkeypatch):
        self.now = monotonic()
        for module in (probe_module, retries_module, worker_module):
            monkeypatch.setattr(module, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def fail(place, result, which=0):
    """An open attempt at a place has no verdict."""
    place.open[which].ended(WORDS[result], result)


def is_closed(endpoints, place, about=None):
    (replica,) = [each for each in endpoints.worker._endpoints.endpoints if each.address == place.address]
    return (about or judge()).qualified_name not in replica.open_circuits


def lead(endpoints, called, play):
    """Let each attempt of a call go as ``play`` has it, until the call has its answer."""
    while not called.answers:
        place = next(place for place in endpoints.made if place.open)
        play(place)


def be_late(endpoints, clock, count=1, about=None, *, seconds=TIMEOUT, **fields):
    """Make calls that have their time and get no answer, all at once. Returns them."""
    calls = [Called(endpoints, about, deadline=clock.now + seconds, **fields) for _ in range(count)]
    clock.now += seconds
    for place in endpoints.made:
        for attempt in tuple(place.open):
            attempt.ended(LATE, CallResult.LATE)
    return calls


# ------------------------------------------------------------------------------------- what opens a circuit


@pytest.mark.parametrize("how", ["late", "cancelled"])
async def test_silence_for_the_whole_timeout_opens_the_circuit(clock, how):
    """Whether the transport or the review notices first."""
    async with played("a", worker_circuit_calls=2) as endpoints:
        calls = [Called(endpoints, deadline=clock.now + TIMEOUT) for _ in range(2)]
        clock.now += TIMEOUT
        for called in calls:
            if how == "late":
                fail(endpoints.made[0], CallResult.LATE)
            else:
                called.cancel()
        assert not is_closed(endpoints, endpoints.made[0])
        assert endpoints.events["circuit_opened"] == 1


async def test_slow_objects_open_no_circuit_while_the_worker_answers_others(clock):
    """Twenty slow objects of one tenant, and one verdict for another one in their time."""
    async with played("a") as endpoints:
        slow = [Called(endpoints, deadline=clock.now + TIMEOUT) for _ in range(20)]
        clock.now += 1.0
        Called(endpoints)
        endpoints.made[0].open[-1].answered(Allow())
        clock.now += TIMEOUT - 1.0
        for _ in slow:
            fail(endpoints.made[0], CallResult.LATE)
        assert is_closed(endpoints, endpoints.made[0])
        assert len(slow) == sum(len(each.answers) for each in slow)


@pytest.mark.parametrize("count", [20, 200])
async def test_clients_that_wait_less_than_the_policy_open_no_circuit(clock, count):
    """``?timeout=4s`` leaves a policy of ten seconds three: a worker that needs somewhat more has not failed."""
    about = judge(timeout=10.0)
    async with played("a") as endpoints:
        be_late(endpoints, clock, count, about, seconds=2.95)
        assert is_closed(endpoints, endpoints.made[0], about)


async def test_an_entry_of_thirty_seconds_leaves_enough_of_the_timeout(clock):
    """30 s is the most that Kubernetes allows, so a policy of 30 s has a second less."""
    about = judge(timeout=30.0)
    async with played("a", worker_circuit_calls=1) as endpoints:
        be_late(endpoints, clock, 1, about, seconds=28.9)
        assert not is_closed(endpoints, endpoints.made[0], about)


async def test_time_in_which_the_gateway_itself_was_late_is_not_the_workers(clock):
    """An answer may have come while the event loop was busy, and not have been read."""
    async with played("a", worker_circuit_calls=1) as endpoints:
        Called(endpoints, deadline=clock.now + TIMEOUT)
        endpoints.worker.lag.seconds += 0.2 * TIMEOUT
        clock.now += TIMEOUT
        fail(endpoints.made[0], CallResult.LATE)
        assert is_closed(endpoints, endpoints.made[0])
        be_late(endpoints, clock)
        assert not is_closed(endpoints, endpoints.made[0])


@pytest.mark.parametrize("result", [CallResult.LOST, CallResult.FAILED])
async def test_what_another_endpoint_judges_opens_the_circuit(result):
    """Of that policy at that address, which gets only copies of calls from then on; the other address and policy get
    the calls.
    """
    async with played("a", "b", worker_circuit_calls=4) as endpoints:

        def play(place):
            if place.address == "a":
                fail(place, result)
            else:
                place.open[0].answered(Allow())

        for _ in range(10):
            called = Called(endpoints)
            lead(endpoints, called, play)
            assert called.answer == Allow()
        a, b = endpoints.made
        assert not is_closed(endpoints, a)
        assert is_closed(endpoints, b)
        assert is_closed(endpoints, a, judge("other"))
        assert endpoints.events["circuit_opened"] == 1


@pytest.mark.parametrize("result", [CallResult.LOST, CallResult.FAILED])
async def test_an_object_that_no_endpoint_judges_opens_no_circuit(result):
    """It is the object: however often it comes, each endpoint is called as before."""
    async with played("a", "b", worker_circuit_calls=2) as endpoints:
        for _ in range(40):
            called = Called(endpoints)
            lead(endpoints, called, lambda place: fail(place, result))
            assert called.answer is WORDS[result]
        assert [is_closed(endpoints, place) for place in endpoints.made] == [True, True]


async def test_what_never_left_says_nothing_of_the_endpoint():
    """No circuit opens for it."""
    async with played("a", "b", worker_circuit_calls=1) as endpoints:
        Called(endpoints)
        place = next(place for place in endpoints.made if place.open)
        fail(place, CallResult.UNSENT)
        next(place for place in endpoints.made if place.open).open[0].answered(Allow())
        assert is_closed(endpoints, place)


async def test_an_early_cancel_reports_nothing():
    """A review that another policy decided is not the endpoint's doing."""
    async with played("a", worker_circuit_calls=1) as endpoints:
        called = Called(endpoints)
        called.cancel()
        assert is_closed(endpoints, endpoints.made[0])


# ---------------------------------------------------------------------------------- what an open circuit does


async def test_other_endpoints_are_preferred_and_the_open_one_gets_copies(clock):
    """The call goes to the address that answers, a copy to the other; the copy's verdict closes the circuit."""
    async with played("a", "b", worker_circuit_calls=1) as endpoints:
        a, b = endpoints.made
        be_late(endpoints, clock)
        silent, other = (b, a) if is_closed(endpoints, a) else (a, b)
        called = [Called(endpoints) for _ in range(2)]
        assert len(other.open) == 2
        (probe,) = silent.open
        assert endpoints.events["circuit_probe"] == 1
        probe.answered(Allow())
        assert is_closed(endpoints, silent)
        assert [each.answers for each in called] == [[], []]
        assert endpoints.events["circuit_closed"] == 1


async def test_a_probe_that_fails_concerns_no_review(clock):
    """However it ends: the circuit stays open, and the next probe follows."""
    async with played("a", "b", worker_circuit_calls=1) as endpoints:
        a, b = endpoints.made
        be_late(endpoints, clock)
        silent, other = (b, a) if is_closed(endpoints, a) else (a, b)
        for end in (
            lambda probe: probe.ended(LATE, CallResult.LATE),
            lambda probe: probe.ended(BROKEN, CallResult.LOST),
            lambda probe: probe.answered(FAILED),
        ):
            clock.now += breaker_module.PROBE_SECONDS
            called = [Called(endpoints) for _ in range(2)]
            (probe,) = silent.open
            end(probe)
            assert not is_closed(endpoints, silent)
            for each in tuple(other.open):
                each.answered(Allow())
            assert [each.answer for each in called] == [Allow(), Allow()]


async def test_calls_with_side_effects_are_not_copied(clock):
    """They go to the other address; one each worker_circuit_open_seconds goes to the one whose circuit is open."""
    async with played("a", "b", worker_circuit_calls=1) as endpoints:
        a, b = endpoints.made
        be_late(endpoints, clock, cancellable=False)
        silent, other = (b, a) if is_closed(endpoints, a) else (a, b)
        for _ in range(4):
            Called(endpoints, cancellable=False)
        assert (len(silent.open), len(other.open)) == (0, 4)
        clock.now += 5.0
        for _ in range(4):
            Called(endpoints, cancellable=False)
        assert (len(silent.open), len(other.open)) == (1, 7)


@pytest.mark.parametrize("addresses", ["a", "ab"])
async def test_a_last_endpoint_is_always_called(clock, addresses):
    """Where no circuit is closed, calls are sent all the same, and the first verdict closes the circuit."""
    async with played(*addresses, worker_circuit_calls=1) as endpoints:
        be_late(endpoints, clock, 4)
        assert not any(is_closed(endpoints, place) for place in endpoints.made)
        called = Called(endpoints)
        place = next(place for place in endpoints.made if place.open)
        place.open[0].answered(Allow())
        assert called.answer == Allow()
        assert is_closed(endpoints, place)


async def test_calls_that_wait_for_a_silent_worker_are_bounded(clock):
    """Beyond worker_circuit_in_flight they fail at once; one that has ended makes room for another."""
    async with played("a", worker_circuit_calls=1, worker_circuit_in_flight=10) as endpoints:
        be_late(endpoints, clock)
        waiting = [Called(endpoints, namespace=f"n{number}") for number in range(10)]
        refused = Called(endpoints, namespace="n10")
        await until(lambda: refused.answers)
        assert refused.answer.reason is Reason.WORKER_UNAVAILABLE
        assert "10 calls wait for an answer; the limit worker_circuit_in_flight is 10" in refused.answer.message
        assert endpoints.events["circuit_in_flight"] == 1
        assert Called(endpoints, judge("other")).answers == []
        waiting[0].cancel()
        Called(endpoints, namespace="n10")
        assert len(endpoints.made[0].open) == 11
        assert all(not each.answers for each in waiting)


async def test_one_namespace_leaves_room_for_others(clock):
    """However many calls it makes to a silent worker, those of another one are sent."""
    async with played("a", worker_circuit_calls=1, worker_circuit_in_flight=10) as endpoints:
        be_late(endpoints, clock)
        many = [Called(endpoints, namespace="greedy") for _ in range(100)]
        await until(lambda: sum(len(each.answers) for each in many) >= 90)
        other = Called(endpoints, namespace="innocent")
        endpoints.made[0].open[-1].answered(Allow())
        assert other.answer == Allow()


async def test_what_waits_is_forgotten_at_the_end(clock):
    """Nothing is counted when all calls have ended."""
    async with played("a", worker_circuit_calls=1) as endpoints:
        be_late(endpoints, clock)
        be_late(endpoints, clock, 50)
        assert endpoints.worker._unanswered == {}


STEPS = st.lists(
    st.tuples(st.sampled_from(["slow", "fine", "lost", "failed"]), st.sampled_from(["judge", "other"])), max_size=30
)


@pytest.mark.property
@given(steps=STEPS, addresses=st.sampled_from(["a", "ab", "abc"]))
async def test_objects_of_one_policy_never_keep_another_one_from_its_worker(steps, addresses):
    """Whatever happens to calls of policies "judge" and "other", a call of a third is sent, and its verdict counts;
    and so is the next call of each of them.
    """
    with pytest.MonkeyPatch.context() as monkeypatch:
        clock = Clock(monkeypatch)
        monkeypatch.setattr(retries_module, "SAME_CONNECTION_SECONDS", 0.0)
        async with played(*addresses, worker_circuit_calls=2) as endpoints:
            ends = {"lost": CallResult.LOST, "failed": CallResult.FAILED}
            for what, name in steps:
                if what == "slow":
                    be_late(endpoints, clock, 3, judge(name))
                    continue
                called = Called(endpoints, judge(name))
                while not called.answers:
                    place = next((place for place in endpoints.made if place.open), None)
                    if place is None:
                        await asyncio.sleep(0)  # it is about to be retried
                    elif what == "fine":
                        place.open[0].answered(Allow())
                    else:
                        fail(place, ends[what])
            for place in endpoints.made:
                for attempt in tuple(place.open):
                    attempt.ended(LATE, CallResult.LATE)
            for name in ("third", "judge", "other"):
                called = Called(endpoints, judge(name))
                assert sum(len(place.open) for place in endpoints.made) >= 1
                lead(endpoints, called, lambda place: place.open[0].answered(Allow()))
                assert called.answer == Allow()
