"""Whether each worker can be called, as the dashboard says: what is known, and nothing else."""

import json
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from gateway.engine.availability import unavailable_policies
from gateway.policies.model import Phase
from gateway.policies.workers.targets import GrpcTarget, HookTarget, QueueTarget, WebhookTarget, Worker
from gateway.reasons import Reason
from gateway.serving.dashboard.gateway_state import GatewayState
from gateway.serving.dashboard.policy_statistics import PolicyStatistics
from gateway.serving.dashboard.worker_states import lost_workers, worker_state
from gateway.telemetry.decision_memory import DecisionMemory
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import WORKER_CONNECTIONS
from gateway.transports.limits import TransportLimits
from gateway.transports.worker_pool import WorkerPool
from gateway.transports.workers import Workers
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import until
from tests.integration.workers import scripted
from tests.transports.reaching import configured, judge

GRPC = Worker(name="w", grpc=GrpcTarget(target="dns:///w"))
QUEUE = Worker(name="w", queue=QueueTarget(stream="s", key_file="k"))
HOOK = Worker(name="w", hook=HookTarget(path="h"))
WEBHOOK = Worker(name="w", webhook=WebhookTarget(url="https://w"))

DESCRIPTION = SimpleNamespace(message=SimpleNamespace(version="1.2"))


def state_of(worker, *, connections=0, live=(), last=(), why=""):
    """The state of a worker of which this is known."""
    metrics = Metrics()
    metrics.count(WORKER_CONNECTIONS, "w", amount=connections)
    workers = SimpleNamespace(
        descriptions=lambda _: live, last_descriptions=lambda _: live or last, why_undescribed=lambda _: why
    )
    return worker_state(SimpleNamespace(workers=workers), worker, metrics)


@pytest.mark.parametrize(
    ("worker", "known", "health"),
    [
        (GRPC, {"connections": 1, "live": (DESCRIPTION,)}, "healthy"),
        (GRPC, {"why": "not connected yet"}, "undescribed"),
        (GRPC, {"connections": 1, "live": (DESCRIPTION,), "why": "refuses to validate"}, "undescribed"),
        (GRPC, {"last": (DESCRIPTION,), "why": "connection refused"}, "unreachable"),
        (GRPC, {"live": (DESCRIPTION,)}, "uncallable"),
        (QUEUE, {"connections": 2, "live": (DESCRIPTION,)}, "healthy"),
        (QUEUE, {"last": (DESCRIPTION,), "why": "no bridge is present"}, "unreachable"),
        (HOOK, {"connections": 1, "live": (DESCRIPTION,)}, "healthy"),
        (HOOK, {"last": (DESCRIPTION,), "why": "no such file"}, "uncallable"),
        (WEBHOOK, {}, "unknown"),
    ],
)
def test_the_health_of_a_worker(worker, known, health):
    """By what its transport knows: a queue has bridges, a hook no connection, and of a webhook nothing is known."""
    state = state_of(worker, **known)
    assert state.health == health
    assert state.versions == (("1.2",) if known.get("live") or known.get("last") else ())
    assert bool(state.problem) is (health not in {"healthy", "unknown"})


async def test_a_worker_that_ends_is_lost_with_its_last_version():
    """Its policies stay described and fail: the state and the statistics have them, with the reason."""
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        target = await stack.enter_async_context(scripted("judge"))
        known = configured(judge(), labels=target)
        limits = TransportLimits(worker_connections=1)
        pool = WorkerPool(limits, events=metrics)
        workers = Workers(known, limits, pool=pool)
        loaded = loaded_with(known, workers)
        try:
            await workers.start(wait_seconds=WAIT_SECONDS)
            before, available = await read(loaded, metrics)
            await stack.aclose()
            await until(lambda: lost_workers(loaded, metrics))
            after, still_available = await read(loaded, metrics)
        finally:
            await workers.close()
            await pool.close()
    assert (before["health"], before["failing"], before["versions"]) == ("healthy", 0, ["1"])
    assert (after["health"], after["failing"], after["versions"]) == ("unreachable", 1, ["1"])
    assert after["problem"].startswith(f"worker 'labels' at {target} ")
    assert (available, still_available) == (True, False)


def loaded_with(known, workers):
    """What the dashboard reads of a loaded configuration."""

    def unavailable():
        return unavailable_policies(known.validating, workers.availabilities(Phase.VALIDATING))

    return SimpleNamespace(
        configuration=known,
        workers=workers,
        loaded=datetime.now(UTC),
        policies=lambda: known.validating,
        unavailable=unavailable,
    )


async def read(loaded, metrics):
    """The worker as in the state, and whether its policy can be called; both agree on that."""
    state = GatewayState(
        loaded=lambda: loaded,
        checks=tuple,
        rejected=tuple,
        retained=DecisionMemory(),
        metrics=metrics,
        process="p",
    ).read()
    (worker,) = state["workers"]
    listed = [(each["policy"], each["reason"], each["message"]) for each in state["unavailable"]]
    reason = Reason.WORKER_UNAVAILABLE
    assert listed == [("test/judge.test.example.com", reason, worker["problem"])] * worker["failing"]
    assert state["failing"] == 0
    (policy,) = json.loads(await PolicyStatistics(lambda: loaded, metrics).read())["policies"]
    return worker, policy["available"]
