"""Redis is killed, restarted with and without its data, paused, filled, failed over: what depends on it fails or waits,
nothing that may be repeated is lost, and nothing with side effects is done twice.
"""

import asyncio

import pytest

from gateway.engine.verdicts import Allow
from gateway.reasons import Reason
from gateway.redis.addresses import redis_address
from gateway.transports.queue import abandoned_streams, request_exchange
from tests.caching import servers
from tests.transports.queue.consumers import FakeHandler, Queue, consuming, until
from tests.transports.queue.gateways import gateway

pytestmark = pytest.mark.faults


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A gateway waits for bridges that come back, however slow this machine starts them."""
    monkeypatch.setattr(abandoned_streams, "GRACE_SECONDS", 60.0)


async def is_answered(made):
    """Whether a call is: where Redis has little time, one may still fail because this machine has stood still."""
    return isinstance(await made.call(), Allow)


async def in_thread(work, *arguments):
    """What blocks, beside the loop."""
    return await asyncio.to_thread(work, *arguments)


async def restart(server, *, empty):
    """End it as the kernel does, and start it again; without what it had, if ``empty``."""
    server.kill()
    if empty:
        server.forget()
    await in_thread(server.start)


@pytest.mark.parametrize("empty", [False, True], ids=["with its data", "empty"])
async def test_open_calls_outlive_a_restart(redis, queue, key_file, empty):
    """Calls that are open when Redis is killed are answered after it is back; what is called afterwards, too."""
    judge = FakeHandler(holds=True)
    async with consuming(queue, judge), gateway(redis, key_file) as made:
        await made.met()
        waiting = [made.put(b'{"number":%d}' % number) for number in range(20)]
        await until(lambda: len(judge.called) == 20)
        await restart(redis, empty=empty)
        judge.holds = False
        for called in tuple(judge.called):
            called.answer()
        assert {type(await each.answer()) for each in waiting} == {Allow}
        await until(lambda: made.worker.why == "")
        assert isinstance(await made.call(), Allow)
        await until(queue.is_empty)
        assert made.events["redis_lost"]
    # Whoever answered: the worker was called once about each, for its bridge remembers.
    documents = [each for each in judge.documents if each != b"{}"]
    assert sorted(documents) == sorted(b'{"number":%d}' % number for number in range(20))


async def test_what_nobody_had_taken_is_put_again_when_redis_comes_back_empty(redis, queue, key_file):
    """A call that waits in a lane outlives the loss of all data, under its own id."""
    async with consuming(queue) as consumer, gateway(redis, key_file) as made:
        await made.met()
        await consumer.die()
        waiting = [made.put(b'{"number":%d}' % number) for number in range(5)]
        await until(lambda: made.worker._exchange.outbox.unsent == 0)
        await restart(redis, empty=True)
        async with consuming(queue) as other:
            assert {type(await each.answer()) for each in waiting} == {Allow}
            assert made.events["resent"] >= 5
            assert sorted(other.handler.documents) == sorted(b'{"number":%d}' % number for number in range(5))


async def test_a_flush_of_redis_is_noticed_without_a_lost_connection(redis, queue, key_file):
    """FLUSHALL is a loss of data like any other."""
    async with consuming(queue) as consumer, gateway(redis, key_file) as made:
        await made.met()
        await consumer.die()
        waiting = made.put()
        await until(lambda: made.worker._exchange.outbox.unsent == 0)
        await queue.client.flushall()
        async with consuming(queue):
            assert isinstance(await waiting.answer(), Allow)
        assert made.events["redis_lost"] == 0


async def test_a_server_that_numbers_replies_lower(redis, queue, key_file):
    """After a failover to a server whose clock is behind, answers are read, whatever their numbers."""
    async with consuming(queue), gateway(redis, key_file) as made:
        await made.met()
        session = made.worker._exchange
        replies, ahead = queue.names.replies(session.instance), await queue.now() + 3_600_000
        await queue.client.xadd(replies, {"m": b""}, id=f"{ahead}-0")
        await until(lambda: session._read_to == b"%d-0" % ahead)
        async with queue.client.pipeline(transaction=True) as pipeline:
            pipeline.delete(replies)
            pipeline.xadd(replies, {"m": b""}, id="1-1")
            pipeline.client_kill_filter(_type="normal", skipme=True)
            await pipeline.execute()
        await until(lambda: made.events["redis_lost"])
        assert isinstance(await made.call(), Allow)


async def test_a_policy_with_side_effects_is_never_put_twice(redis, queue, key_file):
    """What became of it is not known when Redis has lost its data: it runs into its deadline."""
    async with consuming(queue) as consumer, gateway(redis, key_file) as made:
        await made.met()
        await consumer.die()
        waiting = made.put(b'{"once":true}', once=True, seconds=4.0)
        again = made.put(b'{"once":false}')
        await until(lambda: made.worker._exchange.outbox.unsent == 0)
        await restart(redis, empty=True)
        async with consuming(queue) as other:
            assert isinstance(await again.answer(), Allow)
            failure = await waiting.answer()
            assert failure.reason is Reason.WORKER_TIMEOUT
            assert other.handler.documents == [b'{"once":false}']


async def test_a_redis_that_is_gone_is_unavailable_at_once(redis, queue, key_file):
    """After ``queue_redis_seconds`` calls fail at once and say so; before it they wait as long, and no longer."""
    async with consuming(queue), gateway(redis, key_file, queue_redis_seconds=0.3) as made:
        await made.met()
        redis.kill()
        failure = await made.call(seconds=3600)
        assert failure.reason is Reason.WORKER_UNAVAILABLE
        assert "Redis is unavailable" in failure.message
        await until(lambda: made.worker._exchange.link.is_away(0.3))
        await made.call(seconds=3600)
        assert "Redis is unavailable" in made.worker.why
        await in_thread(redis.start)
        await until(lambda: made.worker.why == "")
        await until(lambda: made.events.usable == 1)
        await until(lambda: is_answered(made))


async def test_calls_that_redis_comes_back_for(redis, queue, key_file):
    """The session is new, and what has waited for it is not written yet: it does not fail because it has waited."""
    async with consuming(queue), gateway(redis, key_file) as made:
        await made.met()
        talks = made.worker._exchange
        redis.kill()
        await until(lambda: not talks.link.is_up)
        waiting = made.put()
        (call,) = talks.open
        # So that it is not yet late while Redis is started, however long that takes.
        call.since += 3600
        await in_thread(redis.start)
        await until(lambda: talks.link.is_up or waiting.answers)
        call.since -= 7200
        talks._sweep()
        assert isinstance(await waiting.answer(), Allow)


async def test_a_redis_that_was_never_there(key_file):
    """A gateway that starts before its Redis says so, and calls as soon as both are there."""
    async with gateway(f"redis://127.0.0.1:{servers.free_port()}", key_file, queue_redis_seconds=0.3) as made:
        waiting = made.put(seconds=3600)
        failure = await waiting.answer()
        assert failure.reason is Reason.WORKER_UNAVAILABLE
        assert "Redis is unavailable" in failure.message
        assert made.worker.live == ()


async def test_a_paused_redis_costs_no_more_than_its_time(redis, queue, key_file):
    """One that keeps connections and says nothing: calls fail after ``queue_redis_seconds``; later ones go through."""
    async with consuming(queue), gateway(redis, key_file, queue_redis_seconds=0.5) as made:
        await made.met()
        redis.pause()
        try:
            failure = await made.call(seconds=3600)
            assert failure.reason is Reason.WORKER_UNAVAILABLE
        finally:
            redis.resume()
        await until(lambda: made.worker.why == "")
        await until(lambda: is_answered(made))


async def test_side_effects_of_which_nobody_knows_whether_redis_took_them(redis, queue, key_file, monkeypatch):
    """The answer to the write was lost, and Redis is away for longer than calls wait for it: the effect may still come,
    so its answer is waited for.
    """
    # Behind a look that Redis does not answer, it would not be written at all.
    monkeypatch.setattr(request_exchange, "HEARTBEAT_SECONDS", 3600.0)
    async with consuming(queue) as consumer, gateway(redis, key_file, queue_redis_seconds=2.0) as made:
        await made.met()
        redis.pause()
        try:
            waiting = made.put(b'{"once":true}', once=True)
            repeatable = made.put(b'{"once":false}')
            assert (await repeatable.answer()).reason is Reason.WORKER_UNAVAILABLE
            assert waiting.answers == []
        finally:
            redis.resume()
        assert isinstance(await waiting.answer(), Allow)
        assert consumer.handler.documents.count(b'{"once":true}') == 1


async def test_a_full_redis_is_overload(redis, queue, key_file):
    """OVERLOADED, and what to do; with room again, calls go through."""
    async with consuming(queue), gateway(redis, key_file) as made:
        await made.met()
        await queue.client.config_set("maxmemory", 1)
        try:
            failure = await made.call()
        finally:
            await queue.client.config_set("maxmemory", 0)
        assert failure.reason is Reason.OVERLOADED
        assert "Redis has no free memory" in failure.message
        assert isinstance(await made.call(), Allow)


async def test_a_failover_loses_nothing_that_may_be_repeated(tmp_path, key_file):
    """The master dies, Sentinels make its replica the master: open calls are put to it, and answered."""
    with servers.sentinels(tmp_path) as (master, _replica, watchers):
        hosts = ",".join(f"127.0.0.1:{watcher.port}" for watcher in watchers)
        url = f"redis+sentinel://{hosts}/main"
        queue = Queue(master.url, key_file)
        queue.address = redis_address(url)
        judge = FakeHandler(holds=True)
        async with consuming(queue, judge), gateway(url, key_file) as made:
            await made.met()
            waiting = [made.put(b'{"number":%d}' % number, seconds=55.0) for number in range(5)]
            await until(lambda: len(judge.called) == 5)
            master.kill()
            judge.holds = False
            for called in tuple(judge.called):
                called.answer()
            assert {type(await each.answer()) for each in waiting} == {Allow}
        await queue.client.aclose()
