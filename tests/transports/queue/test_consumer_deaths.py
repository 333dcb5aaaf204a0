"""Consumers that die or stop: the calls that they had in hand are answered, by them or by other consumers."""

import asyncio
from itertools import pairwise

import pytest

from gateway.transports.limits import ConsumerLimits
from gateway.transports.queue import heartbeat
from gateway.transports.queue.commands import NO_CONSUMER
from gateway.transports.queue.names import GROUP
from tests.transports.queue.consumers import (
    ALLOW,
    ANSWER_SECONDS,
    LANE,
    PATIENT,
    FakeHandler,
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
def quick(monkeypatch):
    """Heartbeats all the time instead of each second, and consumers count as dead sooner."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 0.02)
    monkeypatch.setattr(heartbeat, "DEAD_SECONDS", 0.2)


async def dead(queue, *times):
    """Deliver entries to a dead consumer, each as often as ``times`` states."""
    for number, often in enumerate(times):
        name = queue.names.calls(LANE)
        consumer = f"dead-{number}"
        answer = await queue.client.execute_command(
            "XREADGROUP", "GROUP", GROUP, consumer, "COUNT", 1, "STREAMS", name, ">"
        )
        entry = next(iter(answer[0][1]))[0]
        for _ in range(often - 1):
            await queue.client.execute_command("XCLAIM", name, GROUP, consumer, 0, entry)


async def group(queue):
    """Create the lane's group, as an earlier consumer did."""
    await queue.client.xgroup_create(queue.names.calls(LANE), GROUP, "0", mkstream=True)


async def test_work_of_a_dead_consumer_is_claimed(queue, quick):
    """Another consumer answers it."""
    await group(queue)
    number = await queue.put()
    await dead(queue, 1)
    async with consuming(queue) as running:
        assert (await queue.reply(number)).verdict == ALLOW
        assert running.events["claimed"] == 1
        await until(queue.is_empty)


async def test_a_busy_consumer_claims_entries_of_dead_ones(queue, quick):
    """Entries of a dead consumer do not wait until another one has room. It claims as many entries as it has room for
    altogether, and no more.
    """
    await group(queue)
    left = [await queue.put(b"left %d" % number) for number in range(5)]
    await dead(queue, *[1] * 5)
    limits = ConsumerLimits(in_flight=3, answer_seconds=ANSWER_SECONDS)
    async with consuming(queue, FakeHandler(holds=True), limits=limits) as busy:
        fresh = [await queue.put(b"fresh %d" % number) for number in range(9)]
        await until(lambda: len(busy.handler.calls) == 6)
        for _ in range(20):
            presence = await queue.client.hget(queue.names.workers, busy.name)
            await until(lambda presence=presence: has_renewed(queue, busy, presence))
        assert len(busy.handler.calls) == 6
        busy.handler.holds = False
        for called in tuple(busy.handler.calls):
            called.answer()
        for number in (*left, *fresh):
            assert (await queue.reply(number)).verdict == ALLOW
        await until(queue.is_empty)
        assert len(busy.handler.calls) == 14


async def has_renewed(queue, consumer, before):
    """Whether a consumer has written a new presence."""
    return await queue.client.hget(queue.names.workers, consumer.name) != before


async def test_side_effects_happen_once(queue, quick):
    """A call with side effects that was delivered to a dead consumer is not repeated."""
    await group(queue)
    number = await queue.put(once=True)
    await dead(queue, 1)
    async with consuming(queue) as running:
        error = (await queue.reply(number)).error
        assert error.reason == "WORKER_UNAVAILABLE"
        assert "may have had its effect" in error.message
        assert running.handler.calls == []
        await until(queue.is_empty)


async def test_a_call_that_crashes_its_consumers(queue, quick):
    """A call is refused after two consumers have died with it; after one, it is repeated once."""
    await group(queue)
    first, second = await queue.put(b"poison"), await queue.put(b"repeated")
    await dead(queue, 2, 1)
    async with consuming(queue) as running:
        assert "may crash them" in (await queue.reply(first)).error.message
        assert (await queue.reply(second)).verdict == ALLOW
        assert running.handler.documents == [b"repeated"]
        assert running.events["poison"] == 1
        await until(queue.is_empty)


async def test_expired_work_of_a_dead_consumer(queue, quick):
    """A claimed entry whose deadline is over is dropped."""
    await group(queue)
    await queue.put(deadline=await queue.now() - 1)
    await dead(queue, 1)
    async with consuming(queue) as running:
        await until(lambda: running.events["expired"])
        await until(queue.is_empty)
        assert running.handler.calls == []


async def test_canceled_work_of_a_dead_consumer(queue, quick):
    """An entry that its gateway has deleted does not stay pending."""
    await group(queue)
    await queue.put()
    await dead(queue, 1)
    name = queue.names.calls(LANE)
    ((entry, _),) = await queue.client.xrange(name)
    await queue.client.xdel(name, entry)
    assert len(await queue.pending()) == 1
    async with consuming(queue) as running:
        await until(queue.is_empty)
        assert running.handler.calls == []


async def test_entries_in_hand_are_renewed(queue, monkeypatch):
    """Renewals reset the idle time of an entry, and do not count as deliveries."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 0.02)
    async with consuming(queue, FakeHandler(holds=True)) as running:
        number = await queue.put()
        await until(lambda: running.handler.calls)
        idle = []

        async def renewed():
            (entry,) = await queue.pending()
            idle.append(entry["time_since_delivered"])
            assert entry["times_delivered"] == 1
            return sum(later < before for before, later in pairwise(idle)) >= 3

        await until(renewed)
        running.handler.calls[0].answer()
        await queue.reply(number)


async def test_a_read_whose_answer_was_lost(queue):
    """Entries of a read whose answer was lost are handled once, side effects or not: they reached no worker."""
    await group(queue)
    numbers = [await queue.put(once=True), await queue.put()]
    running = Running(queue, FakeHandler(), PATIENT)
    name = queue.names.calls(LANE)
    await queue.client.execute_command("XREADGROUP", "GROUP", GROUP, running.name, "STREAMS", name, ">")
    running.start()
    for number in numbers:
        assert (await queue.reply(number)).verdict == ALLOW
    await until(queue.is_empty)
    assert len(running.handler.calls) == 2
    await running.stop()


async def test_consumers_that_are_gone_for_good(queue, quick, monkeypatch):
    """Dead consumers are removed from the group, unless they have pending entries."""
    monkeypatch.setattr(heartbeat, "TIDY_SECONDS", 0.0)
    monkeypatch.setattr(heartbeat, "GONE_SECONDS", 0.1)
    monkeypatch.setattr(heartbeat, "DEAD_SECONDS", 1000.0)
    await group(queue)
    for name in ("gone", NO_CONSUMER):
        await queue.client.xgroup_createconsumer(queue.names.calls(LANE), GROUP, name)
    await queue.put()
    await dead(queue, 1)
    async with consuming(queue) as running:

        async def gone():
            return "gone" not in await queue.consumers()

        await until(gone)
        assert "dead-0" in await queue.consumers()
        # Entries may be given back at any moment.
        assert NO_CONSUMER in await queue.consumers()
        assert await queue.reply(await queue.put())
        assert running.name in await queue.consumers()


# ------------------------------------------------------------------------------------------------- stopping


async def test_stopping_answers_calls_in_hand(queue):
    """The consumer ends when the replies are written, reads no more calls, and removes its data from Redis."""
    async with consuming(queue, FakeHandler(holds=True)) as running:
        number = await queue.put(b"taken")
        await until(lambda: running.handler.calls)
        running.consumer.stop()

        async def reads_no_more():
            return not await queue.present() and (await queue.client.info("clients"))["blocked_clients"] == 0

        await until(reads_no_more)
        await queue.put(b"after")
        assert not running.task.done()
        running.handler.calls[0].answer()
        await asyncio.wait_for(running.task, 30)
        assert (await queue.reply(number)).verdict == ALLOW
        assert await queue.consumers() == set()
        assert await queue.pending() == []
        assert running.handler.documents == [b"taken"]
        assert await queue.client.xlen(queue.names.calls(LANE)) == 1


async def test_stopping_with_nothing_in_hand(queue):
    """The consumer ends at once."""
    async with consuming(queue) as running:
        await running.stop()
    assert await queue.present() == {}


async def test_a_consumer_that_is_canceled_while_redis_fails(queue, monkeypatch):
    """A cancellation at the moment of an error still ends the consumer."""

    async def keep(self, redis):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError from None

    monkeypatch.setattr(heartbeat.Heartbeat, "keep", keep)
    async with consuming(queue) as running:
        await until(lambda: queue.client.exists(queue.names.calls(LANE)))
        running.task.cancel()
        done, _ = await asyncio.wait([running.task], timeout=10)
        running.task.cancel()
        assert done


async def test_calls_in_hand_of_a_killed_consumer(queue, quick):
    """Another consumer answers all calls of a killed one."""
    async with consuming(queue, FakeHandler(holds=True)) as first:
        numbers = [await queue.put(b"%d" % index) for index in range(20)]
        await until(lambda: len(first.handler.calls) == 20)
        await first.die()
        async with consuming(queue) as second:
            for number in numbers:
                assert (await queue.reply(number)).verdict == ALLOW
            await until(queue.is_empty)
            assert len(second.handler.calls) == 20
