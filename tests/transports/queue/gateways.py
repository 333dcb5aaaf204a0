"""A gateway's end of a queue: a QueueWorker, calls to it, and their answers."""

import asyncio
from contextlib import asynccontextmanager
from time import monotonic

from gateway.documents.documents import hashed
from gateway.engine.policy_call import PolicyCall
from gateway.policies.model import Phase
from gateway.policies.workers.targets import QueueTarget
from gateway.redis.addresses import redis_address
from gateway.transports.limits import TransportLimits
from gateway.transports.queue.worker import QueueWorker
from tests.reports import Reports
from tests.transports.queue.consumers import ANSWER_SECONDS, STREAM, WAIT_SECONDS, until
from tests.world import policy

POLICY = policy("p", phase=Phase.VALIDATING, policy="p", timeout=30.0, worker="labels")


class Gateway:
    """One QueueWorker; ``events`` are those that it reports."""

    def __init__(self, url, key_file, limits):
        self.events = Reports()
        target = QueueTarget(stream=STREAM, key_file=key_file.name, directory=str(key_file.parent))
        limits = {"queue_redis_seconds": ANSWER_SECONDS} | limits
        self.worker = QueueWorker(
            "labels", target, TransportLimits(**limits), redis=redis_address(url), events=self.events
        )
        self._ids = 0

    async def sees_bridges(self, number=1):
        """Wait until so many bridges are present."""
        await until(lambda: self.events.usable == number)
        return self

    def put(self, document=b"{}", *, seconds=30.0, once=False, fits=None, about=POLICY):
        """Call the worker; return what waits for the answer."""
        self._ids += 1
        call = PolicyCall(
            id=self._ids,
            policy=about,
            document=hashed(document),
            deadline=monotonic() + seconds,
            uid=f"uid-{self._ids}",
            cancellable=not once,
            version="1",
        )
        return WaitingCall(self.worker, call, fits)

    async def call(self, document=b"{}", **fields):
        """The answer to a call."""
        return await self.put(document, **fields).answer()


class WaitingCall:
    """Waits for an answer. ``answers`` are those that arrived."""

    def __init__(self, worker, call, fits):
        self.answers = []
        self._came = asyncio.Event()
        self.cancel = worker.call(call, self._answered, fits)
        assert not self.answers

    def _answered(self, _call, answer):
        self.answers.append(answer)
        self._came.set()

    async def answer(self):
        async with asyncio.timeout(WAIT_SECONDS):
            await self._came.wait()
        assert len(self.answers) == 1
        return self.answers[0]


@asynccontextmanager
async def running_gateway(redis, key_file, **limits):
    """A gateway of the queue."""
    gateway = Gateway(redis if isinstance(redis, str) else redis.url, key_file, limits)
    try:
        yield gateway
    finally:
        await gateway.worker.close()
