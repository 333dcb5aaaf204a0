"""Redis is killed, restarted with and without its data, paused, filled, failed over: calls fail or wait, none that may
be repeated is lost, and none with side effects is repeated.
"""

import asyncio

import pytest

from gateway.engine.verdicts import Allow
from gateway.reasons import Reason
from gateway.redis.addresses import redis_address
from gateway.transports.queue import abandoned_streams, request_exchange
from tests.caching import servers
from tests.transports.queue.consumers import FakeHandler, Queue, consuming, until
from tests.transports.queue.gateways import running_gateway

pytestmark = pytest.mark.faults


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A long grace period, because this machine may start bridges slowly."""
    monkeypatch.setattr(abandoned_streams, "GRACE_SECONDS", 60.0)


async def is_answered(gateway):
    """Whether a call is answered: with short time limits one may fail because this machine has paused."""
    return isinstance(await gateway.call(), Allow)


async def in_thread(work, *arguments):
    """Run blocking work in a thread."""
    return await asyncio.to_thread(work, *arguments)


async def restart(server, *, empty):
    """Kill the server and start it again, without its data if ``empty``."""
    server.kill()
    if empty:
        server.forget()
    await in_thread(server.start)


@pytest.mark.parametrize("empty", [False, True], ids=["with its data", "empty"])
async def test_open_calls_outlive_a_restart(redis, queue, key_file, empty):
    """Open calls are answered when Redis is back, and so are later ones."""
    handler = FakeHandler(holds=True)
    async with consuming(queue, handler), running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        waiting = [gateway.put(b'{"number":%d}' % number) for number in range(20)]
        await until(lambda: len(handler.calls) == 20)
        await restart(redis, empty=empty)
        handler.holds = False
        for called in tuple(handler.calls):
            called.answer()
        assert {type(await each.answer()) for each in waiting} == {Allow}
        await until(lambda: gateway.worker.why == "")
        assert isinstance(await gateway.call(), Allow)
        await until(queue.is_empty)
        assert gateway.events["redis_lost"]
    # The worker was called once for each, because its bridge remembers replies.
    documents = [each for each in handler.documents if each != b"{}"]
    assert sorted(documents) == sorted(b'{"number":%d}' % number for number in range(20))


async def test_waiting_calls_are_written_again_when_redis_comes_back_empty(redis, queue, key_file):
    """Calls that wait in a lane are written again with the same IDs after a loss of data."""
    async with consuming(queue) as consumer, running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        await consumer.die()
        waiting = [gateway.put(b'{"number":%d}' % number) for number in range(5)]
        await until(lambda: gateway.worker._exchange.outbox.unsent == 0)
        await restart(redis, empty=True)
        async with consuming(queue) as other:
            assert {type(await each.answer()) for each in waiting} == {Allow}
            assert gateway.events["resent"] >= 5
            assert sorted(other.handler.documents) == sorted(b'{"number":%d}' % number for number in range(5))


async def test_a_flush_of_redis_is_noticed_without_a_lost_connection(redis, queue, key_file):
    """After FLUSHALL calls are written again, without a new connection."""
    async with consuming(queue) as consumer, running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        await consumer.die()
        waiting = gateway.put()
        await until(lambda: gateway.worker._exchange.outbox.unsent == 0)
        await queue.client.flushall()
        async with consuming(queue):
            assert isinstance(await waiting.answer(), Allow)
        assert gateway.events["redis_lost"] == 0


async def test_a_server_that_numbers_replies_lower(redis, queue, key_file):
    """After a failover to a server whose clock is behind, replies with lower entry IDs are read."""
    async with consuming(queue), running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        session = gateway.worker._exchange
        replies, ahead = queue.names.replies(session.instance), await queue.now() + 3_600_000
        await queue.client.xadd(replies, {"m": b""}, id=f"{ahead}-0")
        await until(lambda: session._read_to == b"%d-0" % ahead)
        async with queue.client.pipeline(transaction=True) as pipeline:
            pipeline.delete(replies)
            pipeline.xadd(replies, {"m": b""}, id="1-1")
            pipeline.client_kill_filter(_type="normal", skipme=True)
            await pipeline.execute()
        await until(lambda: gateway.events["redis_lost"])
        assert isinstance(await gateway.call(), Allow)


async def test_a_call_with_side_effects_is_never_written_twice(redis, queue, key_file):
    """When Redis has lost its data, a call with side effects ends at its deadline."""
    async with consuming(queue) as consumer, running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        await consumer.die()
        waiting = gateway.put(b'{"once":true}', once=True, seconds=4.0)
        again = gateway.put(b'{"once":false}')
        await until(lambda: gateway.worker._exchange.outbox.unsent == 0)
        await restart(redis, empty=True)
        async with consuming(queue) as other:
            assert isinstance(await again.answer(), Allow)
            failure = await waiting.answer()
            assert failure.reason is Reason.WORKER_TIMEOUT
            assert other.handler.documents == [b'{"once":false}']


async def test_a_redis_that_is_gone_is_unavailable_at_once(redis, queue, key_file):
    """Calls wait for Redis up to ``queue_redis_seconds``; after that they fail at once."""
    async with consuming(queue), running_gateway(redis, key_file, queue_redis_seconds=0.3) as gateway:
        await gateway.sees_bridges()
        redis.kill()
        failure = await gateway.call(seconds=3600)
        assert failure.reason is Reason.WORKER_UNAVAILABLE
        assert "Redis is unavailable" in failure.message
        await until(lambda: gateway.worker._exchange.link.is_away(0.3))
        await gateway.call(seconds=3600)
        assert "Redis is unavailable" in gateway.worker.why
        await in_thread(redis.start)
        await until(lambda: gateway.worker.why == "")
        await until(lambda: gateway.events.usable == 1)
        await until(lambda: is_answered(gateway))


async def test_calls_that_redis_comes_back_for(redis, queue, key_file):
    """Calls that have waited for Redis are written to the new session instead of failing."""
    async with consuming(queue), running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        exchange = gateway.worker._exchange
        redis.kill()
        await until(lambda: not exchange.link.is_up)
        waiting = gateway.put()
        (call,) = exchange.open
        # So that it is not yet late while Redis is started, however long that takes.
        call.since += 3600
        await in_thread(redis.start)
        await until(lambda: exchange.link.is_up or waiting.answers)
        call.since -= 7200
        exchange._sweep()
        assert isinstance(await waiting.answer(), Allow)


async def test_a_redis_that_was_never_there(key_file):
    """A gateway without Redis fails calls with the reason."""
    async with running_gateway(
        f"redis://127.0.0.1:{servers.free_port()}", key_file, queue_redis_seconds=0.3
    ) as gateway:
        waiting = gateway.put(seconds=3600)
        failure = await waiting.answer()
        assert failure.reason is Reason.WORKER_UNAVAILABLE
        assert "Redis is unavailable" in failure.message
        assert gateway.worker.live == ()


async def test_a_paused_redis_costs_no_more_than_its_time(redis, queue, key_file):
    """With a Redis that hangs, calls fail after ``queue_redis_seconds``; later ones succeed."""
    async with consuming(queue), running_gateway(redis, key_file, queue_redis_seconds=0.5) as gateway:
        await gateway.sees_bridges()
        redis.pause()
        try:
            failure = await gateway.call(seconds=3600)
            assert failure.reason is Reason.WORKER_UNAVAILABLE
        finally:
            redis.resume()
        await until(lambda: gateway.worker.why == "")
        await until(lambda: is_answered(gateway))


async def test_side_effects_that_redis_may_have_accepted(redis, queue, key_file, monkeypatch):
    """If Redis' answer to the write is lost, a call with side effects waits for its reply, because the worker may still
    be called.
    """
    # The monitor's commands, which Redis does not answer, would delay the write.
    monkeypatch.setattr(request_exchange, "HEARTBEAT_SECONDS", 3600.0)
    async with consuming(queue) as consumer, running_gateway(redis, key_file, queue_redis_seconds=2.0) as gateway:
        await gateway.sees_bridges()
        redis.pause()
        try:
            waiting = gateway.put(b'{"once":true}', once=True)
            repeatable = gateway.put(b'{"once":false}')
            assert (await repeatable.answer()).reason is Reason.WORKER_UNAVAILABLE
            assert waiting.answers == []
        finally:
            redis.resume()
        assert isinstance(await waiting.answer(), Allow)
        assert consumer.handler.documents.count(b'{"once":true}') == 1


async def test_a_full_redis_is_overload(redis, queue, key_file):
    """Calls fail as OVERLOADED, and succeed once Redis has memory again."""
    async with consuming(queue), running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        await queue.client.config_set("maxmemory", 1)
        try:
            failure = await gateway.call()
        finally:
            await queue.client.config_set("maxmemory", 0)
        assert failure.reason is Reason.OVERLOADED
        assert "Redis has no free memory" in failure.message
        assert isinstance(await gateway.call(), Allow)


async def test_a_failover_loses_nothing_that_may_be_repeated(tmp_path, key_file):
    """After a failover by Sentinels open calls are written to the new master, and answered."""
    with servers.sentinels(tmp_path) as (master, _replica, watchers):
        hosts = ",".join(f"127.0.0.1:{watcher.port}" for watcher in watchers)
        url = f"redis+sentinel://{hosts}/main"
        queue = Queue(master.url, key_file)
        queue.address = redis_address(url)
        handler = FakeHandler(holds=True)
        async with consuming(queue, handler), running_gateway(url, key_file) as gateway:
            await gateway.sees_bridges()
            waiting = [gateway.put(b'{"number":%d}' % number, seconds=55.0) for number in range(5)]
            await until(lambda: len(handler.calls) == 5)
            master.kill()
            handler.holds = False
            for called in tuple(handler.calls):
                called.answer()
            assert {type(await each.answer()) for each in waiting} == {Allow}
        await queue.client.aclose()
