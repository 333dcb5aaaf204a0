"""A bridge calls its worker as a gateway would, and forwards outcomes unchanged."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from time import monotonic

import grpc
import pytest

from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import BRIDGE, BRIDGE_PREFIX
from gateway.transports.grpc.worker import GrpcWorker
from gateway.transports.limits import TransportLimits
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue.grpc_forwarder import GrpcForwarder, unchanged
from gateway.transports.queue.names import lane_of
from tests.integration.conversations import Streams, answering
from tests.integration.workers import Gate, always, answer, description, scripted, status
from tests.samples import sample_value
from tests.transports.queue.consumers import until

LIMITS = TransportLimits(worker_connections=1)


class ForwarderClient:
    """A GrpcForwarder in front of one or more addresses."""

    def __init__(self, *targets, limits=LIMITS):
        async def resolving(_):
            return targets

        self.worker = GrpcWorker("queue", targets[0], limits, resolver=resolving, read_outcome=unchanged)
        self.metrics = Metrics(BRIDGE, prefix=BRIDGE_PREFIX)
        self.forwarder = GrpcForwarder(self.worker, self.metrics)

    async def consumer_description(self):
        return await until(lambda: self.forwarder.consumer_description)

    async def call(self, document=b"{}", *, policy="p", once=False, seconds=30.0, phase=pb.PHASE_VALIDATING, **fields):
        """The result of a call."""
        result = asyncio.get_running_loop().create_future()
        called = pb.PolicyCall(policy=policy, phase=phase, settings=b"{}", document=document, uid="u", **fields)
        self.forwarder.handle(called, result.set_result, until=monotonic() + seconds, once=once)
        assert not result.done()
        return await asyncio.wait_for(result, 60)


@asynccontextmanager
async def forwarding(*workers, limits=LIMITS):
    """A client of scripted workers, each given as keyword arguments of ``scripted``."""
    async with AsyncExitStack() as stack:
        targets = [await stack.enter_async_context(scripted("p", **worker)) for worker in workers]
        client = ForwarderClient(*targets, limits=limits)
        try:
            yield client
        finally:
            await client.worker.close()


def outcome(content):
    """The Outcome of a ReviewResponse."""
    return pb.ReviewResponse.FromString(content).outcome


DENIAL = {"deny": pb.Deny(code=418, message="no"), "warnings": ["w"], "audit_annotations": {"k": "v"}, "version": "9"}


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        ({"allow": pb.Allow()}, "allow"),
        ({"deny": pb.Deny()}, "deny"),
        ({"failure": pb.Failure()}, "failure"),
        ({}, "failure"),
    ],
)
async def test_an_outcome_is_counted_by_its_verdict(fields, result):
    """As the gateway counts it, without the name of the one worker."""
    async with forwarding({"review": always(answer(**fields, version="1"))}) as client:
        await client.consumer_description()
        await client.call()
    name, labels = f"{BRIDGE_PREFIX}worker_calls_total", {"transport": "grpc", "result": result}
    assert sample_value(client.metrics, name, labels) == 1


@pytest.mark.parametrize("by", ["stream", "call"])
async def test_an_outcome_is_forwarded_unchanged(by):
    """By stream and by call, valid or not, an outcome is not validated."""
    for content in (
        answer(**DENIAL),
        answer(
            allow=pb.Allow(json_patch=b"no patch"), cache=pb.CacheHint(no_store=pb.CacheHint.NoStore()), version="1"
        ),
        answer(version="1"),
        answer(failure=pb.Failure(message="sorry", reason=pb.FAILURE_REASON_UNKNOWN_POLICY), version="1"),
    ):
        ways = {"review": always(content)} | ({"stream": Streams(answering(content))} if by == "stream" else {})
        async with forwarding(ways) as client:
            await client.consumer_description()
            assert await client.call() == outcome(content)


async def test_a_call_is_forwarded_unchanged():
    """The worker gets policy, phase, settings, document and uid of the call."""
    gate = Gate()
    gate.open.set()
    async with forwarding({"review": gate}) as client:
        await client.consumer_description()
        trace = {"traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01", "tracestate": "a=1"}
        await client.call(b'{"a":1}', phase=pb.PHASE_MUTATING, **trace)
        (called,) = gate.calls
        assert (called.policy, called.phase, called.settings) == ("p", pb.PHASE_MUTATING, b"{}")
        assert (called.document, called.uid) == (b'{"a":1}', "u")


async def test_a_missing_version_is_the_described_one():
    """The bridge writes its description's version into an outcome that has none."""
    async with forwarding(
        {"review": always(answer(allow=pb.Allow())), "describe": always(description("p", version="7"))}
    ) as client:
        await client.consumer_description()
        assert (await client.call()).version == "7"


