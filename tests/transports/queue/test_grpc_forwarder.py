"""How a bridge calls its worker: as a gateway would, and its outcomes come out as the worker gave them."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from time import monotonic

import grpc
import pytest

from gateway.transports.grpc.worker import GrpcWorker
from gateway.transports.limits import TransportLimits
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue.grpc_forwarder import GrpcForwarder, unchanged
from gateway.transports.queue.names import lane_of
from tests.integration.conversations import Streams, answering
from tests.integration.workers import Gate, always, answer, description, scripted, status
from tests.transports.queue.consumers import until

LIMITS = TransportLimits(worker_connections=1)


class Calling:
    """A GrpcForwarder in front of one or more addresses."""

    def __init__(self, *targets, limits=LIMITS):
        async def resolving(_):
            return targets

        self.worker = GrpcWorker("queue", targets[0], limits, resolving=resolving, reading=unchanged)
        self.relaying = GrpcForwarder(self.worker)

    async def consumer_description(self):
        return await until(lambda: self.relaying.consumer_description)

    async def call(self, document=b"{}", *, policy="p", once=False, seconds=30.0, phase=pb.PHASE_VALIDATING, **fields):
        """What is said to a call."""
        said = asyncio.get_running_loop().create_future()
        called = pb.PolicyCall(policy=policy, phase=phase, settings=b"{}", document=document, uid="u", **fields)
        self.relaying.handle(called, said.set_result, until=monotonic() + seconds, once=once)
        assert not said.done()
        return await asyncio.wait_for(said, 60)


@asynccontextmanager
async def relaying(*workers, limits=LIMITS):
    """Of scripted workers, each given as keyword arguments of ``scripted``."""
    async with AsyncExitStack() as stack:
        targets = [await stack.enter_async_context(scripted("p", **worker)) for worker in workers]
        calling = Calling(*targets, limits=limits)
        try:
            yield calling
        finally:
            await calling.worker.close()


def outcome(content):
    """The Outcome of a ReviewResponse."""
    return pb.ReviewResponse.FromString(content).outcome


DENIAL = {"deny": pb.Deny(code=418, message="no"), "warnings": ["w"], "audit_annotations": {"k": "v"}, "version": "9"}


@pytest.mark.parametrize("by", ["stream", "call"])
async def test_an_outcome_comes_out_as_it_was_given(by):
    """By stream and by call, whatever is in it, and nothing is looked into."""
    for content in (
        answer(**DENIAL),
        answer(
            allow=pb.Allow(json_patch=b"no patch"), cache=pb.CacheHint(no_store=pb.CacheHint.NoStore()), version="1"
        ),
        answer(version="1"),
        answer(failure=pb.Failure(message="sorry", reason=pb.FAILURE_REASON_UNKNOWN_POLICY), version="1"),
    ):
        ways = {"review": always(content)} | ({"stream": Streams(answering(content))} if by == "stream" else {})
        async with relaying(ways) as calling:
            await calling.consumer_description()
            assert await calling.call() == outcome(content)


async def test_an_call_goes_out_as_it_came_in():
    """Policy, phase, settings, document and uid; the time that is left is the call's deadline."""
    gate = Gate()
    gate.open.set()
    async with relaying({"review": gate}) as calling:
        await calling.consumer_description()
        await calling.call(b'{"a":1}', phase=pb.PHASE_MUTATING, traceparent="00-" + "1" * 32 + "-" + "2" * 16 + "-01")
        (called,) = gate.calls
        assert (called.policy, called.phase, called.settings) == ("p", pb.PHASE_MUTATING, b"{}")
        assert (called.document, called.uid) == (b'{"a":1}', "u")


async def test_a_version_that_is_not_named_is_the_described_one():
    """The gateway knows one description of a bridge, and not that of the connection on which was answered."""
    async with relaying(
        {"review": always(answer(allow=pb.Allow())), "describe": always(description("p", version="7"))}
    ) as a:
        await a.consumer_description()
        assert (await a.call()).version == "7"


async def test_it_stands_for_what_most_say_and_calls_only_those():
    """Of three replicas two say the same: the third is not called, and is what is stood for when it is alone."""
    old = {"describe": always(description("p", version="old")), "review": always(answer(deny=pb.Deny()))}
    new = {"describe": always(description("p", version="new")), "review": always(answer(allow=pb.Allow()))}
    async with relaying(new, old, new) as calling:
        await until(lambda: sum(calling.worker.described().values()) == 3)
        consumer_description = calling.relaying.consumer_description
        described = pb.DescribeResponse.FromString(consumer_description.description)
        assert described.version == "new"
        assert consumer_description.lane == lane_of(described)
        assert {(await calling.call()).version for _ in range(12)} == {"new"}


