"""Consumers that die, and those that are told to stop: what they had is answered, by them or by others."""

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
    """It listens, as a gateway does."""
    return await queue.listen()


@pytest.fixture
def quick(monkeypatch):
    """What a consumer does each second it does all the time, and it takes the dead for dead sooner."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 0.02)
    monkeypatch.setattr(heartbeat, "DEAD_SECONDS", 0.2)


async def dead(queue, *times):
    """Entries are given to a consumer that does nothing with them; their ids. So often as ``times`` says, each."""
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
    """Make the lane's group, as a consumer before did."""
    await queue.client.xgroup_create(queue.names.calls(LANE), GROUP, "0", mkstream=True)


async def test_work_of_a_dead_consumer_is_claimed(queue, quick):
    """Another one answers it."""
    await group(queue)
    number = await queue.put()
    await dead(queue, 1)
    async with consuming(queue) as running:
        assert (await queue.reply(number)).verdict == ALLOW
        assert running.events["claimed"] == 1
        await until(queue.is_empty)


async def test_a_busy_consumer_takes_over_from_the_dead(queue, quick):
    """Work of a dead consumer does not wait until a living one has room: under load nobody ever has. As much as it has
    room for altogether is taken on top, and no more.
    """
    await group(queue)
    left = [await queue.put(b"left %d" % number) for number in range(5)]
    await dead(queue, *[1] * 5)
    limits = ConsumerLimits(in_flight=3, answer_seconds=ANSWER_SECONDS)
    async with consuming(queue, FakeHandler(holds=True), limits=limits) as busy:
        fresh = [await queue.put(b"fresh %d" % number) for number in range(9)]
        await until(lambda: len(busy.handler.called) == 6)
        for _ in range(20):
            beats = await queue.client.hget(queue.names.workers, busy.name)
            await until(lambda beats=beats: beaten(queue, busy, beats))
        assert len(busy.handler.called) == 6
        busy.handler.holds = False
        for called in tuple(busy.handler.called):
            called.answer()
        for number in (*left, *fresh):
            assert (await queue.reply(number)).verdict == ALLOW
        await until(queue.is_empty)
        assert len(busy.handler.called) == 14


async def beaten(queue, consumer, before):
    """Whether it has said something new of itself."""
    return await queue.client.hget(queue.names.workers, consumer.name) != before


async def test_side_effects_are_not_had_twice(queue, quick):
    """A call of a policy with side effects that was given to a consumer that died is not put again."""
    await group(queue)
    number = await queue.put(once=True)
    await dead(queue, 1)
    async with consuming(queue) as running:
        error = (await queue.reply(number)).error
        assert error.reason == "WORKER_UNAVAILABLE"
        assert "may have had its effect" in error.message
        assert running.handler.called == []
        await until(queue.is_empty)


async def test_an_call_that_ends_its_consumers(queue, quick):
    """After two of them nobody is given it any more; one that only one has died of is put once more."""
    await group(queue)
    first, second = await queue.put(b"poison"), await queue.put(b"unlucky")
    await dead(queue, 2, 1)
    async with consuming(queue) as running:
        assert "may crash them" in (await queue.reply(first)).error.message
        assert (await queue.reply(second)).verdict == ALLOW
        assert running.handler.documents == [b"unlucky"]
        assert running.events["poison"] == 1
        await until(queue.is_empty)


async def test_expired_work_of_a_dead_consumer(queue, quick):
    """It is dropped."""
    await group(queue)
    await queue.put(deadline=await queue.now() - 1)
    await dead(queue, 1)
    async with consuming(queue) as running:
        await until(lambda: running.events["expired"])
        await until(queue.is_empty)
        assert running.handler.called == []


async def test_cancelled_work_of_a_dead_consumer(queue, quick):
    """An entry that its gateway has deleted does not stay pending for ever."""
    await group(queue)
    await queue.put()
    await dead(queue, 1)
    name = queue.names.calls(LANE)
    ((entry, _),) = await queue.client.xrange(name)
    await queue.client.xdel(name, entry)
    assert len(await queue.pending()) == 1
    async with consuming(queue) as running:
        await until(queue.is_empty)
        assert running.handler.called == []


async def test_what_is_in_hand_is_renewed(queue, monkeypatch):
    """A living consumer's slow work is never idle for long, and stays delivered once."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 0.02)
    async with consuming(queue, FakeHandler(holds=True)) as running:
        number = await queue.put()
        await until(lambda: running.handler.called)
        idle = []

        async def renewed():
            (entry,) = await queue.pending()
            idle.append(entry["time_since_delivered"])
            assert entry["times_delivered"] == 1
            return sum(later < before for before, later in pairwise(idle)) >= 3

        await until(renewed)
        running.handler.called[0].answer()
        await queue.reply(number)


async def test_a_read_whose_answer_was_lost(queue):
    """What was delivered to this very consumer, and never came into its hands, nobody has been called: it is put once,
    side effects or not.
    """
    await group(queue)
    numbers = [await queue.put(once=True), await queue.put()]
    running = Running(queue, FakeHandler(), PATIENT)
    name = queue.names.calls(LANE)
    await queue.client.execute_command("XREADGROUP", "GROUP", GROUP, running.name, "STREAMS", name, ">")
    running.start()
    for number in numbers:
        assert (await queue.reply(number)).verdict == ALLOW
    await until(queue.is_empty)
    assert len(running.handler.called) == 2
    await running.stop()


async def test_consumers_that_are_gone_for_good(queue, quick, monkeypatch):
    """They are removed from the group; one that still has something is not."""
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
        # Something may be given back at any moment.
        assert NO_CONSUMER in await queue.consumers()
        assert await queue.reply(await queue.put())
        assert running.name in await queue.consumers()


# ------------------------------------------------------------------------------------------------- stopping


async def test_stopping_answers_what_was_taken(queue):
    """It ends when that is written, takes nothing more, and leaves nothing of its own behind."""
    async with consuming(queue, FakeHandler(holds=True)) as running:
        number = await queue.put(b"taken")
        await until(lambda: running.handler.called)
        running.consumer.stop()

        async def reads_no_more():
            return not await queue.present() and (await queue.client.info("clients"))["blocked_clients"] == 0

        await until(reads_no_more)
        await queue.put(b"after")
        assert not running.task.done()
        running.handler.called[0].answer()
        await asyncio.wait_for(running.task, 30)
        assert (await queue.reply(number)).verdict == ALLOW
        assert await queue.consumers() == set()
        assert await queue.pending() == []
        assert running.handler.documents == [b"taken"]
        assert await queue.client.xlen(queue.names.calls(LANE)) == 1


async def test_stopping_while_nothing_is_there(queue):
    """It ends at once."""
    async with consuming(queue) as running:
        await running.stop()
    assert await queue.present() == {}


async def test_a_consumer_that_is_broken_off_while_redis_fails(queue, monkeypatch):
    """Both at the same moment: it ends."""

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


async def test_what_is_in_hand_when_it_is_killed(queue, quick):
    """Another consumer answers all of it: nothing is lost."""
    async with consuming(queue, FakeHandler(holds=True)) as first:
        numbers = [await queue.put(b"%d" % index) for index in range(20)]
        await until(lambda: len(first.handler.called) == 20)
        await first.die()
        async with consuming(queue) as second:
            for number in numbers:
                assert (await queue.reply(number)).verdict == ALLOW
            await until(queue.is_empty)
            assert len(second.handler.called) == 20
