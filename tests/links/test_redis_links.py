"""Faults on the links of a queue and of the cache: each review has its exact outcome in time, and no entry stays."""

import asyncio

import pytest
import pytest_asyncio

from tests.links.oracles import expected
from tests.links.proxy import FAULTS, Fault
from tests.links.report import cell
from tests.links.reviews import JUDGED
from tests.links.world import World

pytestmark = [pytest.mark.faults, pytest.mark.asyncio(loop_scope="module")]

LINKS = {
    "gateway to Redis": "queue",
    "bridge to Redis": "queue",
    "bridge to worker": "queue",
    "gateway to cache": "cached",
}
"""The transport that uses each link."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory, serving, trust):
    async with World(tmp_path_factory.mktemp("links"), serving, trust, "queue", "cached") as made:
        yield made


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("link", LINKS)
async def test_a_link_of_redis(world, link, fault, record_property):
    """A queue costs the verdicts of its own policies, the cache none; both are used again when the link works again."""
    transport = LINKS[link]
    (other,) = {*LINKS.values()} - {transport}

    async def once():
        await world.judged(transport)
        await world.proxies[link].switch(fault)
        found, beside = await asyncio.gather(world.timely_outcomes(transport), world.timely_outcomes(other))
        await world.proxies[link].switch(Fault.NONE)
        attempts = await world.judged(transport)
        if link == "gateway to cache":
            await world.cached()
        assert set().union(*found.values()) <= expected(link, fault)
        assert set().union(*beside.values()) == {JUDGED}
        return found, attempts

    record_property(*cell(link, transport, fault, await world.repeated(once)))
