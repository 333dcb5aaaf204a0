"""A WebhookWorker in the test's loop, called as ``Workers`` calls it."""

import asyncio
from contextlib import asynccontextmanager
from time import monotonic

from gateway.documents.documents import hashed
from gateway.engine.policy_call import PolicyCall
from gateway.policies.model import Phase
from gateway.policies.workers.targets import WebhookTarget
from gateway.transports.limits import TransportLimits
from gateway.transports.webhook.worker import WebhookWorker
from tests.reports import Reports
from tests.world import policy

WAIT_SECONDS = 30.0

DOCUMENT = b'{"kind":{"group":"","version":"v1","kind":"Pod"},"operation":"CREATE","object":{"metadata":{"name":"p"}}}'


def question(document=DOCUMENT, *, phase=Phase.MUTATING, seconds=WAIT_SECONDS, cancellable=True, timeout=30.0, **trace):
    """A call with so much time."""
    return PolicyCall(
        id=1,
        policy=policy("judge", phase=phase, worker="hooks", policy="", timeout=timeout),
        document=hashed(document),
        deadline=monotonic() + seconds,
        uid="the-reviews-own",
        cancellable=cancellable,
        **trace,
    )


class Asker:
    """Puts calls to one worker."""

    def __init__(self, worker, events):
        self.worker = worker
        self.events = events

    async def call(self, call=None, **fields):
        """The answer to a call."""
        return await self.put(call or question(**fields))[0]

    def put(self, call):
        """A future for the answer, and what cancels it."""
        answer = asyncio.get_running_loop().create_future()
        cancel = self.worker.call(call, lambda _, said: answer.set_result(said))
        return asyncio.wait_for(answer, WAIT_SECONDS), cancel


@asynccontextmanager
async def policy_caller(target, *, access=None, **limits):
    """A worker of its own, with these limits; closed at the end. ``target`` is a WebhookTarget, or what makes one."""
    where = target if isinstance(target, WebhookTarget) else WebhookTarget(**target)
    events = Reports()
    worker = WebhookWorker("hooks", where, TransportLimits(**limits), access=access, events=events)
    try:
        yield Asker(worker, events)
    finally:
        await asyncio.wait_for(worker.close(), WAIT_SECONDS)
        assert events["gone"] == 1
        assert events.usable == 0


async def called(target, *, access=None, **fields):
    """The answer of a webhook to one call."""
    async with policy_caller(target, access=access) as caller:
        return await caller.call(**fields)


async def eventually(attempt):
    """Await ``attempt()`` again and again, until it is true."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not await attempt():  # noqa: ASYNC110 - what is awaited is seen by calling only
            await asyncio.sleep(0.005)
