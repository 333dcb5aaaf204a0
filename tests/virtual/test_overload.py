"""More reviews than can be judged, in virtual time: what is judged then, and how soon."""

import asyncio
import itertools

import pytest

from gateway.documents.documents import Document
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Allow
from gateway.serving.flow_control import FlowControl
from gateway.serving.in_flight_shares import Flow
from gateway.serving.limits import Limits
from gateway.telemetry.events import NoEvents
from gateway.telemetry.labels import Transport
from gateway.transports.call_meter import CallMeter
from gateway.transports.limits import TransportLimits
from tests.virtual.loop import VirtualLoop, clocks
from tests.world import policy

JUDGED_SECONDS, REFUSED_SECONDS = 0.00035, 0.0003
"""What a review costs the loop, and a refusal, which is HTTP and TLS too: measured."""

WORKER_SECONDS = 0.002
CONNECTIONS = 2000
SECONDS = 6


class Crowd:
    """Clients that send their next review as soon as they have the answer to the last one."""

    def __init__(self, loop, flows, budget, namespaces=7):
        self.loop, self.flows, self.budget, self.namespaces = loop, flows, budget, namespaces
        self.judged, self.refused = [], []
        self.is_over = False

    async def client(self, number):
        flow = Flow("server", f"namespace-{number % self.namespaces}", "entry")
        while not self.is_over:
            await self.review(flow, self.loop.time())

    async def review(self, flow, started):
        ends = started + self.budget
        overloaded = None
        if not self.flows.begin(flow, ends):
            overloaded = await self.flows.turn(flow, 1.0, started, ends)
        self.loop.spend(REFUSED_SECONDS if overloaded else JUDGED_SECONDS)
        is_judged = False
        if overloaded is None:
            is_judged = await self.is_judged(flow, ends)
            self.flows.end(flow)
        (self.judged if is_judged else self.refused).append((started, self.loop.time()))

    async def is_judged(self, flow, ends):
        """Whether the worker judges it, in the time that it has."""
        del flow, ends
        await asyncio.sleep(WORKER_SECONDS)
        return True


@pytest.fixture
def loop():
    made = VirtualLoop()
    with clocks(made):
        yield made
    made.close()


