"""Room is shared by flows, and those that wait for it get it in a fair order."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from gateway.serving.fair_room import FairRoom
from gateway.serving.in_flight_shares import Flow


def flow(tenant):
    return Flow("server", tenant, "entry")


class Holder:
    """Takes room in a task; ``has`` is whether it got it."""

    def __init__(self, room, tenant, amount, cost=1.0):
        self.has = False
        self._left = asyncio.Event()
        self.task = asyncio.create_task(self._hold(room, tenant, amount, cost))

    async def _hold(self, room, tenant, amount, cost):
        async with room.taken(flow(tenant), amount, cost=cost):
            self.has = True
            await self._left.wait()

    async def leave(self):
        self._left.set()
        await self.task


async def turns(number=10):
    """Let all tasks go on."""
    for _ in range(number):
        await asyncio.sleep(0)


async def test_a_tenant_has_half_of_the_room_and_the_rest_stays_free():
    """The third of ten waits; another tenant's does not."""
    room = FairRoom(12)
    flood = [Holder(room, "flood", 3) for _ in range(4)]
    other = Holder(room, "other", 3)
    await turns()
    assert [each.has for each in flood] == [True, True, False, False]
    assert other.has
    for each in (*flood, other):
        await each.leave()
    assert room.is_free


async def test_what_does_not_fit_delays_nothing_smaller():
    """And gets its room when there is enough."""
    room = FairRoom(32)
    first = Holder(room, "a", 18)
    await turns()
    large, small = Holder(room, "b", 24), Holder(room, "c", 4)
    await turns()
    assert (large.has, small.has) == (False, True)
    await first.leave()
    await turns()
    assert large.has
    for each in (small, large):
        await each.leave()


async def test_the_next_is_of_the_tenant_that_had_least():
    """Not of the one that has waited longest."""
    room = FairRoom(1)
    first = Holder(room, "flood", 1)
    await turns()
    flood = [Holder(room, "flood", 1) for _ in range(5)]
    await turns()
    other = Holder(room, "other", 1)
    await first.leave()
    await turns()
    await flood[0].leave()
    await turns()
    assert other.has
    assert not any(each.has for each in flood[1:])
    for each in (other, *flood[1:]):
        await each.leave()


async def test_who_gives_up_leaves_nothing():
    """Waiting, or in the moment in which its room became free."""
    room = FairRoom(1)
    first = Holder(room, "a", 1)
    await turns()
    waiting, lucky, last = (Holder(room, tenant, 1) for tenant in "bcd")
    await turns()
    waiting.task.cancel()
    await turns()
    await first.leave()
    lucky.task.cancel()
    await turns()
    assert last.has
    await last.leave()
    assert room.is_free


async def test_who_gives_up_lets_a_smaller_one_behind_it_go():
    """It was the next of its flow, and did not fit."""
    room = FairRoom(10)
    first = Holder(room, "a", 4)
    await turns()
    large, small = Holder(room, "b", 10), Holder(room, "b", 2)
    await turns()
    assert not small.has
    large.task.cancel()
    await turns()
    assert small.has
    for each in (first, small):
        await each.leave()
    assert room.is_free


async def test_nothing_waits_in_a_closed_room():
    """Those that wait, and those that would."""
    room = FairRoom(1)
    first = Holder(room, "a", 1)
    await turns()
    waiting = Holder(room, "b", 1)
    await turns()
    room.close()
    late = Holder(room, "c", 1)
    for each in (waiting, late):
        with pytest.raises(TimeoutError):
            await each.task
    await first.leave()
    assert room.is_free
    await Holder(room, "d", 1).leave()


async def test_more_than_there_is_takes_all():
    """Alone: no review waits for ever."""
    room = FairRoom(3)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(room.taken(flow("a"), 100, cost=1))
        other = Holder(room, "b", 1)
        await turns()
        assert not other.has
    await other.leave()
    assert room.is_free


async def test_an_error_gives_the_room_back():
    """Whatever ends the context."""
    room = FairRoom(3)
    with pytest.raises(ValueError, match="broken"):
        async with room.taken(flow("a"), 3, cost=1):
            raise ValueError("broken")
    assert room.is_free
