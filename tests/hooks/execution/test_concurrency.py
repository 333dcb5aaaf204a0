"""Slots of ConcurrencyLimiter: their number, their fair distribution, cancellation."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.hooks.execution.concurrency import PER_CORE, RESERVED, ConcurrencyLimiter, QueueFullError, process_limit
from tests.integration.process import WAIT_SECONDS


async def calls(limiter, hook, number):
    """Calls of a hook, each of which has a slot or waits by now."""
    tasks = [asyncio.create_task(limiter.acquire(hook)) for _ in range(number)]
    await asyncio.sleep(0)
    return tasks


def served(tasks):
    return sum(task.done() for task in tasks)


async def turn_over():
    for _ in range(3):
        await asyncio.sleep(0)


async def cancel(*tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_no_more_run_than_there_are_slots():
    """The next call waits for a released slot; calls of one hook are served in order."""
    limiter = ConcurrencyLimiter(3, 10)
    first = await calls(limiter, "a", 2)
    second = await calls(limiter, "a", 2)
    assert (served(first), served(second), limiter.running) == (2, 0, 2)
    limiter.release("a")
    await turn_over()
    assert [task.done() for task in second] == [True, False]
    await cancel(*second)


async def test_the_last_slot_is_reserved_for_a_hook_without_one():
    """A single hook gets all slots but one; another hook gets the last one at once, and the first hook never does."""
    limiter = ConcurrencyLimiter(4, 100)
    hanging = await calls(limiter, "hanging", 50)
    assert served(hanging) == 3
    for _ in range(5):
        await asyncio.wait_for(limiter.acquire("well"), WAIT_SECONDS)
        limiter.release("well")
        await turn_over()
    assert served(hanging) == 3
    await cancel(*hanging)


async def test_while_fewer_hooks_hang_than_there_are_slots_the_others_continue():
    """The last free slot is not given to a hook that has one."""
    limiter = ConcurrencyLimiter(4, 100)
    hanging = {name: await calls(limiter, name, 50) for name in "abc"}
    # a has three, b one; each gives up once, as at its time limit.
    for name in "aab":
        limiter.release(name)
        await turn_over()
    for _ in range(3):
        await asyncio.wait_for(limiter.acquire("well"), WAIT_SECONDS)
        limiter.release("well")
    await cancel(*(task for tasks in hanging.values() for task in tasks))


async def test_the_next_slot_goes_to_the_hook_with_the_fewest():
    """However early the other hooks came; equal hooks take turns."""
    limiter = ConcurrencyLimiter(5, 100)
    tasks = {"a": await calls(limiter, "a", 20)}
    tasks |= {name: await calls(limiter, name, 20) for name in "bc"}
    assert {name: served(each) for name, each in tasks.items()} == {"a": 4, "b": 1, "c": 0}
    limiter.release("a")
    await turn_over()
    assert {name: served(each) for name, each in tasks.items()} == {"a": 4, "b": 1, "c": 1}
    # Of a, which is as good as any other, one goes on; the last seat is kept.
    for _ in range(2):
        limiter.release("a")
        await turn_over()
    assert {name: served(each) for name, each in tasks.items()} == {"a": 5, "b": 1, "c": 1}
    assert limiter.running == 4
    await cancel(*(task for each in tasks.values() for task in each))


async def test_with_more_hooks_than_slots_they_take_turns():
    """One hook after the other, and from the beginning."""
    limiter, order = ConcurrencyLimiter(2, 100), []

    async def run(hook):
        await limiter.acquire(hook)
        order.append(hook)
        await asyncio.sleep(0)
        limiter.release(hook)

    for hook in "xy":
        await limiter.acquire(hook)
    tasks = [asyncio.create_task(run(hook)) for hook in "abcde" for _ in range(3)]
    await asyncio.sleep(0)
    for hook in "xy":
        limiter.release(hook)
    await asyncio.gather(*tasks)
    assert Counter(order) == dict.fromkeys("abcde", 3)
    assert all(set(order[at : at + 5]) == set("abcde") for at in (0, 5, 10))


async def test_each_hook_has_a_queue_of_its_own():
    """A call beyond the limit is rejected at once; calls of other hooks are not."""
    limiter = ConcurrencyLimiter(2, 2)
    tasks = await calls(limiter, "a", 3)
    with pytest.raises(QueueFullError):
        await limiter.acquire("a")
    tasks += await calls(limiter, "b", 2)
    assert limiter.running == 2
    await cancel(*tasks)


async def test_a_single_slot_is_not_reserved():
    """Any hook may have it."""
    limiter = ConcurrencyLimiter(1, 10)
    await limiter.acquire("a")
    tasks = await calls(limiter, "a", 1)
    limiter.release("a")
    await tasks[0]


def test_the_default_is_two_slots_per_core_and_one(monkeypatch):
    """Of the cores that this process may use."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1, 2})
    assert process_limit(0) == 3 * PER_CORE + RESERVED
    assert process_limit(7) == 7


@given(
    st.lists(st.tuples(st.sampled_from(["take", "give", "cancel", "turn"]), st.sampled_from("abc")), max_size=60),
    st.integers(1, 4),
)
def test_no_slot_is_lost_or_given_twice(actions, count):  # noqa: C901 - four kinds of actions
    """Whenever calls are cancelled; and no slot stays free while a call waits that may have it."""

    async def play():  # noqa: C901 - as above
        limiter = ConcurrencyLimiter(count, 100)
        waiting, holding = {}, Counter()
        for action, hook in actions:
            if action == "take":
                waiting[asyncio.create_task(limiter.acquire(hook))] = hook
            elif action == "give" and holding[hook]:
                limiter.release(hook)
                holding[hook] -= 1
            elif action == "cancel" and waiting:
                list(waiting)[len(waiting) // 2].cancel()
            elif action == "turn":
                await turn_over()
            for task in [task for task in waiting if task.done()]:
                held = waiting.pop(task)
                holding[held] += not task.cancelled()
            assert holding.total() <= limiter.running <= count
            if action == "turn":
                free = count - holding.total()
                assert free == 0 or all(free == RESERVED and holding[hook] for hook in waiting.values())
        for task in waiting:
            task.cancel()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        for hook, result in zip(waiting.values(), results, strict=True):
            holding[hook] += result is None
        for hook, number in holding.items():
            for _ in range(number):
                limiter.release(hook)
        assert limiter.running == 0

    asyncio.run(play())
