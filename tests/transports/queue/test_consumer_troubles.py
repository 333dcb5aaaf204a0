"""A consumer whose Redis is killed, restarted with or without its data, paused, filled, failed over, or a cluster."""

import asyncio
from types import SimpleNamespace

import pytest

from gateway.redis.addresses import redis_address
from gateway.transports.limits import ConsumerLimits
from gateway.transports.queue import heartbeat, reply_writer
from tests.caching import servers
from tests.docs.pages import blocks
from tests.transports.queue.consumers import (
    ALLOW,
    ANSWER_SECONDS,
    LANE,
    PATIENT,
    WAIT_SECONDS,
    FakeHandler,
    Queue,
    Running,
    consuming,
    until,
)

pytestmark = pytest.mark.faults


@pytest.fixture
async def queue(queue):
    """With a reply stream, as a gateway has."""
    return await queue.listen()


@pytest.fixture
def clock(monkeypatch):
    """The clock of the reply writer: it stands still until the test moves it to a call's deadline."""
    stopped = SimpleNamespace(now=0.0)
    monkeypatch.setattr(reply_writer, "monotonic", lambda: stopped.now)
    return stopped


async def away(running):
    """Wait until the consumer has noticed that Redis is unavailable."""
    await until(lambda: "Redis is unavailable" in running.consumer.why)


async def restart(server, *, empty=False):
    """Kill the server, as a power failure does, and start it again."""
    await asyncio.to_thread(server.kill)
    if empty:
        server.forget()
    await asyncio.to_thread(server.start)


async def test_a_redis_that_starts_later(tmp_path, key_file):
    """The consumer waits for Redis, reports why it reads no calls, and reads them once Redis is available."""
    with servers.server(tmp_path) as server:
        server.kill()
        queue = Queue(server.url, key_file)
        async with consuming(queue, ready=False) as running:
            await away(running)
            server.start()
            await queue.listen()
            assert (await queue.reply(await queue.put())).verdict == ALLOW
            assert running.consumer.why == ""
        await queue.client.aclose()


async def test_a_restart_with_its_data(queue, redis):
    """Calls in hand and waiting calls are answered once each."""
    limits = ConsumerLimits(in_flight=1, answer_seconds=ANSWER_SECONDS)
    async with consuming(queue, FakeHandler(holds=True), limits=limits) as running:
        numbers = [await queue.put(b"in hand"), await queue.put(b"waiting", once=True)]
        await until(lambda: running.handler.calls)
        await asyncio.to_thread(redis.kill)
        await away(running)
        running.handler.calls[0].answer()
        running.handler.holds = False
        await asyncio.to_thread(redis.start)
        for number in numbers:
            assert (await queue.reply(number)).verdict == ALLOW
        await until(queue.is_empty)
        assert running.handler.documents == [b"in hand", b"waiting"]


async def test_a_restart_without_its_data(queue, redis):
    """The consumer creates group and presence again, and answers a repeated call that it has in hand."""
    async with consuming(queue, FakeHandler(holds=True)) as running:
        deadline = await queue.now() + 60_000
        number = await queue.put(deadline=deadline)
        await until(lambda: running.handler.calls)
        await restart(redis, empty=True)
        await queue.listen()
        await queue.put(number=number, deadline=deadline)
        await until(lambda: running.events["repeated"])
        running.handler.calls[0].answer()
        assert (await queue.reply(number)).verdict == ALLOW
        await until(queue.is_empty)
        assert len(running.handler.calls) == 1

        async def present():
            return running.name in await queue.present()

        await until(present)


async def test_data_that_vanishes_under_a_running_consumer(queue):
    """After FLUSHALL the group is created again, and later calls are answered."""
    async with consuming(queue) as running:
        await queue.reply(await queue.put())
        await queue.client.flushall()
        await queue.listen()
        assert (await queue.reply(await queue.put())).verdict == ALLOW
        assert running.events["redis_lost"] == 0


async def test_a_redis_that_hangs(queue, redis):
    """Answers of Redis have a time limit; when it continues, the consumer writes the waiting reply."""
    limits = ConsumerLimits(answer_seconds=0.2)
    async with consuming(queue, FakeHandler(holds=True), limits=limits) as running:
        number = await queue.put(seconds=60)
        await until(lambda: running.handler.calls)
        redis.pause()
        running.handler.calls[0].answer()
        await away(running)
        redis.resume()
        assert (await queue.reply(number)).verdict == ALLOW
        await until(queue.is_empty)


async def test_an_answer_that_is_late_when_redis_is_back(queue, redis, clock):
    """The reply is dropped, and its entry acknowledged."""
    async with consuming(queue, FakeHandler(holds=True)) as running:
        await queue.put()
        (called,) = await until(lambda: running.handler.calls)
        await asyncio.to_thread(redis.kill)
        await away(running)
        called.answer()
        clock.now = called.until
        await until(lambda: running.events["late"] == 1)
        assert running.consumer.in_hand == 0
        await asyncio.to_thread(redis.start)
        await until(queue.is_empty)
        assert await queue.replies() == []


async def test_stopping_while_redis_is_away(queue, redis, clock):
    """A stopping consumer waits for Redis until the deadline of its last call."""
    async with consuming(queue, FakeHandler(holds=True)) as running:
        await queue.put()
        (called,) = await until(lambda: running.handler.calls)
        await asyncio.to_thread(redis.kill)
        await away(running)
        running.consumer.stop()
        called.answer()
        tried = running.events["redis_lost"]
        await until(lambda: running.events["redis_lost"] > tried + 2)
        assert not running.task.done()
        clock.now = called.until
        async with asyncio.timeout(WAIT_SECONDS):
            await running.task