async def test_only_endpoints_with_the_most_frequent_description_are_called():
    """Of three endpoints two have the same description: the bridge publishes that, and does not call the third."""
    old = {"describe": always(description("p", version="old")), "review": always(answer(deny=pb.Deny()))}
    new = {"describe": always(description("p", version="new")), "review": always(answer(allow=pb.Allow()))}
    async with forwarding(new, old, new) as client:
        await until(lambda: sum(client.worker.described().values()) == 3)
        consumer_description = client.forwarder.consumer_description
        described = pb.DescribeResponse.FromString(consumer_description.description)
        assert described.version == "new"
        assert consumer_description.lane == lane_of(described)
        assert {(await client.call()).version for _ in range(12)} == {"new"}


async def test_an_unreachable_worker():
    """There is no description; a call that arrives nevertheless fails with the transport's reason."""
    client = ForwarderClient("127.0.0.1:1")
    try:
        assert client.forwarder.consumer_description is None
        result = await client.call(seconds=5)
        assert isinstance(result, q.Error)
        assert result.reason in {"WORKER_UNAVAILABLE", "WORKER_TIMEOUT"}
        assert "'queue'" in result.message
        await until(lambda: "127.0.0.1:1 cannot be reached" in client.forwarder.why)
    finally:
        await client.worker.close()


async def test_a_worker_that_goes(log):
    """Listeners are called when the description is removed."""
    descriptions = []
    async with AsyncExitStack() as stack:
        serving = scripted("p")
        target = await serving.__aenter__()
        client = ForwarderClient(target)
        stack.push_async_callback(client.worker.close)
        client.forwarder.listen(lambda: descriptions.append(client.forwarder.consumer_description))
        await client.consumer_description()
        await serving.__aexit__(None, None, None)
        await until(lambda: client.forwarder.consumer_description is None)
        assert [each is None for each in descriptions] == [False, True]


async def test_a_failure_is_retried_at_another_endpoint():
    """A failing endpoint does not fail the call if another one answers."""
    sorry, allow = answer(failure=pb.Failure(message="sorry")), answer(allow=pb.Allow())
    failing, well = ({"stream": Streams(answering(content)), "review": always(content)} for content in (sorry, allow))
    async with forwarding(failing, well) as client:
        await until(lambda: sum(client.worker.described().values()) == 2)
        for _ in range(6):
            assert (await client.call()).WhichOneof("verdict") == "allow"


async def test_side_effects_are_had_once():
    """A call with side effects is sent to one endpoint, and not retried."""
    counted = []

    async def lost(request, context):
        counted.append(request)
        await context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    async with forwarding({"review": lost}, {"review": lost}) as client:
        await until(lambda: sum(client.worker.described().values()) == 2)
        result = await client.call(once=True)
        assert (result.reason, len(counted)) == ("WORKER_UNAVAILABLE", 1)
        counted.clear()
        result = await client.call()
        assert (result.reason, len(counted)) == ("WORKER_UNAVAILABLE", 2)


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
async def test_errors_keep_their_reasons(review, seconds, reason):
    """The gateway gets the reason that a direct call would have."""
    async with forwarding({"review": review}) as client:
        await client.consumer_description()
        result = await client.call(seconds=seconds)
        assert isinstance(result, q.Error)
        assert result.reason == reason


async def test_settings():
    """Settings are validated by a worker with the published description; without one the result is an error."""
    refusal = pb.ValidateSettingsResponse(errors=[pb.SettingsError(message="wrong")])
    async with forwarding({"validate": always(refusal.SerializeToString())}) as client:
        await client.consumer_description()
        request = pb.ValidateSettingsRequest(policy="p", settings=b'{"a":1}')
        assert await client.forwarder.validate_settings(request) == refusal
    async with forwarding({"validate": status(grpc.StatusCode.INTERNAL, "oops")}) as client:
        await client.consumer_description()
        result = await client.forwarder.validate_settings(request)
        assert "oops" in result.message
    unreachable = ForwarderClient("127.0.0.1:1")
    assert isinstance(await unreachable.forwarder.validate_settings(request), q.Error)
    await unreachable.worker.close()


async def test_an_unknown_phase():
    """A call with an unknown phase fails."""
    async with forwarding({}) as client:
        await client.consumer_description()
        result = await client.call(phase=pb.PHASE_UNSPECIFIED)
        assert "phase 0" in result.message


async def test_another_version_in_an_outcome_causes_describe():
    """The worker is described again: it may have been updated behind its address."""
    versions = ["1"]

    async def describe(request, context):
        return description("p", version=versions[-1])

    async def review(request, context):
        return answer(allow=pb.Allow(), version=versions[-1])

    async with forwarding({"describe": describe, "review": review}) as client:
        before = await client.consumer_description()
        versions.append("2")
        assert (await client.call()).version == "2"
        await until(lambda: client.forwarder.consumer_description != before)
        assert pb.DescribeResponse.FromString(client.forwarder.consumer_description.description).version == "2"
