"""The memory keeps what was used last, in as many bytes as it may."""

import asyncio
import os
import tracemalloc
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.caching.memory import ENTRY_OVERHEAD, Memory
from gateway.telemetry.events import NoEvents
from tests.caching.world import Events

OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["put", "get", "remove"]), st.integers(0, 9), st.integers(0, 400)), max_size=60
)


def key_of(number: int, mark: bytes = b"m" * 16) -> bytes:
    return mark + number.to_bytes(32)


@pytest.mark.property
@given(OPERATIONS, st.integers(300, 4000))
def test_against_a_model(operations, limit):
    """After any operations it holds what a list in order of use would, in at most so many bytes, exactly counted."""
    events = Events()
    memory = Memory(limit, events)
    model: OrderedDict[bytes, bytes] = OrderedDict()
    for what, number, size in operations:
        at, content = key_of(number), bytes(size)
        if what == "get":
            assert memory.get(at) == model.get(at)
            if at in model:
                model.move_to_end(at)
        elif what == "remove":
            memory.remove(at)
            model.pop(at, None)
        else:
            memory.put(at, content)
            model.pop(at, None)
            model[at] = content
            while sum(len(each) + ENTRY_OVERHEAD for each in model.values()) > limit:
                model.popitem(last=False)
        assert dict(memory._entries) == dict(model)
        assert memory.size == sum(len(each) + ENTRY_OVERHEAD for each in model.values()) <= limit
        if operations and events.sizes != (0, 0):
            assert events.sizes == (memory.size, len(memory))


@pytest.mark.parametrize("count", [1000, 5500, 11_000])
def test_the_overhead_is_true(count):
    """What the interpreter takes for entries, full and after as many again, is at most what is counted for them."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        memory = Memory(count * (100 + ENTRY_OVERHEAD), NoEvents())
        for _ in range(2 * count):
            memory.put(os.urandom(48), os.urandom(100))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(memory) == count
    assert taken <= memory.size


async def test_a_sweep_lets_others_run():
    """Purging a hundred thousand entries leaves the loop to others after each thousand."""
    memory = Memory(10**9, NoEvents())
    for number in range(20_000):
        memory.put(key_of(number, (b"a" if number % 2 else b"b") * 16), b"")
    turns = 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    await memory.sweep(frozenset((b"a" * 16,)))
    task.cancel()
    assert turns >= 20
    assert len(memory) == 10_000
    assert memory.get(key_of(2, b"b" * 16)) == b""
