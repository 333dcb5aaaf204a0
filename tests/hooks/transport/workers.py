"""A hook as a worker, and calls of it."""

import asyncio
from contextlib import asynccontextmanager
from time import monotonic

from gateway.documents.documents import hashed
from gateway.engine.policy_call import PolicyCall
from gateway.hooks.transport.worker import HookWorker
from gateway.policies.model import Phase
from gateway.policies.workers.targets import HookTarget
from gateway.transports.limits import TransportLimits
from tests.hooks.scripts import VALIDATING, WAIT_SECONDS, until
from tests.world import policy


@asynccontextmanager
async def hooked(path, *, events=None, objects=(), described=True, **limits):
    """A worker of the hook at a path; described, unless that must not be waited for."""
    worker = HookWorker("hook", HookTarget(path=str(path), objects=objects), TransportLimits(**limits), events=events)
    try:
        if described:
            await until(lambda: worker.live)
        yield worker
    finally:
        await worker.close()


def policy_call(
    binding=VALIDATING, *, phase=Phase.VALIDATING, seconds=WAIT_SECONDS, cancellable=True, content=b"{}", **trace
):
    return PolicyCall(
        id=1,
        policy=policy("judge", phase=phase, worker="hook", policy=binding),
        document=hashed(content),
        deadline=monotonic() + seconds,
        uid="u1",
        cancellable=cancellable,
        version="1",
        **trace,
    )


async def answer_of(worker, call=None):
    """The answer of a worker."""
    answer = asyncio.get_running_loop().create_future()
    worker.call(call or policy_call(), lambda _, said: answer.set_result(said))
    async with asyncio.timeout(2 * WAIT_SECONDS):
        return await answer
