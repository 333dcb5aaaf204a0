"""Equal questions that are open at the same time are one question, and nobody pays for anybody else."""

import pytest

from gateway.engine.origin import Source
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import Cache
from gateway.reasons import Reason
from gateway.telemetry.labels import LookupResult
from tests.caching.world import ALLOW, Clock, Gateway, Reply, Workers, ask, turns

FAILED = Failure(reason=Reason.WORKER_FAILURE, message="no")


async def test_one_call_serves_all():
    """Three reviews with the same question make one call; the first has its verdict asked, the others shared."""
    gateway = Gateway()
    replies = [gateway.put(ask())[0] for _ in range(3)]
    await turns()
    assert len(gateway.workers.asks) == 1
    gateway.workers.answer(gateway.workers.asks[0], Deny(message="no"))
    assert [reply.only for reply in replies] == [
        (Deny(message="no"), source) for source in (Source.CALLED, Source.SHARED, Source.SHARED)
    ]
    assert gateway.events.results == {LookupResult.MISS: 1, LookupResult.SHARED: 2}


async def test_a_failure_is_not_shared():
    """When a shared call fails, the one that asked has the failure and each of the others asks for itself."""
    gateway = Gateway()
    first, second, third = (gateway.put(ask())[0] for _ in range(3))
    gateway.workers.answer(gateway.workers.asks[0], FAILED)
    assert first.only == (FAILED, Source.CALLED)
    assert not second.answers
    assert len(gateway.workers.asks) == 3
    gateway.workers.answer(gateway.workers.asks[1], FAILED)
    gateway.workers.answer(gateway.workers.asks[2], ALLOW)
    assert second.only == (FAILED, Source.CALLED)
    assert third.only == (ALLOW, Source.CALLED)
    assert gateway.events.results == {LookupResult.MISS: 3}
    assert gateway.policy_caller.known(ask()) is not None, "what was asked alone is kept too"


async def test_the_one_that_asked_may_leave():
    """The call goes on for those who wait, and their verdict is shared."""
    gateway = Gateway()
    first, leave = gateway.put(ask())
    second, _ = gateway.put(ask())
    leave()
    assert not gateway.workers.cancelled
    gateway.workers.answer(gateway.workers.asks[0], ALLOW)
    assert not first.answers
    assert second.only == (ALLOW, Source.SHARED)


async def test_a_failure_after_the_one_that_asked_left():
    """Nobody gets a failure that another review's call came to, even if that review is gone."""
    gateway = Gateway()
    _, leave = gateway.put(ask())
    second, _ = gateway.put(ask())
    leave()
    gateway.workers.answer(gateway.workers.asks[0], FAILED)
    assert not second.answers
    gateway.workers.answer(gateway.workers.asks[1], ALLOW)
    assert second.only == (ALLOW, Source.CALLED)


async def test_the_last_to_leave_cancels():
    """A call that nobody waits for is cancelled, and a later question makes a new one."""
    gateway = Gateway()
    leaves = [gateway.put(ask())[1] for _ in range(3)]
    for leave in leaves[:2]:
        leave()
    assert not gateway.workers.cancelled
    leaves[2]()
    leaves[2]()
    assert gateway.workers.cancelled == [gateway.workers.asks[0].id]
    gateway.put(ask())
    assert len(gateway.workers.asks) == 2


async def test_leaving_an_ask_of_ones_own():
    """A follower that asks for itself after a failure cancels that call when it leaves."""
    gateway = Gateway()
    gateway.put(ask())
    _, leave = gateway.put(ask())
    gateway.workers.answer(gateway.workers.asks[0], FAILED)
    leave()
    assert gateway.workers.cancelled == [gateway.workers.asks[1].id]


async def test_one_answer_makes_another_leave():
    """A review that ends because of a shared verdict may cancel its other asks, those of the same call included."""
    gateway = Gateway()
    first, _ = gateway.put(ask())
    second, leave = gateway.put(ask())
    third, _ = gateway.put(ask())
    first.then = leave
    gateway.workers.answer(gateway.workers.asks[0], FAILED)
    assert not second.answers
    assert len(gateway.workers.asks) == 2, "who left does not ask for itself"
    gateway.workers.answer(gateway.workers.asks[1], ALLOW)
    assert third.only == (ALLOW, Source.CALLED)


async def test_a_reply_that_breaks_costs_the_others_nothing():
    """An exception of one review does not keep the verdict from the others."""

    class Broken(Reply):
        def answered(self, call, answer, origin=None):
            raise RuntimeError

    gateway = Gateway()
    gateway.policy_caller.call(ask(), Broken())
    second, _ = gateway.put(ask())
    gateway.workers.answer(gateway.workers.asks[0], ALLOW)
    assert second.only == (ALLOW, Source.SHARED)


async def test_asking_breaks_at_once():
    """What the workers raise reaches the driver, and nobody waits for a call that was never made."""

    class Broken(Workers):
        def call(self, ask, reply):
            raise RuntimeError("broken")

    gateway = Gateway()
    gateway.policy_caller._workers = Broken()
    for _ in range(2):
        with pytest.raises(RuntimeError):
            gateway.put(ask())
    assert not gateway.cache.flights


@pytest.mark.parametrize("verdict", [Allow(reuse=0), Allow(version="2")])
async def test_what_must_not_be_reused_is_not_shared(verdict):
    """A verdict marked no-store, or of another version than the question's, is for the one that asked alone."""
    gateway = Gateway()
    first, _ = gateway.put(ask())
    second, _ = gateway.put(ask())
    gateway.workers.answer(gateway.workers.asks[0], verdict)
    assert first.only == (verdict, Source.CALLED)
    assert not second.answers
    gateway.workers.answer(gateway.workers.asks[1], ALLOW)
    assert second.only == (ALLOW, Source.CALLED)


async def test_different_questions_are_not_shared():
    """Another document, version, identity, policy or phase is another question."""
    gateway = Gateway()
    gateway.put(ask())
    for other in (ask('{"a":1}'), ask(version="2"), ask(identity=b"j"), ask(name="q")):
        gateway.put(other)
    assert len(gateway.workers.asks) == 5


async def test_without_cache_nothing_is_shared():
    """Policies without ``cache`` ask for each review, and are counted nowhere."""
    gateway = Gateway()
    gateway.put(ask(cache=None))
    gateway.put(ask(cache=None))
    assert len(gateway.workers.asks) == 2
    assert not gateway.events.results


async def test_a_purge_splits_a_flight():
    """Who asks after a purge does not share an answer that was asked for before it."""
    gateway = Gateway()
    first, _ = gateway.put(ask())
    await gateway.cache.purge(["test/p.test.example.com"])
    second, _ = gateway.put(ask())
    assert len(gateway.workers.asks) == 2
    gateway.workers.answer(gateway.workers.asks[0], Deny())
    assert first.only == (Deny(), Source.CALLED)
    assert not second.answers
    gateway.workers.answer(gateway.workers.asks[1], ALLOW)
    assert second.only == (ALLOW, Source.CALLED)


async def test_a_follower_of_another_configuration():
    """Two configurations share an answer where the question is the same, each under its own ttl."""
    gateway = Gateway(now=Clock())
    gateway.put(ask())
    other, _ = gateway.put(ask(cache=Cache(ttl=1.0)))
    gateway.workers.answer(gateway.workers.asks[0], ALLOW)
    assert other.only == (ALLOW, Source.SHARED)
    gateway.clock.now += 2
    assert gateway.policy_caller.known(ask()) is not None
    assert gateway.policy_caller.known(ask(cache=Cache(ttl=1.0))) is None
