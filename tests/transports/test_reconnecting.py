"""A connection that is lost is described anew, however quickly there is another one: it may be another version."""

import asyncio

import grpc

from gateway.transports import TransportLimits
from gateway.transports.acquaintance import Acquaintance
from gateway.transports.agreement import Agreement
from gateway.transports.grpc import GrpcWorker
from gateway.transports.pool import ReachedWorker

PATIENCE = 10


class Flickering:
    """A channel that is connected whenever somebody looks, and was not in between."""

    def __init__(self):
        self.changes = asyncio.Queue()

    def get_state(self, *, try_to_connect=False):
        return grpc.ChannelConnectivity.READY

    async def wait_for_state_change(self, last):
        assert last is grpc.ChannelConnectivity.READY
        await self.changes.get()


async def test_a_connection_that_is_back_already_was_lost():
    """Lost and found again before the loop's next turn is lost all the same."""
    worker = GrpcWorker("labels", "unix:/nonexistent", TransportLimits())
    await worker.close()
    worker._channel = Flickering()
    lost = asyncio.create_task(worker.disconnected())
    worker._channel.changes.put_nowait(None)
    await asyncio.wait_for(lost, PATIENCE)


class Restarting:
    """A worker whose connection is lost while it describes itself for the first time, and never again."""

    name = "labels"
    target = "unix:/nonexistent"

    def __init__(self):
        self.described = 0
        self.restarted = asyncio.Event()
        self.described_again = asyncio.Event()

    async def connected(self):
        pass

    async def disconnected(self):
        if self.restarted.is_set():
            await asyncio.Event().wait()
        self.restarted.set()

    async def describe(self):
        await self.restarted.wait()
        self.described += 1
        if self.described == 2:
            self.described_again.set()


def reached(worker):
    """A worker as a pool has it."""
    return ReachedWorker(key=(), connection=worker, supervisor=None, socket=None, agreement=Agreement(60.0))


async def test_a_connection_lost_during_describe_is_described_again():
    """The loss is noticed from before Describe on, and the watch ends with what it watches for."""
    worker = Restarting()
    told = []
    task = asyncio.create_task(Acquaintance(reached(worker), worker.describe, told.append).keep())
    await asyncio.wait_for(worker.described_again.wait(), PATIENCE)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert told == []
