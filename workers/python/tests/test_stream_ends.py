"""ReviewStream at its limits and at its end: half-closed, broken, full, stopped."""

import asyncio

import grpc
import pytest
from grpc_health.v1 import health_pb2

from admission_worker import Limits, Worker, deny, stream
from admission_worker.call_handler import CallHandler
from admission_worker.limits import InFlight
from workers.python.tests.client import PATIENCE, Client, batch, connected, pass_time, policy_call
from workers.python.tests.gates import Gates, messages, plain, waits

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
async def gates():
    return Gates()


async def test_half_closing_answers_what_is_open_and_ends(gates):
    """After the gateway's last message the open calls are still answered, and then the stream ends with OK."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        await calls.send(batch(waits("a")))
        await calls.call.done_writing()
        await gates.until(["a"], gates.begun)
        gates.open("a")
        assert messages(await calls.receive()) == {1: "a"}
        assert await calls.receive() is None
        assert await calls.status() is grpc.StatusCode.OK


async def test_a_stream_without_calls_ends_when_it_is_half_closed(gates):
    """A stream without a call ends with OK."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        assert await calls.rest() == {}
        assert await calls.status() is grpc.StatusCode.OK


class _Flood:
    """A stream whose client sends messages of four calls without end, and reads only when the test begins to."""

    def __init__(self):
        self.sent, self.reading = 0, asyncio.Event()

    async def read(self):
        await asyncio.sleep(0)
        self.sent += 1
        return batch(*(plain("a") for _ in range(4)), first=4 * self.sent).SerializeToString()

    async def write(self, _):
        await self.reading.wait()


async def test_a_gateway_that_does_not_read_is_not_read(gates):
    """Unwritten outcomes are bounded: the worker stops reading, and continues when the client reads."""
    limits, flood = Limits(in_flight=10), _Flood()
    judge = CallHandler(worker="t", policies=gates.worker.policies, version="1", limits=limits, threads=None)
    conversation = stream.StreamHandler(
        context=flood, judge=judge, in_flight=InFlight(10), limits=limits, stopping=asyncio.Event()
    )
    running = asyncio.create_task(conversation.run())
    await _turns(200)
    stopped_at = flood.sent
    flood.reading.set()
    await _turns(200)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert stopped_at < 10
    assert flood.sent > stopped_at


async def _turns(count):
    """Let the loop turn."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_broken_stream_cancels_everything_open(gates):
    """When the gateway disconnects, its calls are cancelled and no longer count for in_flight."""
    async with connected(gates.worker, limits=Limits(in_flight=2)) as client:
        calls = client.stream()
        await calls.send(batch(waits("a"), waits("b")))
        await gates.until(["a", "b"], gates.begun)
        calls.call.cancel()
        await gates.until(["a", "b"], gates.cancelled)
        again = client.stream()
        await again.send(batch(plain("c"), plain("d")))
        assert messages(await again.rest()) == {1: "c", 2: "d"}


async def test_more_calls_than_may_be_in_flight_are_failures(gates):
    """At its limit a worker rejects the call, not the stream; a call counts until its work has ended."""
    async with connected(gates.worker, limits=Limits(in_flight=2)) as client:
        calls = client.stream()
        await calls.send(batch(waits("a"), waits("b"), waits("c"), plain("d")))
        refused = messages(await calls.receive())
        assert set(refused) == {3, 4}
        assert all("limit of 2 calls in flight" in text for text in refused.values())
        await calls.send(batch(cancel=[1]))
        await gates.until(["a"], gates.cancelled)
        await calls.send(batch(plain("e"), first=5))
        assert messages(await calls.receive()) == {5: "e"}
        gates.open("b")
        assert messages(await calls.rest()) == {2: "b"}


async def test_the_limit_in_flight_holds_over_all_calls(gates):
    """Streams and unary calls share the limit of calls."""
    async with connected(gates.worker, limits=Limits(in_flight=1)) as client:
        calls = client.stream()
        await calls.send(batch(waits("a")))
        await gates.until(["a"], gates.begun)
        with pytest.raises(grpc.aio.AioRpcError, match="RESOURCE_EXHAUSTED"):
            await client.review(plain("b"))


async def test_garbage_ends_the_stream(gates):
    """Garbage ends its stream with INVALID_ARGUMENT, its open calls are cancelled, and the worker goes on."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        await calls.send(batch(waits("a")))
        await gates.until(["a"], gates.begun)
        await calls.send(b"\xff\xff\xff")
        assert await calls.status() is grpc.StatusCode.INVALID_ARGUMENT
        await gates.until(["a"], gates.cancelled)
        assert (await client.review(plain("b"))).deny.message == "b"


async def test_a_huge_message_ends_the_stream_only(gates):
    """A message over the limit breaks its stream; the worker goes on."""
    async with connected(gates.worker, limits=Limits(message_bytes=10_000)) as client:
        calls = client.stream()
        await calls.send(batch(plain("x" * 10_000)))
        assert await calls.status() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await client.review(plain("b"))).deny.message == "b"


async def test_a_worker_that_stops_answers_what_is_open(gates):
    """A worker that stops reports it to each Watch, answers the open calls, and ends the stream."""
    serving = gates.worker.serve(limits=Limits(grace_period=3600))
    async with grpc.aio.insecure_channel(await serving.__aenter__()) as channel:
        client = Client(channel)
        calls, watching = client.stream(), client.watch()
        assert (await watching.read()).status == SERVING
        await calls.send(batch(waits("a")))
        await gates.until(["a"], gates.begun)
        stopping = asyncio.create_task(serving.__aexit__(None, None, None))
        assert (await watching.read()).status == NOT_SERVING
        gates.open("a")
        assert messages(await calls.receive()) == {1: "a"}
        assert await calls.receive() is None
        assert await calls.status() is grpc.StatusCode.OK
        await asyncio.wait_for(stopping, PATIENCE)


async def test_a_worker_that_stops_waits_no_longer_than_its_grace_period(gates):
    """Calls that are open when the grace period ends are cancelled."""
    async with connected(gates.worker, limits=Limits(grace_period=0.05)) as client:
        calls = client.stream()
        await calls.send(batch(waits("a")))
        await gates.until(["a"], gates.begun)
    await gates.until(["a"], gates.cancelled)


async def test_a_policy_that_ignores_its_cancellation_fails():
    """A call fails at its timeout whatever the policy does, and counts for in_flight until its work has ended."""
    worker, begun, go_on, ended = Worker("test", version="1"), asyncio.Event(), asyncio.Event(), asyncio.Event()

    @worker.validating("stubborn")
    async def stubborn(request):
        begun.set()
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue
        ended.set()

    @worker.validating("plain")
    def plain_one(request):
        return deny("plain")

    async with connected(worker, limits=Limits(in_flight=1)) as client:
        calls = client.stream()
        await calls.send(batch(policy_call("stubborn", timeout=3600)))
        await begun.wait()
        pass_time(3600)
        assert "no answer within" in messages(await calls.receive())[1]
        await calls.send(batch(policy_call("plain"), first=2))
        assert "calls in flight" in messages(await calls.receive())[2]
        go_on.set()
        await ended.wait()
        await calls.send(batch(policy_call("plain"), first=3))
        assert messages(await calls.receive()) == {3: "plain"}
