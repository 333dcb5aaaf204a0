"""Both ends of a consumer: a gateway's side that uses Redis directly, and a handler that the test controls."""

import asyncio
import itertools
import secrets
from contextlib import asynccontextmanager

import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff

from gateway.redis.addresses import redis_address
from gateway.transports.limits import ConsumerLimits
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue.codec import read_presence, read_replies
from gateway.transports.queue.consumer import Consumer
from gateway.transports.queue.handler import ConsumerDescription
from gateway.transports.queue.names import GROUP, Names, lane_of
from gateway.transports.queue.seals import QueueSeals
from tests.reports import Reports

STREAM = "test"
WAIT_SECONDS = 60.0
"""Seconds after which a test fails. Sentinels that were unreachable for two seconds do nothing for thirty."""

DESCRIBED = pb.DescribeResponse(
    worker="labels", version="1", policies=[pb.PolicyDescription(name="p", phases=[pb.PHASE_VALIDATING])]
)
LANE = lane_of(DESCRIBED)
ALLOW = pb.Outcome(allow=pb.Allow(), version="1")
ANSWER_SECONDS = 20.0
"""Time limit for answers of Redis where it is not tested: no test fails because this machine has paused."""

PATIENT = ConsumerLimits(answer_seconds=ANSWER_SECONDS)


async def until(condition):
    """Wait until something holds; it may be a coroutine function."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            held = condition()
            if asyncio.iscoroutine(held):
                held = await held
            if held:
                return held
            await asyncio.sleep(0.005)


def consumer_description(described=DESCRIBED):
    """The ConsumerDescription of a worker with this description."""
    return ConsumerDescription(description=described.SerializeToString(deterministic=True), lane=lane_of(described))


class ReceivedCall:
    """One call that a handler received."""

    def __init__(self, call, answered, until, once):
        self.call, self.until, self.once = call, until, once
        self._answered = answered

    def answer(self, outcome=ALLOW):
        self._answered(outcome)


class FakeHandler:
    """A Handler. It answers at once, unless it ``holds``; ``calls`` are all that it received."""

    def __init__(self, *, holds=False):
        self.holds = holds
        self.calls = []
        self.consumer_description = consumer_description()
        self.why = ""
        self.settings = pb.ValidateSettingsResponse()
        self._listeners = []

    def listen(self, listener):
        self._listeners.append(listener)

    def become(self, describe_client):
        self.consumer_description = describe_client
        for listener in self._listeners:
            listener()

    def handle(self, call, answered, *, until, once):
        self.calls.append(ReceivedCall(call, answered, until, once))
        if not self.holds:
            asyncio.get_running_loop().call_soon(answered, ALLOW)

    async def validate_settings(self, request):
        self.calls.append(request)
        return self.settings

    @property
    def documents(self):
        return [each.call.document for each in self.calls]


class Queue:
    """A gateway's side of a queue."""

    def __init__(self, url, key_file, stream=STREAM):
        self.address = redis_address(url)
        self.names = Names(stream)
        self.seals = QueueSeals(stream, key_file)
        self.key_file = key_file
        self.gateway = secrets.token_hex(16)
        # A server that was restarted has closed the test's own connections too.
        self.client = redis.asyncio.Redis.from_url(url, retry=Retry(ConstantBackoff(0.05), 200))
        self._numbers = itertools.count(1)

    async def now(self):
        seconds, microseconds = await self.client.time()
        return seconds * 1000 + microseconds // 1000

    async def listen(self):
        """Create the reply stream."""
        name = self.names.replies(self.gateway)
        number = await self.client.xadd(name, {"m": b""})
        await self.client.xdel(name, number)
        return self

    async def put(self, document=b"{}", *, number=None, deadline=None, seconds=60.0, once=False, **changed):
        """Write a call; return its ID. ``deadline`` is in Redis' milliseconds; ``changed`` replaces its fields."""
        call = pb.PolicyCall(policy="p", phase=pb.PHASE_VALIDATING, settings=b"{}", document=document, uid="u")
        return await self.put_request(
            q.Request(call=call, once=once), number=number, deadline=deadline, seconds=seconds, **changed
        )

    async def put_request(
        self, request, *, number=None, deadline=None, seconds=60.0, lane=LANE, to=LANE, seals=None, **changed
    ):
        number = number or next(self._numbers).to_bytes(8, "big")
        now = await self.now()
        deadline = deadline or now + int(seconds * 1000)
        content = request if isinstance(request, bytes) else request.SerializeToString()
        sealed = (seals or self.seals).seal_call(lane, self.gateway, (number, deadline), content)
        fields = {"d": deadline, "g": self.gateway, "i": number, "m": sealed} | changed
        await self.client.xadd(
            self.names.calls(to), {name: value for name, value in fields.items() if value is not None}
        )
        return number

    async def replies(self):
        """All replies so far."""
        found = []
        for _, fields in await self.client.xrange(self.names.replies(self.gateway)):
            message = read_replies(self.seals, self.gateway, fields[b"m"], await self.now())
            assert message is not None
            found += message.replies
        return found

    async def reply(self, number, count=1):
        """The first reply to an ID, once there are so many."""

        async def those():
            found = [reply for reply in await self.replies() if reply.id == number]
            return found if len(found) >= count else None

        return (await until(those))[0]

    async def present(self):
        """The presences by consumer name."""
        presences = await self.client.hgetall(self.names.workers)
        return {name.decode(): read_presence(self.seals, name.decode(), sealed) for name, sealed in presences.items()}

    async def is_empty(self, lane=LANE):
        """Whether nothing is in the lane, and nothing pending."""
        name = self.names.calls(lane)
        pending = await self.client.xpending(name, GROUP)
        return await self.client.xlen(name) == 0 and pending["pending"] == 0

    async def consumers(self, lane=LANE):
        """The names in the group."""
        return {each["name"].decode() for each in await self.client.xinfo_consumers(self.names.calls(lane), GROUP)}

    async def pending(self, lane=LANE):
        """Pending entries."""
        return await self.client.xpending_range(self.names.calls(lane), GROUP, "-", "+", 100)


class Running:
    """A consumer that runs."""

    def __init__(self, queue, handler, limits):
        self.handler = handler
        self.events = Reports()
        self.consumer = Consumer(
            queue.address, queue.names.stream, seals=queue.seals, handler=handler, limits=limits, events=self.events
        )
        self._queue = queue
        self.task = None

    @property
    def name(self):
        return self.consumer.name

    def start(self):
        self.task = asyncio.create_task(self.consumer.run())
        return self

    async def ready(self):
        """Wait until it reads calls."""
        await until(lambda: not self.consumer.why)
        return self

    async def die(self):
        """End as a killed process does, without leaving the queue."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def stop(self):
        self.consumer.stop()
        async with asyncio.timeout(WAIT_SECONDS):
            await self.task


@asynccontextmanager
async def consuming(queue, handler=None, *, limits=PATIENT, ready=True):
    """A consumer of the queue, killed at the end if it still runs."""
    running = Running(queue, handler or FakeHandler(), limits).start()
    try:
        yield await running.ready() if ready else running
    finally:
        await running.die()
