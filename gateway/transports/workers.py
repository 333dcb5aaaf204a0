"""All workers of one configuration: connects to them, describes them, and calls them.

A policy's **availability** is the version that its worker described, or the reason why it cannot be called. It starts
with "not described yet" and is updated for each new connection, in the background: no review waits for it. While a
worker is unavailable its policies keep their last availability, and their calls fail with WORKER_UNAVAILABLE.

In a configuration that replaces another, an equal policy keeps its availability: same Worker, policy, phase, settings,
inputs and writes. So a change of one policy does not wait for other workers. New and changed policies are described and
validated again.

Shadows of policies are called by their own component (``shadows``).

A policy's verdicts may be cached while its version is **settled**: all connected replicas describe it (see
``worker_descriptions``), and no answer was in another version lately (see ``version_skew``).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

import structlog

from gateway.engine.plan import PolicyAvailability, Unavailable
from gateway.engine.policy_call import PolicyCall
from gateway.engine.policy_caller import CallWaiter
from gateway.policies.model import Configuration, Phase, Policy
from gateway.policies.workers.targets import Worker
from gateway.transports.availability import PolicyAvailabilities
from gateway.transports.description_validator import undescribed, webhook_availability
from gateway.transports.descriptions import Description
from gateway.transports.limits import TransportLimits
from gateway.transports.messages import one_line
from gateway.transports.shadows import Shadows
from gateway.transports.worker_descriptions import WorkerDescriptions, known_before
from gateway.transports.worker_pool import PooledWorker, WorkerPool

if TYPE_CHECKING:
    from gateway.transports.worker_channel import DescribableChannel

_LOG: Final = structlog.get_logger(__name__)

_AT_ONCE: Final = 50
"""Workers that are connected to in one iteration of the loop: some 5 ms."""


class Workers:
    """Calls the workers of a configuration. A PolicyCaller.

    Args:
        configuration: has the workers and their policies.
        limits: of the calls.
        changed: called in the loop whenever an availability has changed.
        pool: has the connections and processes; None: a pool of its own.
        before: the workers of the previous configuration, with the same pool; equal policies keep their availability.
    """

    def __init__(
        self,
        configuration: Configuration,
        limits: TransportLimits | None = None,
        changed: Callable[[], object] = lambda: None,
        *,
        pool: WorkerPool | None = None,
        before: Sequence["Workers"] = (),
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
        self._leased: dict[str, PooledWorker] = {}
        self._worker_descriptions: dict[str, WorkerDescriptions] = {}
        self._process_listeners: dict[str, Callable[[], object]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._described: dict[str, asyncio.Event] = {name: asyncio.Event() for name in configuration.workers}
        self._availabilities = PolicyAvailabilities(self._limits.message_characters)
        self._availabilities.before = tuple(each._availabilities for each in before)  # noqa: SLF001 - of the same class
        policies = (*configuration.mutating, *configuration.validating)
        self.shadows = Shadows(policies, self._limits.message_characters, self._report_changed)

    def availabilities(self, phase: Phase) -> Mapping[str, PolicyAvailability]:
        """The availability of each policy of a phase, by qualified name. A policy without one is not described yet."""
        return self._availabilities.of(phase)

    def known(self, call: PolicyCall) -> None:
        """None: no verdict is known without calling the worker."""

    def call(self, call: PolicyCall, waiter: CallWaiter) -> Callable[[], object]:
        """Call the policy's worker over its transport."""
        name = call.policy.worker
        worker_descriptions = self._worker_descriptions.get(name)
        fits = None if worker_descriptions is None else worker_descriptions.fits(call.policy, call.version)
        return self._leased[name].meter.call(call, waiter.answered, fits)

    def settled(self, call: PolicyCall) -> bool:
        """Whether all replicas that can answer ``call`` are known to have ``call.version``: verdicts may be reused."""
        name = call.policy.worker
        worker_descriptions = self._worker_descriptions.get(name)
        if worker_descriptions is None:
            # A webhook has no description: only its configuration is known.
            return name in self._leased
        return worker_descriptions.is_settled(call.policy, call.version)

    def disagreed(self, call: PolicyCall, version: str) -> None:
        """An answer to ``call`` has ``version``. If no connected replica has described it, the worker is described
        again at once, and its policies are not settled for ``TransportLimits.worker_settle_seconds``.
        """
        worker_descriptions = self._worker_descriptions.get(call.policy.worker)
        if worker_descriptions is None or version == "" or worker_descriptions.is_known(call.policy, version):
            return
        availability = self._availabilities.described(call.policy)
        described = call.version if availability is None else availability.version
        if worker_descriptions.disagreed():
            _LOG.warning(
                "a worker answers in two versions; its verdicts are not cached until it answers in one",
                worker=call.policy.worker,
                policy=call.policy.qualified_name,
                described=one_line(described, self._limits.message_characters),
                answered=one_line(version, self._limits.message_characters),
                settles_in=self._limits.worker_settle_seconds,
            )

    def worker_descriptions(self, pooled: PooledWorker) -> WorkerDescriptions | None:
        """The descriptions of a worker, if it is in use here and describes itself."""
        name = pooled.connection.name
        return self._worker_descriptions.get(name) if self._leased.get(name) is pooled else None

    async def start(self, *, wait_seconds: float = 0.0) -> None:
        """Start the workers with a command, connect to all, and wait for their descriptions before the first review.

        Args:
            wait_seconds: how long at most to wait until every worker is described, except those that only shadows use;
                0 does not wait.
        """
        for number, worker in enumerate(self._configuration.workers.values(), 1):
            pooled = self._pool.take(worker)
            if pooled is not None:
                self._add_worker(worker, pooled)
            if not number % _AT_ONCE:
                await asyncio.sleep(0)
        if self._before:
            self._before = self._availabilities.before = ()
            self._changed()
        for worker in self._configuration.workers.values():
            if worker.webhook is None:
                self._tasks.append(asyncio.create_task(self._reach_and_describe(worker)))
        if wait_seconds > 0:
            await self._wait(wait_seconds)

    def descriptions(self, worker: str) -> tuple[Description, ...]:
        """The descriptions of the replicas of a worker that can be called."""
        leased = self._leased.get(worker)
        return (
            ()
            if leased is None or worker not in self._worker_descriptions
            else cast("DescribableChannel", leased.connection).live
        )

    def last_descriptions(self, worker: str) -> tuple[Description, ...]:
        """The same; while no replica can be called, those of the last ones."""
        known = self._worker_descriptions.get(worker)
        return self.descriptions(worker) or (() if known is None else known.last)

    def why_undescribed(self, worker: str) -> str:
        """Why a worker is not described yet, or not connected any more; "" if it is described."""
        if self._described[worker].is_set() and self.descriptions(worker):
            return ""
        leased = self._leased.get(worker)
        at = "" if leased is None else f" at {leased.connection.target}"
        what = "is not connected any more" if self.last_descriptions(worker) else "has not described itself in time"
        return self._why(worker) or f"worker {worker!r}{at} {what}; check that it runs"

    async def close(self) -> None:
        """Release all workers. Those that no other configuration uses are closed; with a pool of its own, at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self.shadows.close()
        self._before = self._availabilities.before = ()
        self._changed = lambda: None
        while self._leased:
            name, pooled = self._leased.popitem()
            self._worker_descriptions.pop(name, None)
            listener = self._process_listeners.pop(name, None)
            if listener is not None and pooled.supervisor is not None:
                pooled.supervisor.unlisten(listener)
            self._pool.release(pooled)
        if self._owns_pool:
            await self._pool.close()

    def _add_worker(self, worker: Worker, pooled: PooledWorker) -> None:
        name = worker.name
        self._leased[name] = pooled
        before = self._before
        self.shadows.add_worker(worker, pooled, [each.shadows for each in before])
        if worker.webhook is not None:
            self._know_webhook(worker)
            return
        if pooled.supervisor is not None:
            listener = self._process_listeners[name] = lambda: self._not_described(name, "")
            pooled.supervisor.listen(listener)
        self._worker_descriptions[name] = WorkerDescriptions(
            worker=cast("DescribableChannel", pooled.connection),
            configured=worker,
            policies=self._policies[name],
            characters=self._limits.message_characters,
            reported=self._availabilities.set,
            known=self._described[name].set,
            changed=self._report_changed,
            failed=lambda why: self._not_described(name, why),
            before=known_before(each.worker_descriptions(pooled) for each in before),
        )

    def _know_webhook(self, worker: Worker) -> None:
        """Set the availability of a webhook's policies. A webhook sees and may change all that is granted."""
        for policy in self._policies[worker.name]:
            self._availabilities.set((policy,), webhook_availability(policy, worker))
        self._described[worker.name].set()
        self._changed()

    def _report_changed(self) -> None:
        self._changed()

    async def _wait(self, seconds: float) -> None:
        awaited = {
            name: event
            for name, event in self._described.items()
            if self._policies[name] or name not in self.shadows.workers
        }
        waiting = [asyncio.create_task(event.wait()) for event in awaited.values()]
        if not waiting:
            return
        try:
            await asyncio.wait(waiting, timeout=seconds)
        finally:
            for task in waiting:
                task.cancel()
        for name, described in awaited.items():
            if not described.is_set():
                self._report_undescribed(name, seconds)
                await asyncio.sleep(0)

    def _report_undescribed(self, name: str, waited: float) -> None:
        why = self._why(name)
        _LOG.warning(
            "a worker is not described yet; until it is, its policies cannot be called",
            worker=name,
            target=self._leased[name].connection.target if name in self._leased else "",
            waited=waited,
            **({"why": why} if why else {}),
        )

    def _why(self, name: str) -> str:
        """Why a worker is not described yet: from its process or connection, else from a policy's availability."""
        problem = self._problem(name)
        if problem is not None:
            return f"{problem.message}; {problem.hint}"
        worker_descriptions, leased = self._worker_descriptions.get(name), self._leased.get(name)
        own = "" if worker_descriptions is None or leased is None else cast("DescribableChannel", leased.connection).why
        reported = (self._availabilities.get(policy) for policy in self._policies[name])
        return own or next((each.message for each in reported if isinstance(each, Unavailable)), "")

    # ------------------------------------------------------------------------------------------ availability

    async def _reach_and_describe(self, worker: Worker) -> None:
        if worker.name not in self._leased:
            target = worker.grpc.target if worker.grpc else ""
            self._undescribed(
                worker.name,
                f"worker {worker.name!r} is not started: another process that the gateway started still listens at "
                f"{target}; remove target to give each process its own socket",
            )
            self._add_worker(worker, await self._pool.wait_for(worker))
        connection = self._leased[worker.name].connection
        never = cast("DescribableChannel", connection).never
        if never:
            self._undescribed(worker.name, never)
            self._report_undescribed(worker.name, 0.0)
            self._described[worker.name].set()  # no start needs to wait for it
            return
        self._undescribed(
            worker.name,
            f"worker {worker.name!r} is not connected yet; check that it runs and listens at {connection.target}",
        )
        await self._worker_descriptions[worker.name].keep()

    def _not_described(self, worker: str, why: str) -> None:
        """The worker could not be described. An earlier description stays."""
        if not self._described[worker].is_set():
            self._undescribed(worker, why)

    def _problem(self, worker: str) -> Unavailable | None:
        """Why its process does not run, if the gateway starts it."""
        leased = self._leased.get(worker)
        return None if leased is None or leased.supervisor is None else leased.supervisor.problem

    def _undescribed(self, worker: str, why: str) -> None:
        """Mark its policies as undescribed, except those that are described already."""
        unknown = [policy for policy in self._policies[worker] if self._availabilities.described(policy) is None]
        self._availabilities.set(unknown, self._problem(worker) or undescribed(why), reported=False)
        self._changed()