async def test_a_worker_that_is_not_there():
    """Nobody stands in the queue; a call that comes all the same fails with the transport's own reason."""
    calling = Calling("127.0.0.1:1")
    try:
        assert calling.relaying.consumer_description is None
        said = await calling.call(seconds=5)
        assert isinstance(said, q.Error)
        assert said.reason in {"WORKER_UNAVAILABLE", "WORKER_TIMEOUT"}
        assert "'queue'" in said.message
        await until(lambda: "127.0.0.1:1 cannot be reached" in calling.relaying.why)
    finally:
        await calling.worker.close()


async def test_a_worker_that_goes(log):
    """Whoever listens is told; nobody stands in the queue any more."""
    heard = []
    async with AsyncExitStack() as stack:
        serving = scripted("p")
        target = await serving.__aenter__()
        calling = Calling(target)
        stack.push_async_callback(calling.worker.close)
        calling.relaying.listen(lambda: heard.append(calling.relaying.consumer_description))
        await calling.consumer_description()
        await serving.__aexit__(None, None, None)
        await until(lambda: calling.relaying.consumer_description is None)
        assert [each is None for each in heard] == [False, True]


async def test_a_failure_may_be_called_elsewhere():
    """A replica that fails does not fail the call, where another one judges."""
    sorry, allow = answer(failure=pb.Failure(message="sorry")), answer(allow=pb.Allow())
    failing, well = ({"stream": Streams(answering(said)), "review": always(said)} for said in (sorry, allow))
    async with relaying(failing, well) as calling:
        await until(lambda: sum(calling.worker.described().values()) == 2)
        for _ in range(6):
            assert (await calling.call()).WhichOneof("verdict") == "allow"


async def test_side_effects_are_had_once():
    """A policy with side effects is put to one replica, whatever becomes of that."""
    counted = []

    async def lost(request, context):
        counted.append(request)
        await context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    async with relaying({"review": lost}, {"review": lost}) as calling:
        await until(lambda: sum(calling.worker.described().values()) == 2)
        said = await calling.call(once=True)
        assert (said.reason, len(counted)) == ("WORKER_UNAVAILABLE", 1)
        counted.clear()
        said = await calling.call()
        assert (said.reason, len(counted)) == ("WORKER_UNAVAILABLE", 2)


@pytest.mark.parametrize(
    ("review", "seconds", "reason"),
    [
        (status(grpc.StatusCode.INTERNAL, "oops"), 30.0, "WORKER_FAILURE"),
        (status(grpc.StatusCode.UNAVAILABLE, "gone"), 30.0, "WORKER_UNAVAILABLE"),
        (always(b"\xff" * 50), 30.0, "INVALID_RESPONSE"),
        (Gate(), 1.0, "WORKER_TIMEOUT"),
    ],
    ids=["status", "unavailable", "garbage", "late"],
)
async def test_what_goes_wrong_keeps_its_reason(review, seconds, reason):
    """The gateway is told what it would have found itself."""
    async with relaying({"review": review}) as calling:
        await calling.consumer_description()
        said = await calling.call(seconds=seconds)
        assert isinstance(said, q.Error)
        assert said.reason == reason


async def test_settings():
    """They are put to a worker of the description that is stood for; without one the answer says why not."""
    refusal = pb.ValidateSettingsResponse(errors=[pb.SettingsError(message="wrong")])
    async with relaying({"validate": always(refusal.SerializeToString())}) as calling:
        await calling.consumer_description()
        request = pb.ValidateSettingsRequest(policy="p", settings=b'{"a":1}')
        assert await calling.relaying.validate_settings(request) == refusal
    async with relaying({"validate": status(grpc.StatusCode.INTERNAL, "oops")}) as calling:
        await calling.consumer_description()
        said = await calling.relaying.validate_settings(request)
        assert "oops" in said.message
    no_consumer = Calling("127.0.0.1:1")
    assert isinstance(await no_consumer.relaying.validate_settings(request), q.Error)
    await no_consumer.worker.close()


async def test_a_phase_that_nobody_knows():
    """It is not guessed."""
    async with relaying({}) as calling:
        await calling.consumer_description()
        said = await calling.call(phase=pb.PHASE_UNSPECIFIED)
        assert "phase 0" in said.message


async def test_another_version_in_an_answer_calls_for_a_new_description():
    """The worker is described again: it may have been updated behind its address."""
    versions = ["1"]

    async def describe(request, context):
        return description("p", version=versions[-1])

    async def review(request, context):
        return answer(allow=pb.Allow(), version=versions[-1])

    async with relaying({"describe": describe, "review": review}) as calling:
        before = await calling.consumer_description()
        versions.append("2")
        assert (await calling.call()).version == "2"
        await until(lambda: calling.relaying.consumer_description != before)
        assert pb.DescribeResponse.FromString(calling.relaying.consumer_description.description).version == "2"
