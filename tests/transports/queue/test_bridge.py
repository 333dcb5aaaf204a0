"""A bridge that gets one stop signal, or two."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from gateway.policies.workers.targets import GrpcTarget
from gateway.transports.limits import TransportLimits
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue import bridge as module
from gateway.transports.queue.bridge import Bridge
from tests.integration.workers import Gate, answer, scripted
from tests.transports.queue.consumers import ALLOW, STREAM, until


@pytest.fixture
async def queue(queue):
    """With a reply stream, as a gateway has."""
    return await queue.listen()


@asynccontextmanager
async def bridging(queue, target):
    """A bridge to the worker at ``target``: its stop event, and its task."""
    stop = asyncio.Event()
    worker = GrpcTarget(target=target, directory="")
    bridge = Bridge(
        queue.address, STREAM, seals=queue.seals, worker=worker, limits=TransportLimits(worker_connections=1)
    )
    running = asyncio.create_task(bridge.run(stop))
    try:
        await until(lambda: not bridge.why)
        yield stop, running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def is_gone(queue):
    """Whether no bridge is present."""
    return not await queue.present()


async def test_two_stop_signals_at_once_are_one(queue, monkeypatch):
    """The call in hand is answered, although the second signal comes before its answer."""
    monkeypatch.setattr(module, "AGAIN_SECONDS", 600.0)
    gate = Gate(answer(allow=ALLOW.allow))
    async with scripted("p", review=gate) as target, bridging(queue, target) as (stop, running):
        number = await _put(queue)
        await until(lambda: gate.calls)
        stop.set()
        await until(lambda: is_gone(queue))
        stop.set()
        gate.open.set()
        assert (await queue.reply(number)).HasField("verdict")
        await asyncio.wait_for(running, 60)


async def test_a_later_stop_signal_ends_it_at_once(queue, monkeypatch):
    """A later second signal ends the bridge, although its worker has not answered."""
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.0)
    gate = Gate()
    async with scripted("p", review=gate) as target, bridging(queue, target) as (stop, running):
        await _put(queue)
        await until(lambda: gate.calls)
        stop.set()
        await until(lambda: is_gone(queue))
        # The signal is repeated until AGAIN_SECONDS have passed.
        await until(lambda: stop.set() or running.done())
        assert not await queue.replies()


async def _put(queue):
    """Write a call to the lane of the only bridge."""
    (presence,) = (await queue.present()).values()
    call = pb.PolicyCall(policy="p", phase=pb.PHASE_VALIDATING, settings=b"{}", document=b"{}", uid="u")
    return await queue.put_request(q.Request(call=call), lane=presence.lane, to=presence.lane)
