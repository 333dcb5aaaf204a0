"""The oracle of what a fault leaves behind finds a leak of one, and takes no pool for one."""

from collections import Counter

import pytest

from tests.links.growth import REPETITIONS, SLACK, Growth

pytestmark = pytest.mark.asyncio

POOL = "descriptor socket"


class Process:
    """An observer of what a test says."""

    def __init__(self):
        self.holds = Counter({POOL: 3, "task keep": 1, "objects": 1000, "memory": 1000})

    def held(self):
        return Counter(self.holds)


@pytest.fixture
def process():
    return Process()


async def growth_of(process, *kinds):
    """It has looked at the process."""
    made = Growth(*kinds, settle_seconds=0)
    await made.start(process)
    return made


def leaving(process, kind, *numbers):
    """A fault that leaves so many behind each time; the last number counts for all further times."""
    left = [*numbers]

    async def once():
        process.holds[kind] += left[0] if len(left) == 1 else left.pop(0)
        return process.holds[kind]

    return once


@pytest.mark.parametrize("kind", [POOL, "task lost", "object gateway.Call"])
async def test_one_that_is_left_by_each_fault_is_found(process, kind):
    """It fails at the first fault that leaves one."""
    growth = await growth_of(process)
    with pytest.raises(AssertionError, match=f"left behind by each of {REPETITIONS}: .*{kind}': 1"):
        await growth.repeated(leaving(process, kind, 1))


async def test_a_pool_may_grow(process):
    """It does so some times, until it is large enough."""
    growth = await growth_of(process)
    assert await growth.repeated(leaving(process, POOL, 1, 2, 0)) == [4, 6, 6]
    assert await growth.repeated(leaving(process, "task lost", 0)) == [0]


async def test_a_leak_after_a_pool_has_grown_is_found(process):
    """What there was at most is the measure, not what there was at the start."""
    growth = await growth_of(process)
    await growth.repeated(leaving(process, POOL, 4, 0))
    with pytest.raises(AssertionError, match="left behind by each"):
        await growth.repeated(leaving(process, POOL, 1))


async def test_bytes_and_objects_have_a_limit(process):
    """All faults together may leave so much, and no more."""
    growth = await growth_of(process)
    await growth.repeated(leaving(process, "memory", SLACK["memory"]))
    with pytest.raises(AssertionError, match="left behind by all faults"):
        await growth.repeated(leaving(process, "memory", 1))


async def test_other_kinds_are_not_looked_at(process):
    """They grow for reasons of their own, such as a cache of what is new each time."""
    growth = await growth_of(process, "task ", "descriptor ")
    assert len(await growth.repeated(leaving(process, "object gateway.Cached", 1))) == 1
    with pytest.raises(AssertionError, match="task lost"):
        await growth.repeated(leaving(process, "task lost", 1))
