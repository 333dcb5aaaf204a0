"""Seats: never more are taken than there are, none is lost, and who comes first is served first."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.hooks.seats import PER_CORE, NoSeatError, Seats, seats_of


async def test_so_many_run_and_no_more():
    """The next one waits until one is given back."""
    seats = Seats(2, 10)
    for _ in range(2):
        await seats.take()
    third = asyncio.create_task(seats.take())
    await asyncio.sleep(0)
    assert not third.done()
    seats.give_back()
    await third
    assert seats.taken == 2


async def test_one_more_than_may_wait_is_refused():
    """At once; whoever is patient waits nevertheless."""
    seats = Seats(1, 1)
    await seats.take()
    waiting = asyncio.create_task(seats.take())
    await asyncio.sleep(0)
    with pytest.raises(NoSeatError):
        await seats.take()
    patient = asyncio.create_task(seats.take(patient=True))
    await asyncio.sleep(0)
    for task in (waiting, patient):
        seats.give_back()
        await task


def test_none_given_is_two_for_each_core(monkeypatch):
    """Of those that this process may use."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1, 2})
    assert seats_of(0) == 3 * PER_CORE
    assert seats_of(7) == 7


@given(st.lists(st.sampled_from(["take", "give", "cancel", "turn"]), max_size=60), st.integers(1, 3))
def test_whatever_happens_no_seat_is_lost_or_made(actions, count):
    """Cancelled or not, early or in the very turn in which it would have been served."""

    async def play():
        seats = Seats(count, 100)
        waiting, holding = [], 0
        for action in actions:
            if action == "take":
                waiting.append(asyncio.create_task(seats.take()))
            elif action == "give" and holding:
                seats.give_back()
                holding -= 1
            elif action == "cancel" and waiting:
                waiting[len(waiting) // 2].cancel()
            elif action == "turn":
                await asyncio.sleep(0)
            holding += sum(task.done() and not task.cancelled() for task in waiting)
            waiting = [task for task in waiting if not task.done()]
            assert holding <= seats.taken <= count
        for task in waiting:
            task.cancel()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        for _ in range(holding + results.count(None)):
            seats.give_back()
        assert seats.taken == 0

    asyncio.run(play())
