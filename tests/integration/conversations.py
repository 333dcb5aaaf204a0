"""The worker's side of a ReviewStream, and of a health watch, to be played by a test.

A part of a conversation is a coroutine function of the conversation and the item that came; what it returns is whether
the worker goes on.
"""

import asyncio

from grpc.aio import EOF
from grpc_health.v1 import health_pb2

from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.workers import ALLOW


def response(*answers):
    """A message of a worker: for each id a ReviewResponse's bytes, as ``Review`` would answer."""
    items = [
        pb.ReviewStreamResponse.ResponseItem(id=number, outcome=pb.ReviewResponse.FromString(content).outcome)
        for number, content in answers
    ]
    return pb.ReviewStreamResponse(items=items).SerializeToString()


class Conversation:
    """One stream. ``batches`` are the messages that came, ``items`` what was in them by id, ``cancels`` ids."""

    def __init__(self, context):
        self.context = context
        self.batches = []
        self.items = {}
        self.documents = {}
        self.cancels = []
        self.is_over = False
        self.has_half_closed = False

    async def batch(self):
        """The next message; None when the gateway half-closes."""
        content = await self.context.read()
        if content is EOF:
            self.has_half_closed = True
            return None
        batch = pb.ReviewStreamRequest.FromString(content)
        self.batches.append(batch)
        for item in batch.items:
            if item.WhichOneof("item") == "cancel":
                self.cancels.append(item.id)
            else:
                self.items[item.id] = item.call
                self.documents[item.id] = batch.documents[item.call.document_index]
        return batch

    async def send(self, content):
        """Write a message, or bytes that are none."""
        await self.context.write(content)

    async def answer(self, *ids, content=ALLOW):
        """Answer these in one message."""
        await self.send(response(*((number, content) for number in ids)))

    @property
    def policies(self):
        """Which policies were called, in order."""
        return [call.policy for call in self.items.values()]


class Streams:
    """A ReviewStream that keeps its ``conversations``. Without a script nothing is answered, and what comes is read.

    Args:
        script: a coroutine function of the conversation; its end is the stream's.
    """

    def __init__(self, script=None):
        self.conversations = []
        self._script = script or listening

    async def __call__(self, context):
        conversation = Conversation(context)
        self.conversations.append(conversation)
        try:
            await self._script(conversation)
        finally:
            conversation.is_over = True

    @property
    def last(self):
        return self.conversations[-1]

    @property
    def policies(self):
        """Which policies were called, on all streams."""
        return [name for conversation in self.conversations for name in conversation.policies]


async def listening(conversation):
    """Read what comes until the gateway half-closes."""
    while await conversation.batch() is not None:
        pass


def answering(content=ALLOW, **parts):
    """A script that answers each call with this, and plays a part for the policies that have one."""

    async def script(conversation):
        while (batch := await conversation.batch()) is not None:
            for item in batch.items:
                if item.WhichOneof("item") != "call":
                    continue
                part = parts.get(item.call.policy.replace("-", "_"))
                if part is None:
                    await conversation.answer(item.id, content=content)
                elif not await part(conversation, item):
                    return

    return script


async def silence(conversation, item):
    """The part of one who does not answer."""
    return True


async def for_ever():
    """Return when cancelled."""
    await asyncio.get_running_loop().create_future()


class Health:
    """A health watch whose answer can be changed. ``watchers`` counts who has been reported."""

    SERVING = health_pb2.HealthCheckResponse.SERVING
    NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING

    def __init__(self, status=SERVING):
        self.status = status
        self.watchers = 0
        self._changed = asyncio.Event()

    def become(self, status):
        self.status = status
        self._changed.set()
        self._changed = asyncio.Event()

    async def __call__(self, context):
        await context.read()
        while True:
            changed = self._changed
            await context.write(health_pb2.HealthCheckResponse(status=self.status).SerializeToString())
            self.watchers += 1
            await changed.wait()