async def test_a_full_redis(queue, redis, monkeypatch, clock):
    """Replies wait for memory; late ones are dropped and their entries deleted, which frees some."""
    monkeypatch.setattr(reply_writer, "FULL_SECONDS", 0.02)
    async with consuming(queue, FakeHandler(holds=True)) as running:
        late, number = await queue.put(b"late", seconds=50), await queue.put(b"timely", seconds=60)
        await until(lambda: len(running.handler.calls) == 2)
        await queue.client.config_set("maxmemory", 1)
        for called in running.handler.calls:
            called.answer()
        await until(lambda: "no free memory" in running.consumer.why)
        clock.now = running.handler.calls[0].until
        await until(lambda: running.events["late"] == 1)
        assert await queue.client.xlen(queue.names.calls(LANE)) == 1
        assert not running.task.done()
        await queue.client.config_set("maxmemory", 0)
        assert (await queue.reply(number)).verdict == ALLOW
        assert late not in [reply.id for reply in await queue.replies()]
        await until(queue.is_empty)
        await until(lambda: not running.consumer.why)


async def test_a_lane_of_another_type(queue, log):
    """The consumer reconnects until the key is deleted, and logs no internal error."""
    await queue.client.set(queue.names.calls(LANE), "something else")
    async with consuming(queue, ready=False) as running:
        await until(lambda: running.events["redis_lost"] > 2)
        await queue.client.delete(queue.names.calls(LANE))
        assert (await queue.reply(await queue.put())).verdict == ALLOW
    assert sum(entry["log_level"] == "error" for entry in log) == 0


async def test_a_user_with_no_more_rights_than_documented(queue, redis, monkeypatch):
    """The ACL of docs/queues.md permits all that a consumer does, claims and leaving included."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 0.02)
    monkeypatch.setattr(heartbeat, "DEAD_SECONDS", 0.2)
    monkeypatch.setattr(heartbeat, "TIDY_SECONDS", 0.0)
    monkeypatch.setattr(heartbeat, "GONE_SECONDS", 0.1)
    (block,) = [block for block in blocks("text", pages_of="docs/queues.md") if block.text.startswith("user bridge")]
    rights = block.text.replace("{admission:scanner}", "{test}").replace("PASSWORD", "secret").split()
    rights.remove("+client|setinfo")  # of Redis 7
    await queue.client.execute_command("ACL", "SETUSER", *rights[1:])
    limited = _Elsewhere(queue, redis.url.replace("redis://", "redis://bridge:secret@"))
    first = Running(limited, FakeHandler(holds=True), PATIENT).start()
    number = await queue.put()
    await until(lambda: first.handler.calls)
    await queue.client.xgroup_createconsumer(queue.names.calls(LANE), "workers", "gone")
    await first.die()
    second = Running(limited, FakeHandler(), PATIENT).start()
    assert (await queue.reply(number)).verdict == ALLOW

    async def tidied():
        return await queue.consumers() <= {second.name}

    await until(tidied)
    await second.stop()
    assert await queue.consumers() == set()
    assert list(await queue.present()) == [first.name]
    assert second.events["redis_lost"] == first.events["redis_lost"] == 0


async def test_a_cluster(tmp_path, key_file):
    """All keys of a queue are in one slot, so its transactions work in a cluster."""
    with servers.cluster(tmp_path) as nodes:
        url = nodes[0].url.replace("redis://", "redis+cluster://")
        probe = Queue(nodes[0].url, key_file)
        number = await probe.client.execute_command("CLUSTER KEYSLOT", probe.names.workers)
        await probe.client.aclose()
        home = next(
            node for node, end in zip(nodes, [16384 * part // 3 for part in (1, 2, 3)], strict=True) if number < end
        )
        queue = await Queue(home.url, key_file).listen()
        running = Running(_Elsewhere(queue, url), FakeHandler(), PATIENT).start()
        try:
            await running.ready()
            assert (await queue.reply(await queue.put())).verdict == ALLOW
            await until(queue.is_empty)
            await running.stop()
            assert await queue.present() == {}
        finally:
            await running.die()
            await queue.client.aclose()


async def test_a_failover(tmp_path, key_file):
    """After a failover the consumer connects to the new master, and writes its replies there."""
    with servers.sentinels(tmp_path) as (master, replica, watchers):
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in watchers)
        queue = await Queue(master.url, key_file).listen()
        elsewhere = _Elsewhere(queue, f"redis+sentinel://{hosts}/main")
        running = Running(elsewhere, FakeHandler(holds=True), PATIENT).start()
        after = Queue(replica.url, key_file)
        after.gateway = queue.gateway
        try:
            await running.ready()
            number = await queue.put(seconds=60)
            await until(lambda: running.handler.calls)
            await queue.client.execute_command("WAIT", 1, 10_000)
            await asyncio.to_thread(master.kill)
            running.handler.calls[0].answer()

            async def promoted():
                return (await after.client.info("replication"))["role"] == "master"

            await until(promoted)
            assert (await after.reply(number)).verdict == ALLOW
            await until(after.is_empty)
            assert len(running.handler.calls) == 1
        finally:
            await running.die()
            await queue.client.aclose()
            await after.client.aclose()


class _Elsewhere:
    """A queue with another URL."""

    def __init__(self, queue, url):
        self.address = redis_address(url)
        self.names, self.seals = queue.names, queue.seals
