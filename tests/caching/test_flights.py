"""Equal calls that are open at the same time are made once, and do not affect each other."""

import pytest

from gateway.engine.answer_source import Source
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import Cache
from gateway.reasons import Reason
from gateway.telemetry.labels import LookupResult
from tests.caching.world import ALLOW, Clock, Gateway, Reply, Workers, policy_call, turns

FAILED = Failure(reason=Reason.WORKER_FAILURE, message="no")


async def test_one_call_serves_all():
    """Three reviews with equal calls make one call; the first has its verdict as called, the others as shared."""
    gateway = Gateway()
    replies = [gateway.put(policy_call())[0] for _ in range(3)]
    await turns()
    assert len(gateway.workers.calls) == 1
    gateway.workers.answer(gateway.workers.calls[0], Deny(message="no"))
    assert [reply.only for reply in replies] == [
        (Deny(message="no"), source) for source in (Source.CALLED, Source.SHARED, Source.SHARED)
    ]
    assert gateway.events.results == {LookupResult.MISS: 1, LookupResult.SHARED: 2}


async def test_a_failure_is_not_shared():
    """When a shared call fails, its review has the failure, and each of the others calls the worker itself."""
    gateway = Gateway()
    first, second, third = (gateway.put(policy_call())[0] for _ in range(3))
    gateway.workers.answer(gateway.workers.calls[0], FAILED)
    assert first.only == (FAILED, Source.CALLED)
    assert not second.answers
    assert len(gateway.workers.calls) == 3
    gateway.workers.answer(gateway.workers.calls[1], FAILED)
    gateway.workers.answer(gateway.workers.calls[2], ALLOW)
    assert second.only == (FAILED, Source.CALLED)
    assert third.only == (ALLOW, Source.CALLED)
    assert gateway.events.results == {LookupResult.MISS: 1, LookupResult.UNSHARED: 2}
    assert gateway.policy_caller.known(policy_call()) is not None, "the verdict of an unshared call is stored too"


async def test_the_one_that_called_may_leave():
    """The call goes on for those who wait, and their verdict is shared."""
    gateway = Gateway()
    first, leave = gateway.put(policy_call())
    second, _ = gateway.put(policy_call())
    leave()
    assert not gateway.workers.cancelled
    gateway.workers.answer(gateway.workers.calls[0], ALLOW)
    assert not first.answers
    assert second.only == (ALLOW, Source.SHARED)


async def test_a_failure_after_the_one_that_called_left():
    """No review gets the failure of another review's call, even if that review has left."""
    gateway = Gateway()
    _, leave = gateway.put(policy_call())
    second, _ = gateway.put(policy_call())
    leave()
    gateway.workers.answer(gateway.workers.calls[0], FAILED)
    assert not second.answers
    gateway.workers.answer(gateway.workers.calls[1], ALLOW)
    assert second.only == (ALLOW, Source.CALLED)


async def test_the_last_to_leave_cancels():
    """A call for which no review waits is canceled, and a later one calls the worker again."""
    gateway = Gateway()
    leaves = [gateway.put(policy_call())[1] for _ in range(3)]
    for leave in leaves[:2]:
        leave()
    assert not gateway.workers.cancelled
    leaves[2]()
    leaves[2]()
    assert gateway.workers.cancelled == [gateway.workers.calls[0].id]
    gateway.put(policy_call())
    assert len(gateway.workers.calls) == 2


async def test_leaving_a_call_of_ones_own():
    """A review that calls the worker itself after a failure cancels that call when it leaves."""
    gateway = Gateway()
    gateway.put(policy_call())
    _, leave = gateway.put(policy_call())
    gateway.workers.answer(gateway.workers.calls[0], FAILED)
    leave()
    assert gateway.workers.cancelled == [gateway.workers.calls[1].id]