@pytest.mark.parametrize("budget", [9.0, 29.0])
def test_goodput_stays_near_capacity_under_any_crowd(loop, budget):
    """Every connection that the gateway accepts always has a review: it judges nine of ten that it could, and soon."""
    flows = FlowControl(Limits(), NoEvents())
    crowd = Crowd(loop, flows, budget)
    clients = [loop.create_task(crowd.client(number)) for number in range(CONNECTIONS)]
    loop.run_for(SECONDS)
    assert len(crowd.judged) > 0.9 * SECONDS / JUDGED_SECONDS
    took = sorted(answered - started for started, answered in crowd.judged)
    assert took[len(took) // 2] < 0.1
    assert took[len(took) * 99 // 100] < 0.3
    crowd.is_over = True
    loop.run_for(budget)
    assert all(client.done() for client in clients)
    assert all(answered - started < budget for started, answered in crowd.judged + crowd.refused)
    assert flows.waiting == 0


def test_a_loop_that_is_always_busy_judges_those_that_are_late(loop):
    """Other work takes all of each iteration, and few reviews come: none is refused."""
    flows = FlowControl(Limits(), NoEvents())
    crowd = Crowd(loop, flows, 9.0)

    async def busy():
        while not crowd.is_over:
            loop.spend(0.02)
            await asyncio.sleep(0)

    tasks = [loop.create_task(busy()), *(loop.create_task(crowd.client(number)) for number in range(20))]
    loop.run_for(SECONDS)
    crowd.is_over = True
    loop.run_for(9.0)
    assert all(each.done() for each in tasks)
    assert crowd.judged
    assert crowd.refused == []


def test_a_loop_that_stood_still_costs_a_small_flow_nothing_more(loop):
    """Beside a flood, a namespace with 33 reviews a second: those that came while the loop stood still are judged."""
    flows = FlowControl(Limits(), NoEvents())
    flood, innocent = Crowd(loop, flows, 9.0), Crowd(loop, flows, 9.0)

    async def arrivals():
        due = loop.time()
        while not flood.is_over:
            while due <= loop.time():
                tasks.append(loop.create_task(innocent.review(Flow("server", "innocent", "entry"), due)))
                due += 0.03
            await asyncio.sleep(due - loop.time())

    async def stall():
        await asyncio.sleep(2.0)
        loop.spend(0.3)

    tasks = [loop.create_task(flood.client(0)) for _ in range(1500)]
    tasks += [loop.create_task(arrivals()), loop.create_task(stall())]
    loop.run_for(SECONDS)
    flood.is_over = True
    loop.run_for(9.0)
    assert all(each.done() for each in tasks)
    assert innocent.refused == []
    assert max(answered - started for started, answered in innocent.judged) < 0.6


class SlowWorker:
    """A channel to a worker with a core of its own, which takes 2 ms for each call, one after the other."""

    name = "slow"

    def __init__(self, loop):
        self.loop = loop
        self.free_at = loop.time()

    def call(self, call, answered, fits=None):
        del fits
        self.free_at = max(self.free_at, self.loop.time()) + WORKER_SECONDS
        return self.loop.call_at(self.free_at, answered, call, Allow()).cancel


class CrowdOfCalls(Crowd):
    """Clients whose reviews one slow worker judges."""

    def __init__(self, loop, flows, budget, limits, namespaces):
        super().__init__(loop, flows, budget, namespaces)
        self.meter = CallMeter(SlowWorker(loop), Transport.GRPC, NoEvents(), limits=limits)
        self.policy, self.document = policy("one"), Document(content=b"{}", digest=b"")

    async def is_judged(self, flow, ends):
        call = PolicyCall(
            id=1,
            policy=self.policy,
            document=self.document,
            deadline=ends,
            uid="u",
            cancellable=True,
            namespace=flow.tenant,
        )
        answered = self.loop.create_future()
        self.meter.call(call, lambda _, answer: answered.set_result(answer))
        return await answered == Allow()


@pytest.mark.parametrize("namespaces", [1, 2, 7, 300])
def test_a_worker_that_is_slower_than_its_callers_is_kept_busy_and_the_gateway_idle(loop, namespaces):
    """It judges all that it can, and a refused review has waited: refusals take no time from it or from others."""
    flows = FlowControl(Limits(), NoEvents())
    crowd = CrowdOfCalls(loop, flows, 9.0, TransportLimits(), namespaces)
    clients = [loop.create_task(crowd.client(number)) for number in range(CONNECTIONS)]
    loop.run_for(SECONDS)
    assert len(crowd.judged) > 0.9 * SECONDS / WORKER_SECONDS - TransportLimits().worker_in_flight
    took = [answered - started for started, answered in crowd.judged]
    assert len(crowd.refused) < SECONDS * CONNECTIONS / 2
    assert min(answered - started for started, answered in crowd.refused) > 1.9
    assert max(took) < 5.0
    crowd.is_over = True
    loop.run_for(9.0)
    assert all(client.done() for client in clients)
    assert flows.waiting == 0


LOOK_SECONDS = 1.5e-6
"""What it takes to find out that a namespace has its share: measured."""


@pytest.mark.parametrize("namespaces", [49, 90, 700, 2000])
def test_namespaces_that_wait_in_vain_take_a_tenth_of_the_loop(loop, monkeypatch, namespaces):
    """However many there are: whenever a review ends, each of them could be looked at again."""
    flows, looks = FlowControl(Limits(), NoEvents()), itertools.count()
    is_full = flows._shares.is_full

    def looked_at(*arguments):
        next(looks)
        return is_full(*arguments)

    monkeypatch.setattr(flows._shares, "is_full", looked_at)
    crowd = CrowdOfCalls(loop, flows, 9.0, TransportLimits(), namespaces)
    clients = [loop.create_task(crowd.client(number)) for number in range(CONNECTIONS)]
    loop.run_for(1.0)
    before = next(looks)
    loop.run_for(SECONDS)
    assert (next(looks) - before) * LOOK_SECONDS < 0.12 * SECONDS
    assert len(crowd.judged) > 0.9 * SECONDS / WORKER_SECONDS
    crowd.is_over = True
    loop.run_for(9.0)
    assert all(client.done() for client in clients)
