"""A gateway's client over a real channel: the four RPCs and health."""

import asyncio
import json
from contextlib import asynccontextmanager

import grpc
from grpc_health.v1 import health_pb2
from msgspec.structs import replace

from admission_worker import Limits
from admission_worker.proto.admission.worker.v1 import worker_pb2

MUTATING, VALIDATING = worker_pb2.PHASE_MUTATING, worker_pb2.PHASE_VALIDATING

SERVICE = "/admission.worker.v1.Worker/"

PATIENCE = 60.0
"""The time limit of a test's wait; a test that passes needs a fraction of it."""


def pass_time(seconds):
    """Advance the running loop's clock by so many seconds: timers that are due fire next."""
    loop = asyncio.get_running_loop()
    before = loop.time
    loop.time = lambda: before() + seconds


def policy_call(policy, *, phase=VALIDATING, settings=b"{}", document=b"{}", index=None, timeout=None, **fields):
    """A policy call; ``document`` and ``settings`` as bytes or values; ``timeout`` in seconds."""
    made = worker_pb2.PolicyCall(policy=policy, phase=phase, settings=_text(settings), **fields)
    if index is not None:
        made.document_index = index
    elif document is not None:
        made.document = _text(document)
    if timeout is not None:
        made.timeout.FromNanoseconds(int(timeout * 1e9))
    return made


def batch(*calls, cancel=(), documents=(), first=1):
    """A message of the stream: the calls under the ids ``first``, ``first`` + 1, ..., then the cancels."""
    item = worker_pb2.ReviewStreamRequest.RequestItem
    cancelled = worker_pb2.ReviewStreamRequest.Cancel()
    items = [item(id=number, call=one) for number, one in enumerate(calls, first)]
    items += [item(id=number, cancel=cancelled) for number in cancel]
    return worker_pb2.ReviewStreamRequest(items=items, documents=documents)


def _text(value):
    return value if isinstance(value, bytes) else json.dumps(value).encode()


class Client:
    """One connection."""

    def __init__(self, channel):
        self.channel = channel

    async def call(self, method, request, answer, *, seconds=PATIENCE):
        """A unary call; ``request`` as a message or as bytes."""
        sent = request if isinstance(request, bytes) else request.SerializeToString()
        return await self.channel.unary_unary(SERVICE + method, None, answer.FromString)(sent, timeout=seconds)

    async def describe(self):
        """Describe."""
        return await self.call("Describe", worker_pb2.DescribeRequest(), worker_pb2.DescribeResponse)

    async def validate(self, policy, settings):
        """ValidateSettings."""
        request = worker_pb2.ValidateSettingsRequest(policy=policy, settings=_text(settings))
        return await self.call("ValidateSettings", request, worker_pb2.ValidateSettingsResponse)

    async def review(self, one, *, seconds=PATIENCE):
        """Review: the Outcome of a PolicyCall."""
        request = worker_pb2.ReviewRequest(call=one)
        answer = await self.call("Review", request, worker_pb2.ReviewResponse, seconds=seconds)
        return answer.outcome

    async def health(self, service=""):
        """Health's Check."""
        check = self.channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            health_pb2.HealthCheckRequest.SerializeToString,
            health_pb2.HealthCheckResponse.FromString,
        )
        return (await check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE)).status

    def watch(self, service=""):
        """Health's Watch."""
        watch = self.channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            health_pb2.HealthCheckRequest.SerializeToString,
            health_pb2.HealthCheckResponse.FromString,
        )
        return watch(health_pb2.HealthCheckRequest(service=service))

    def stream(self):
        """ReviewStream."""
        return Stream(
            self.channel.stream_stream(SERVICE + "ReviewStream", None, worker_pb2.ReviewStreamResponse.FromString)()
        )


class Stream:
    """One ReviewStream."""

    def __init__(self, call):
        self.call = call

    async def send(self, message):
        """Write one message, or bytes."""
        await self.call.write(message if isinstance(message, bytes) else message.SerializeToString())

    async def receive(self):
        """The next message's outcomes by id; None at the end of the stream."""
        message = await asyncio.wait_for(self.call.read(), PATIENCE)
        return None if message is grpc.aio.EOF else {item.id: item.outcome for item in message.items}

    async def rest(self):
        """Half-close, and all outcomes until the stream ends."""
        await self.call.done_writing()
        found = {}
        while (message := await self.receive()) is not None:
            found |= message
        return found

    async def status(self):
        """The stream's status."""
        return await asyncio.wait_for(self.call.code(), PATIENCE)


def quick(limits=None):
    """Limits of a worker that stops without a quiet period: a test's client sends no late calls."""
    return replace(limits or Limits(), quiet_period=0.01)


@asynccontextmanager
async def connected(worker, *, address="127.0.0.1:0", limits=None, **how):
    """Serve the worker; yields a Client. ``how`` as for ``Worker.serve``."""
    async with worker.serve(address, limits=quick(limits), **how) as target:
        options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        async with grpc.aio.insecure_channel(target, options) as channel:
            yield Client(channel)
