"""All workers of one configuration: connected, described, their policies' settings validated. Who may be asked, and
how.

A policy's **standing** is the version that its worker described, or why it cannot be asked. It starts with "not
described yet" and is worked out for each new connection, in the background: no review ever waits for it. While a
worker is away its policies keep their last standing; their asks fail as WORKER_UNAVAILABLE.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import structlog

from gateway.deciding import Answer, Ask, Failure
from gateway.policies import Configuration, Phase, Policy, Worker
from gateway.policies.targets import socket_path
from gateway.transports.describing import Describing, unusable
from gateway.transports.grpc import GrpcWorker, WorkerError
from gateway.transports.limits import TransportLimits
from gateway.transports.supervisor import Supervisor

_LOG: Final = structlog.get_logger(__name__)

RETRY_SECONDS: Final = (0.25, 5.0)
"""First and longest pause before a worker that cannot describe itself is asked again."""

Standings = Mapping[str, Failure | str]


class Workers:
    """Reaches the workers of a configuration.

    Args:
        configuration: whose workers are connected and whose policies are put to them.
        limits: of the calls.
        changed: called in the loop whenever a standing has changed.
    """

    def __init__(
        self,
        configuration: Configuration,
        limits: TransportLimits | None = None,
        changed: Callable[[], object] = lambda: None,
    ) -> None:
        self._configuration = configuration
        self._limits = limits or TransportLimits()
        self._changed = changed
        self._policies: dict[str, list[Policy]] = {name: [] for name in configuration.workers}
        for policy in (*configuration.mutating, *configuration.validating):
            if policy.fault is None and policy.worker in self._policies:
                self._policies[policy.worker].append(policy)
        self._workers: dict[str, GrpcWorker] = {}
        self._supervisors: list[Supervisor] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._described: dict[str, asyncio.Event] = {name: asyncio.Event() for name in configuration.workers}
        self._sockets: tempfile.TemporaryDirectory[str] | None = None
        self._standings: dict[Phase, dict[str, Failure | str]] = {phase: {} for phase in Phase}

    def standings(self, phase: Phase) -> Standings:
        """The standing of each policy of a phase, by qualified name. Policies that are missing are not described
        yet.
        """
        return self._standings[phase]

    def ask(self, ask: Ask, answered: Callable[[Answer], None]) -> Callable[[], object]:
        """Put ``ask`` to its policy's worker, as GrpcWorker.ask does."""
        return self._workers[ask.policy.worker].ask(ask, answered)

    async def start(self, *, wait_seconds: float = 0.0) -> None:
        """Start what is ours to start, connect to all, and wait a little for them, so that the first review finds them.

        Args:
            wait_seconds: how long at most until every worker has been described; 0 does not wait.
        """
        for worker in self._configuration.workers.values():
            target = self._target(worker)
            if worker.grpc.command:
                self._supervisors.append(Supervisor(worker, target, self._limits))
            connection = GrpcWorker(worker.name, target, self._limits)
            self._workers[worker.name] = connection
            self._tasks.append(asyncio.create_task(self._keep_described(connection)))
        for supervisor in self._supervisors:
            supervisor.start()
        if wait_seconds > 0 and self._described:
            waiting = [asyncio.create_task(event.wait()) for event in self._described.values()]
            _, late = await asyncio.wait(waiting, timeout=wait_seconds)
            for task in late:
                task.cancel()
            for name, described in self._described.items():
                if not described.is_set():
                    _LOG.warning(
                        "a worker is not described yet; until it is, its policies fail as their failurePolicy says",
                        worker=name,
                        target=self._workers[name].target,
                        waited=wait_seconds,
                    )

    def _target(self, worker: Worker) -> str:
        """The worker's target, absolute: a relative socket is beside the file that names it, an absent one is ours."""
        target = worker.grpc.target
        if not target:
            self._sockets = self._sockets or tempfile.TemporaryDirectory(prefix="admission-gateway-")
            # Numbered, not named: a Worker's name may have 253 characters, a socket's path 107.
            return f"unix:{Path(self._sockets.name) / str(len(self._workers))}.sock"
        path = socket_path(target, worker.grpc.directory)
        return target if path is None else f"unix:{path}"

    async def close(self) -> None:
        """Stop what we started, and leave nothing behind: no call, no connection, no process, no socket."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(worker.close() for worker in self._workers.values()), return_exceptions=True)
        await asyncio.gather(*(supervisor.stop() for supervisor in self._supervisors), return_exceptions=True)
        if self._sockets is not None:
            self._sockets.cleanup()

    # ---------------------------------------------------------------------------------------------- standing

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
        for policy in self._policies[worker]:
            self._stand(policy, unusable(why))
        self._changed()

    def _stand(self, policy: Policy, standing: Failure | str) -> None:
        before = self._standings[policy.phase].get(policy.qualified_name)
        if isinstance(standing, Failure) and before not in {None, standing}:
            _LOG.warning(
                "a policy cannot be asked", policy=policy.qualified_name, place=str(policy.place), why=standing.message
            )
        self._standings[policy.phase][policy.qualified_name] = standing


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
