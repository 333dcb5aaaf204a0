"""A bridge is told to stop: once, once more, and by whoever says everything twice."""

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
    """It listens, as a gateway does."""
    return await queue.listen()


@asynccontextmanager
async def bridging(queue, target):
    """A bridge to the worker there: what it is stopped with, and its run."""
    stop = asyncio.Event()
    worker = GrpcTarget(target=target, directory="")
    made = Bridge(queue.address, STREAM, seals=queue.seals, worker=worker, limits=TransportLimits(worker_connections=1))
    running = asyncio.create_task(made.run(stop))
    try:
        await until(lambda: not made.why)
        yield stop, running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def is_gone(queue):
    """Whether no bridge stands in the queue."""
    return not await queue.present()


async def test_two_words_to_stop_at_once_are_one(queue, monkeypatch):
    """What was taken is answered, although the second one comes before the answer."""
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


async def test_a_later_word_to_stop_ends_it_at_once(queue, monkeypatch):
    """Although its worker has not answered."""
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.0)
    gate = Gate()
    async with scripted("p", review=gate) as target, bridging(queue, target) as (stop, running):
        await _put(queue)
        await until(lambda: gate.calls)
        stop.set()
        await until(lambda: is_gone(queue))
        # Whenever it is counted from.
        await until(lambda: stop.set() or running.done())
        assert not await queue.replies()


async def _put(queue):
    """Put a call where the only bridge takes from."""
    (presence,) = (await queue.present()).values()
    call = pb.PolicyCall(policy="p", phase=pb.PHASE_VALIDATING, settings=b"{}", document=b"{}", uid="u")
    return await queue.put_request(q.Request(call=call), lane=presence.lane, to=presence.lane)
