"""Faults between gateway and workers, and between clients and gateway: each review has its exact outcome in time."""

import asyncio
import signal

import pytest
import pytest_asyncio

from gateway.reasons import Reason
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import until
from tests.links.oracles import expected
from tests.links.proxy import FAULTS, Fault
from tests.links.report import cell
from tests.links.reviews import (
    BUDGET_SECONDS,
    JUDGED,
    LOSS_SECONDS,
    by_failure_policy,
    cases,
    connected,
    decided,
    delivered,
)
from tests.links.world import World

pytestmark = [pytest.mark.faults, pytest.mark.asyncio(loop_scope="module")]

STOPPED_SECONDS = 2.5
"""More than a review of two seconds may take until the server cancels it: its budget, and ``overrun_seconds``."""

LINKS = ("grpc-stream", "grpc-unary", "webhook")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory, serving, trust):
    async with World(tmp_path_factory.mktemp("links"), serving, trust, *LINKS) as made:
        yield made


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("link", LINKS)
async def test_a_link_to_a_worker(world, link, fault, record_property):
    """It costs verdicts of its own policies only, and is used again when it works again."""
    other = LINKS[LINKS.index(link) - 1]

    async def once():
        await world.judged(link)
        await world.proxies[link].switch(fault)
        found, beside = await asyncio.gather(world.timely_outcomes(link), world.timely_outcomes(other))
        await world.proxies[link].switch(Fault.NONE)
        attempts = await world.judged(link)
        assert set().union(*found.values()) <= expected(link, fault)
        assert set().union(*beside.values()) == {JUDGED}
        return found, attempts

    record_property(*cell("gateway to worker", link, fault, await world.repeated(once)))


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_link_from_clients(world, fault, record_property):
    """A client loses its answer at most, and never gets another verdict; a client beside it loses nothing. Half of the
    connections are from before the fault.
    """
    proxy = world.proxies["clients"]
    every = [case for link in LINKS for case in cases(link)]
    # What only delays loses nothing, however slow the machine.
    wait = BUDGET_SECONDS if expected("clients", fault) == {JUDGED} else LOSS_SECONDS

    async def once():
        closing = []
        clients = [await connected(proxy.port, world.trust) for _ in every]
        await proxy.switch(fault)
        lossy = [
            delivered(proxy.port, world.trust, case, closing, client=client, wait=wait)
            for case, client in zip(every * 2, [*clients, *[None] * len(every)], strict=True)
        ]
        seen, beside = await asyncio.gather(asyncio.gather(*lossy), world.timely_outcomes("grpc-stream"))
        await proxy.switch(Fault.NONE)
        await asyncio.gather(*closing)
        attempts = max([await world.judged(link, port=proxy.port) for link in LINKS])
        assert set(seen) == expected("clients", fault)
        assert set().union(*beside.values()) == {JUDGED}
        return by_failure_policy(every * 2, seen), attempts

    record_property(*cell("API server to gateway", "HTTPS", fault, await world.repeated(once)))


async def test_a_gateway_that_stood_still_answers_by_failure_policy(world):
    """It was stopped for longer than its reviews had; each answer has the reason of its failure."""
    proxy, every = world.proxies["grpc-stream"], cases("grpc-stream")
    clients = [await connected(world.process.port, world.trust) for _ in every]
    await proxy.switch(Fault.BLACKHOLE)
    pairs = zip(clients, every, strict=True)
    waiting = [asyncio.create_task(decided(client, each, timeout=2, wait=WAIT_SECONDS)) for client, each in pairs]
    await until(lambda: world.process.metric("reviews_in_flight") == len(every))
    world.process.process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(STOPPED_SECONDS)
    world.process.process.send_signal(signal.SIGCONT)
    found = await asyncio.gather(*waiting)
    await proxy.switch(Fault.NONE)
    for client in clients:
        await client.close()
    await world.judged("grpc-stream")
    await world.settled()
    assert set(found) == {Reason.BUDGET_EXHAUSTED}
