"""Workers for a test: a configuration of validating policies, reached; questions, and who waits for the answers."""

import asyncio
from contextlib import asynccontextmanager

from gateway.cli.transport_options import HookWorkerFactory
from gateway.documents.documents import hashed
from gateway.engine.answer_source import CALLED
from gateway.engine.plan import Described
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Failure
from gateway.policies.model import Configuration, Phase
from gateway.policies.workers.targets import GrpcTarget, Worker
from gateway.transports.limits import TransportLimits
from gateway.transports.transport_config import TransportConfig
from gateway.transports.worker_pool import WorkerPool
from gateway.transports.workers import Workers
from tests.integration.process import WAIT_SECONDS
from tests.world import policy

FAR_AWAY = 1e9
"""A deadline that does not come."""


def judge(name="judge", **fields):
    return policy(name, phase=Phase.VALIDATING, worker="labels", **fields)


def configured(*policies, directory="", **targets):
    """A configuration of these validating policies, and of workers at these targets."""
    made = {
        name: Worker(name=name, grpc=GrpcTarget(target=target, directory=str(directory)))
        for name, target in targets.items()
    }
    return Configuration(workers=made, validating=policies)


@asynccontextmanager
async def working(configuration, *, wait=WAIT_SECONDS, changed=lambda: None, **limits):
    """Workers, started, and closed at the end."""
    limits = TransportLimits(**({"worker_connections": 1} | limits))
    pool = WorkerPool(limits, config=TransportConfig(hooks=HookWorkerFactory()))
    workers = Workers(configuration, limits, pool=pool, changed=changed)
    try:
        await workers.start(wait_seconds=wait)
        yield workers
    finally:
        await workers.close()
        await pool.close()


def availability(workers, name="judge"):
    found = workers.availabilities(Phase.VALIDATING).get(f"test/{name}.test.example.com")
    return found.version if isinstance(found, Described) else found


def question(about, *, deadline=FAR_AWAY, version="1", content=b"{}", namespace=""):
    return PolicyCall(
        id=1,
        policy=about,
        document=hashed(content),
        deadline=deadline,
        uid="u1",
        cancellable=True,
        version=version,
        namespace=namespace,
    )


class Reply:
    """Who waits for an answer. ``answers`` are those that came."""

    def __init__(self):
        self.answers = []
        self._came = asyncio.Event()

    def answered(self, call, answer, origin=CALLED):
        assert origin is CALLED
        self.answers.append(answer)
        self._came.set()

    def fallback(self, call, verdict, origin):
        raise AssertionError("a worker has no stale verdicts")

    async def first(self):
        await self._came.wait()
        return self.answers[0]


async def called(workers, about, **fields):
    """Call, wait for the answer, and report, as the driver does, if it is of another version."""
    reply, call = Reply(), question(about, **fields)
    workers.call(call, reply)
    answer = await asyncio.wait_for(reply.first(), WAIT_SECONDS)
    if not isinstance(answer, Failure) and answer.version not in ("", call.version):
        workers.disagreed(call, answer.version)
    return answer
