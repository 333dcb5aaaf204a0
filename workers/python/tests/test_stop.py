"""A worker that stops first reports it, still answers new calls, and then closes."""

import asyncio
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc_health.v1 import health_pb2

from admission_worker import Limits
from workers.python.tests.client import PATIENCE, Client, batch
from workers.python.tests.gates import Gates, messages, plain, waits

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
async def gates():
    return Gates()


class Stopping:
    """A served worker that a test can stop while its client is connected."""

    def __init__(self, serving, client):
        self._serving = serving
        self.client = client
        self.stopped = None

    async def begin(self):
        """Begin to stop it, and wait until a Watch reports it."""
        watching = self.client.watch()
        assert (await watching.read()).status == SERVING
        self.begin_stop()
        assert (await watching.read()).status == NOT_SERVING
        assert await watching.read() is grpc.aio.EOF

    def begin_stop(self):
        """Begin to stop it."""
        self.stopped = asyncio.create_task(self._serving.__aexit__(None, None, None))

    async def end(self):
        """Wait until it has stopped."""
        await asyncio.wait_for(self.stopped, PATIENCE)

    async def hurry(self):
        """Do not wait for its quiet period."""
        self.stopped.cancel()
        await asyncio.wait_for(asyncio.wait({self.stopped}), PATIENCE)


@asynccontextmanager
async def stopping(gates, **limits):
    """A worker with a quiet period of an hour, so that a slow machine cannot end it."""
    serving = gates.worker.serve(limits=Limits(**{"quiet_period": 3600, "grace_period": 3600, **limits}))
    async with grpc.aio.insecure_channel(await serving.__aenter__()) as channel:
        yield Stopping(serving, Client(channel))


async def test_calls_after_the_signal_are_answered(gates):
    """A stopping worker answers on open and new streams and by Review, until the gateway notices."""
    async with stopping(gates) as worker:
        calls = worker.client.stream()
        await calls.send(batch(plain("before")))
        assert messages(await calls.receive()) == {1: "before"}
        await worker.begin()
        assert await worker.client.health() == NOT_SERVING
        await calls.send(batch(plain("after"), first=2))
        assert messages(await calls.receive()) == {2: "after"}
        assert (await worker.client.review(plain("unary"))).deny.message == "unary"
        assert (await worker.client.describe()).worker == "test"
        assert messages(await calls.rest()) == {}
        assert await calls.status() is grpc.StatusCode.OK
        await worker.hurry()


async def test_a_half_closed_stream_ends_when_nothing_of_it_is_open(gates):
    """A half-closed stream ends without the quiet period."""
    async with stopping(gates) as worker:
        calls = worker.client.stream()
        await calls.send(batch(waits("a")))
        await gates.until(["a"], gates.begun)
        await worker.begin()
        await calls.call.done_writing()
        gates.open("a")
        assert messages(await calls.receive()) == {1: "a"}
        assert await calls.receive() is None
        assert await calls.status() is grpc.StatusCode.OK
        await worker.hurry()


async def test_a_stream_that_is_not_half_closed_ends_when_it_is_quiet(gates):
    """A stream with an open call stays open, and then ends with OK after the quiet period."""
    async with stopping(gates, quiet_period=0.05) as worker:
        calls = worker.client.stream()
        await calls.send(batch(waits("a")))
        await gates.until(["a"], gates.begun)
        await worker.begin()
        gates.open("a")
        assert messages(await calls.receive()) == {1: "a"}
        assert await calls.receive() is None
        assert await calls.status() is grpc.StatusCode.OK
        await worker.end()


async def test_an_open_call_is_answered_while_it_closes(gates):
    """An open Review does not delay the close, and is still answered."""
    async with stopping(gates, quiet_period=0.01) as worker:
        open_call = asyncio.create_task(worker.client.review(waits("a")))
        await gates.until(["a"], gates.begun)
        await worker.begin()
        gates.open("a")
        assert (await open_call).deny.message == "a"
        await worker.end()


async def test_the_grace_period_bounds_all_of_it(gates):
    """A gateway that keeps calling does not prevent the end of a worker."""
    async with stopping(gates, grace_period=0.05) as worker:
        calls = worker.client.stream()
        await calls.send(batch(waits("a")))
        await gates.until(["a"], gates.begun)
        worker.begin_stop()
        await worker.end()
        await gates.until(["a"], gates.cancelled)
        assert await calls.status() is not grpc.StatusCode.OK