async def test_one_answer_makes_another_leave():
    """A review that ends because of a shared verdict may cancel its other calls, those of the same call included."""
    gateway = Gateway()
    first, _ = gateway.put(policy_call())
    second, leave = gateway.put(policy_call())
    third, _ = gateway.put(policy_call())
    first.then = leave
    gateway.workers.answer(gateway.workers.calls[0], FAILED)
    assert not second.answers
    assert len(gateway.workers.calls) == 2, "a review that has left does not call the worker"
    gateway.workers.answer(gateway.workers.calls[1], ALLOW)
    assert third.only == (ALLOW, Source.CALLED)


async def test_a_reply_that_breaks_costs_the_others_nothing():
    """An exception of one review does not keep the verdict from the others."""

    class Broken(Reply):
        def answered(self, call, answer, origin=None):
            raise RuntimeError

    gateway = Gateway()
    gateway.policy_caller.call(policy_call(), Broken())
    second, _ = gateway.put(policy_call())
    gateway.workers.answer(gateway.workers.calls[0], ALLOW)
    assert second.only == (ALLOW, Source.SHARED)


async def test_calling_breaks_at_once():
    """Exceptions of workers reach the driver, and no review waits for a call that was not made."""

    class Broken(Workers):
        def call(self, policy_call, reply):
            raise RuntimeError("broken")

    gateway = Gateway()
    gateway.policy_caller._workers = Broken()
    for _ in range(2):
        with pytest.raises(RuntimeError):
            gateway.put(policy_call())
    assert not gateway.cache.flights


@pytest.mark.parametrize("verdict", [Allow(reuse=0), Allow(version="2")])
async def test_what_must_not_be_reused_is_not_shared(verdict):
    """A verdict marked no-store, or of another version than the call's, is for its own review only."""
    gateway = Gateway()
    first, _ = gateway.put(policy_call())
    second, _ = gateway.put(policy_call())
    gateway.workers.answer(gateway.workers.calls[0], verdict)
    assert first.only == (verdict, Source.CALLED)
    assert not second.answers
    gateway.workers.answer(gateway.workers.calls[1], ALLOW)
    assert second.only == (ALLOW, Source.CALLED)


async def test_different_calls_are_not_shared():
    """Another document, version, identity, policy or phase makes a different call."""
    gateway = Gateway()
    gateway.put(policy_call())
    for other in (policy_call('{"a":1}'), policy_call(version="2"), policy_call(identity=b"j"), policy_call(name="q")):
        gateway.put(other)
    assert len(gateway.workers.calls) == 5


async def test_without_cache_nothing_is_shared():
    """Policies without ``cache`` are called for each review, and not counted."""
    gateway = Gateway()
    gateway.put(policy_call(cache=None))
    gateway.put(policy_call(cache=None))
    assert len(gateway.workers.calls) == 2
    assert not gateway.events.results


async def test_a_purge_splits_a_flight():
    """A call after a purge does not share the answer of a call before it."""
    gateway = Gateway()
    first, _ = gateway.put(policy_call())
    await gateway.cache.purge(["test/p.test.example.com"])
    second, _ = gateway.put(policy_call())
    assert len(gateway.workers.calls) == 2
    gateway.workers.answer(gateway.workers.calls[0], Deny())
    assert first.only == (Deny(), Source.CALLED)
    assert not second.answers
    gateway.workers.answer(gateway.workers.calls[1], ALLOW)
    assert second.only == (ALLOW, Source.CALLED)


async def test_a_follower_of_another_configuration():
    """Two configurations share the answer of an equal call, each under its own ttl."""
    gateway = Gateway(now=Clock())
    gateway.put(policy_call())
    other, _ = gateway.put(policy_call(cache=Cache(ttl=1.0)))
    gateway.workers.answer(gateway.workers.calls[0], ALLOW)
    assert other.only == (ALLOW, Source.SHARED)
    gateway.clock.now += 2
    assert gateway.policy_caller.known(policy_call()) is not None
    assert gateway.policy_caller.known(policy_call(cache=Cache(ttl=1.0))) is None
