"""The gateway's clock jumps by an hour, and by weeks: what it decides stays right."""

import asyncio
import contextlib
from collections import Counter

import pytest
import pytest_asyncio

from gateway.reasons import Reason
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import POLL_SECONDS, until
from tests.links.clock import LIBRARIES, Clock
from tests.links.proxy import Fault
from tests.links.reviews import FAILURE_POLICIES, JUDGED, ReviewCase, cases, connected, decided
from tests.links.world import World

pytestmark = [
    pytest.mark.faults,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not LIBRARIES, reason="there is no libfaketime: make faketime, where apt-get is"),
]

TRANSPORTS = ("grpc-stream", "grpc-unary", "webhook", "queue", "cached")
HOUR = 3600
WEEKS = 30 * 24 * HOUR
"""Longer than the certificates of workers are valid."""

PHASES = ("validating",)
"""As few reviews as will do: the gateway reads a file each time it looks at this clock."""

RECOVERY_SECONDS = 30
"""For the same reason."""

SECURED = ("grpc-stream", "grpc-unary", "webhook")

CACHED = ReviewCase(policy="cached-validating-fail", phase="validating", failure_policy="Fail", verdict="deny")

REFUSED = {each: {Reason.WORKER_UNAVAILABLE} for each in FAILURE_POLICIES}


@pytest.fixture(scope="module", params=[False, True], ids=["wall clock", "monotonic clock too"])
def clock(tmp_path_factory, request):
    return Clock(tmp_path_factory.mktemp("clock"), monotonic=request.param)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory, serving, trust, clock):
    folder = tmp_path_factory.mktemp("links")
    options = {"phases": PHASES, "recovery_seconds": RECOVERY_SECONDS, "env": clock.env}
    async with World(folder, serving, trust, *TRANSPORTS, **options) as made:
        yield made


@pytest.fixture
def jumps(clock):
    """An hour forwards, and back again; a monotonic clock never goes back."""
    return (clock.offset + HOUR,) if clock.is_monotonic else (HOUR, -HOUR, 0)


async def test_verdicts_stay_right(world, clock, jumps):
    """Each transport gets its verdicts after a jump: at once, or the second time if the deadline of a call jumps."""
    for seconds in jumps:
        clock.jump(seconds)
        attempts = await asyncio.gather(*map(world.judged, TRANSPORTS))
        assert max(attempts) <= 2, seconds
    await world.settled()
    assert world.process.page("/readyz")[0] == 200


async def test_a_review_in_flight_has_its_time(world, clock, jumps):
    """It ends when its policies' time has passed, by the monotonic clock: as late as without a jump, or at once."""
    reasons = {Reason.WORKER_TIMEOUT}
    if clock.is_monotonic:
        reasons |= {Reason.BUDGET_EXHAUSTED}
    for seconds in jumps:
        async with unanswered(world) as waiting:
            clock.jump(seconds)
            found = await waiting
        assert set().union(*found.values()) <= reasons, seconds
        await world.judged("grpc-stream")
    await world.settled()


async def test_a_cached_verdict_ages_by_the_clock(world, clock, jumps):
    """It is used while it is fresh; not after its ttl, nor if it is from the future."""

    async def source():
        before = lookups(world)
        client = await connected(world.process.port, world.trust)
        assert await decided(client, CACHED, document="one") == JUDGED
        await client.close()
        (found,) = (lookups(world) - before).elements()
        return found

    assert [await source(), await source()] == ["miss", "memory"]
    for seconds in jumps:
        clock.jump(seconds)
        assert [await source(), await source()] == ["expired", "memory"], seconds


async def test_certificates_are_judged_by_the_clock(world, clock):
    """A worker's certificate that has expired by then is refused on a new connection, until the clock is right."""
    if clock.is_monotonic:
        pytest.skip("a monotonic clock does not go back")
    clock.jump(WEEKS)
    for transport in SECURED:
        await world.proxies[transport].switch(Fault.REFUSED)
        await world.proxies[transport].switch(Fault.NONE)
    # A connection that was being made when the clock jumped may still be good.
    async with asyncio.timeout(WAIT_SECONDS):
        while await asyncio.gather(*map(world.outcomes, SECURED)) != [REFUSED] * len(SECURED):  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(POLL_SECONDS)
    clock.jump(0)
    await asyncio.gather(*map(world.judged, TRANSPORTS))
    await world.settled()


def lookups(world):
    """How often lookups of cached verdicts had each result."""
    labels = {"phase": "validating", "policy": f"test/{CACHED.policy}.test.example.com"}
    results = ("memory", "redis", "miss", "expired")
    return Counter({each: int(world.process.metric("cache_lookups_total", **labels, result=each)) for each in results})


@contextlib.asynccontextmanager
async def unanswered(world):
    """Reviews in flight, whose worker answers only after the block; gives the task of their outcomes."""
    proxy = world.proxies["grpc-stream"]
    await proxy.switch(Fault.BLACKHOLE)
    waiting = asyncio.create_task(world.outcomes("grpc-stream"))
    await until(lambda: world.process.metric("reviews_in_flight") == len(cases("grpc-stream", PHASES)))
    yield waiting
    await proxy.switch(Fault.NONE)
