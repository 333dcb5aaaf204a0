"""All workers of one configuration: connected, described, their policies' settings validated. Who may be asked, and
how.

A policy's **standing** is the version that its worker described, or why it cannot be asked. It starts with "not
described yet" and is worked out for each new connection, in the background: no review ever waits for it. While a
worker is away its policies keep their last standing; their asks fail as WORKER_UNAVAILABLE.

Where one configuration follows another, a policy keeps its standing too, if it is the same question to the same
worker: same Worker, policy, phase and settings. So a change of one policy waits for nobody else's worker. Whatever is
new or changed is described and validated anew.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, Optional

import structlog

from gateway.deciding import Answer, Ask, Failure
from gateway.policies import Configuration, Phase, Policy, Worker
from gateway.transports.describing import Describing, unusable
from gateway.transports.grpc import GrpcWorker, WorkerError
from gateway.transports.limits import TransportLimits
from gateway.transports.pool import ReachedWorker, WorkerPool

_LOG: Final = structlog.get_logger(__name__)

RETRY_SECONDS: Final = (0.25, 5.0)
"""First and longest pause before a worker that cannot describe itself is asked again."""

Standings = Mapping[str, Failure | str]

_Question = tuple[ReachedWorker, Phase, str, bytes]
"""Who is asked, and about which of its policies with which settings: equal questions have equal standings."""


class Workers:
    """Reaches the workers of a configuration.

    Args:
        configuration: whose workers are connected and whose policies are put to them.
        limits: of the calls.
        changed: called in the loop whenever a standing has changed.
        pool: has the connections and processes; a pool of its own if None.
        before: those of the configuration that this one is to follow, with the same pool.
    """

    def __init__(
        self,
        configuration: Configuration,
        limits: TransportLimits | None = None,
        changed: Callable[[], object] = lambda: None,
        *,
        pool: WorkerPool | None = None,
        before: Optional["Workers"] = None,
    ) -> None:
        self._configuration = configuration
        self._limits = limits or TransportLimits()
        self._changed = changed
        self._pool = pool or WorkerPool(self._limits)
        self._owns_pool = pool is None
        self._before = before
        self._policies: dict[str, list[Policy]] = {name: [] for name in configuration.workers}
        for policy in (*configuration.mutating, *configuration.validating):
            if policy.fault is None and policy.worker in self._policies:
                self._policies[policy.worker].append(policy)
        self._workers: dict[str, GrpcWorker] = {}
        self._held: dict[str, ReachedWorker] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._described: dict[str, asyncio.Event] = {name: asyncio.Event() for name in configuration.workers}
        self._standings: dict[Phase, dict[str, Failure | str]] = {phase: {} for phase in Phase}

    def standings(self, phase: Phase) -> Standings:
        """The standing of each policy of a phase, by qualified name. Policies that are missing are not described
        yet.
        """
        return self._standings[phase]

    def ask(self, ask: Ask, answered: Callable[[Answer], None]) -> Callable[[], object]:
        """Put ``ask`` to its policy's worker, as GrpcWorker.ask does."""
        return self._workers[ask.policy.worker].ask(ask, answered)

    def known(self) -> Mapping[_Question, str]:
        """The version that stands for each question that can be asked."""
        return {
            _question(self._held[name], policy): standing
            for name, policies in self._policies.items()
            if name in self._held
            for policy in policies
            if isinstance(standing := self._standings[policy.phase].get(policy.qualified_name), str)
        }

    def holds(self, reached: ReachedWorker) -> bool:
        """Whether this is one of the workers reached here."""
        return self._held.get(reached.connection.name) is reached

    async def start(self, *, wait_seconds: float = 0.0) -> None:
        """Start what is ours to start, connect to all, and wait a little for them, so that the first review finds them.

        Args:
            wait_seconds: how long at most until every worker has been described; 0 does not wait.
        """
        for worker in self._configuration.workers.values():
            if worker.grpc is None:
                self._undescribed(worker.name, f"worker {worker.name!r} is a webhook, which this version cannot ask")
                self._described[worker.name].set()
                continue
            reached = self._pool.take(worker)
            if reached is not None:
                self._hold(worker.name, reached)
        self._inherit()
        for worker in self._configuration.workers.values():
            if worker.grpc is not None:
                self._tasks.append(asyncio.create_task(self._reach_and_describe(worker)))
        if wait_seconds > 0 and self._described:
            await self._wait(wait_seconds)

    async def close(self) -> None:
        """Let go of all workers. Those that nobody else holds are given up; with a pool of its own, at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._before = None
        self._changed = lambda: None
        while self._held:
            _, reached = self._held.popitem()
            self._pool.release(reached)
        if self._owns_pool:
            await self._pool.close()

    def _hold(self, name: str, reached: ReachedWorker) -> None:
        self._held[name] = reached
        self._workers[name] = reached.connection

    async def _wait(self, seconds: float) -> None:
        waiting = [asyncio.create_task(event.wait()) for event in self._described.values()]
        try:
            await asyncio.wait(waiting, timeout=seconds)
        finally:
            for task in waiting:
                task.cancel()
        for name, described in self._described.items():
            if not described.is_set():
                _LOG.warning(
                    "a worker is not described yet; until it is, its policies cannot be asked",
                    worker=name,
                    target=self._workers[name].target if name in self._workers else "",
                    waited=seconds,
                )

    # ---------------------------------------------------------------------------------------------- standing

    def _inherit(self) -> None:
        """Give each policy the standing that the same question had in the configuration before."""
        before, self._before = self._before, None
        if before is None:
            return
        known = before.known()
        for name, reached in self._held.items():
            if not before.holds(reached):
                continue
            standings = [known.get(_question(reached, policy)) for policy in self._policies[name]]
            for policy, standing in zip(self._policies[name], standings, strict=True):
                if standing is not None:
                    self._stand(policy, standing)
            if None not in standings:
                self._described[name].set()
        self._changed()

    async def _reach_and_describe(self, worker: Worker) -> None:
        if worker.name not in self._held:
            assert worker.grpc is not None  # noqa: S101 - start has looked
            self._undescribed(
                worker.name,
                f"worker {worker.name!r} is not started: another process that the gateway started is still at "
                f"{worker.grpc.target}; leave out target, and each process gets a socket of its own",
            )
            self._hold(worker.name, await self._pool.wait_for(worker))
        await self._keep_described(self._workers[worker.name])

    async def _keep_described(self, worker: GrpcWorker) -> None:
        pause = RETRY_SECONDS[0]
        self._undescribed(worker.name, f"worker {worker.name!r} is not reached yet, at {worker.target}")
        while True:
            try:
                await worker.connected()
                async with _watched(worker) as lost:
                    await self._describe(worker)
                    pause = RETRY_SECONDS[0]
                    await lost
            except WorkerError as error:
                _LOG.warning("a worker cannot be described", worker=worker.name, error=str(error), again_in=pause)
                if not self._described[worker.name].is_set():
                    self._undescribed(worker.name, str(error))
            except Exception as error:  # noqa: BLE001 - logged, and tried again: nobody else would
                _LOG.exception("describing a worker failed inside the gateway", worker=worker.name)
                if not self._described[worker.name].is_set():
                    self._undescribed(worker.name, f"{type(error).__name__} in the gateway; see its log")
            else:
                _LOG.warning("the connection to a worker is lost", worker=worker.name, target=worker.target)
                continue
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY_SECONDS[1])

    async def _describe(self, worker: GrpcWorker) -> None:
        asking = Describing(worker, await worker.describe(), self._limits.message_characters)
        found = [(policy, await asking.standing(policy)) for policy in self._policies[worker.name]]
        for policy, standing in found:
            self._stand(policy, standing)
        _LOG.info(
            "a worker is described",
            worker=worker.name,
            version=asking.version,
            policies=asking.policies,
            cannot_be_asked=sorted(
                policy.qualified_name for policy, standing in found if isinstance(standing, Failure)
            ),
        )
        self._described[worker.name].set()
        self._changed()

    def _undescribed(self, worker: str, why: str) -> None:
        """None of its policies can be asked, but for those that could be when the configuration changed."""
        for policy in self._policies[worker]:
            if not isinstance(self._standings[policy.phase].get(policy.qualified_name), str):
                self._stand(policy, unusable(why))
        self._changed()

    def _stand(self, policy: Policy, standing: Failure | str) -> None:
        before = self._standings[policy.phase].get(policy.qualified_name)
        if isinstance(standing, Failure) and before is not None and before != standing:
            _LOG.warning(
                "a policy cannot be asked", policy=policy.qualified_name, place=str(policy.place), why=standing.message
            )
        self._standings[policy.phase][policy.qualified_name] = standing


def _question(reached: ReachedWorker, policy: Policy) -> _Question:
    return reached, policy.phase, policy.policy, policy.settings


@asynccontextmanager
async def _watched(worker: GrpcWorker) -> AsyncIterator["asyncio.Task[None]"]:
    """A task that ends when the connection is lost. It watches from before Describe on: what is lost and found again
    meanwhile may be another version.
    """
    lost = asyncio.create_task(worker.disconnected())
    try:
        yield lost
    finally:
        lost.cancel()
        await asyncio.gather(lost, return_exceptions=True)
