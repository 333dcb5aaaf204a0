"""All workers of one configuration: connected, described, their policies' settings validated. Who may be asked, and
how.

A policy's **standing** is the version that its worker described, or why it cannot be asked. It starts with "not
described yet" and is worked out for each new connection, in the background: no review ever waits for it. While a
worker is away its policies keep their last standing; their asks fail as WORKER_UNAVAILABLE.

Where one configuration follows another, a policy keeps its standing too, if it is the same question to the same
worker: same Worker, policy, phase, settings, inputs and writes. So a change of one policy waits for nobody else's
worker. Whatever is new or changed is described and validated anew.

Shadows of policies are reached here too, and stand beside all of that (``shadows``).

A policy's verdicts may be cached while its version is **settled**: what was described holds (see
``worker_descriptions``), and nobody has answered in another version lately (see ``version_skew``).
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
from gateway.transports.pool import PooledWorker, WorkerPool
from gateway.transports.shadows import Shadows
from gateway.transports.worker_descriptions import WorkerDescriptions, known_before

if TYPE_CHECKING:
    from gateway.transports.worker_channel import DescribableChannel

_LOG: Final = structlog.get_logger(__name__)


class Workers:
    """Reaches the workers of a configuration. A PolicyCaller.

    Args:
        configuration: whose workers are connected and whose policies are put to them.
        limits: of the calls.
        changed: called in the loop whenever a standing has changed.
        pool: has the connections and processes; a pool of its own if None.
        before: those whose standings hold here too, where the question is the same; with the same pool.
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
        self._held: dict[str, PooledWorker] = {}
        self._acquaintances: dict[str, WorkerDescriptions] = {}
        self._process_listeners: dict[str, Callable[[], object]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._described: dict[str, asyncio.Event] = {name: asyncio.Event() for name in configuration.workers}
        self._availabilities = PolicyAvailabilities(self._limits.message_characters)
        policies = (*configuration.mutating, *configuration.validating)
        self.shadows = Shadows(policies, self._limits.message_characters, self._report_changed)

    def availabilities(self, phase: Phase) -> Mapping[str, PolicyAvailability]:
        """The standing of each policy of a phase, by qualified name. Policies that are missing are not described
        yet.
        """
        return self._availabilities.of(phase)

    def known(self, call: PolicyCall) -> None:
        """Nothing is: a worker has to be called."""

    def call(self, call: PolicyCall, waiter: CallWaiter) -> Callable[[], object]:
        """Call the policy's worker, as its transport does."""
        name = call.policy.worker
        worker_descriptions = self._acquaintances.get(name)
        fits = None if worker_descriptions is None else worker_descriptions.fits(call.policy, call.version)
        return self._held[name].connection.ask(call, waiter.answered, fits)

    def settled(self, call: PolicyCall) -> bool:
        """Whether everybody who can answer ``call`` is known to be of ``call.version``: verdicts may be reused."""
        name = call.policy.worker
        worker_descriptions = self._acquaintances.get(name)
        if worker_descriptions is None:
            # A webhook says nothing of itself: it is one that is configured so, and that is all anybody knows.
            return name in self._held
        return worker_descriptions.is_settled(call.policy, call.version)

    def disagreed(self, call: PolicyCall, version: str) -> None:
        """An answer to ``call`` is of ``version``. If that is what nobody has described, the worker is described again
        at once, and its policies are not settled for a while (``TransportLimits.worker_settle_seconds``).
        """
        worker_descriptions = self._acquaintances.get(call.policy.worker)
        if worker_descriptions is None or version == "" or worker_descriptions.is_known(call.policy, version):
            return
        availability = self._availabilities.described(call.policy)
        described = call.version if availability is None else availability.version
        if worker_descriptions.disagreed():
            _LOG.warning(
                "a worker answers in two versions: is it being updated? its verdicts are not cached until it settles",
                worker=call.policy.worker,
                policy=call.policy.qualified_name,
                described=one_line(described, self._limits.message_characters),
                answered=one_line(version, self._limits.message_characters),
                settles_in=self._limits.worker_settle_seconds,
            )

    def worker_descriptions(self, reached: PooledWorker) -> WorkerDescriptions | None:
        """What is known here of a worker, if it is one of those reached here that say anything of themselves."""
        name = reached.connection.name
        return self._acquaintances.get(name) if self._held.get(name) is reached else None

    async def start(self, *, wait_seconds: float = 0.0) -> None:
        """Start what is ours to start, connect to all, and wait a little for them, so that the first review finds them.

        Args:
            wait_seconds: how long at most until every worker has been described, but for those that are only asked as
                shadows; 0 does not wait.
        """
        for worker in self._configuration.workers.values():
            reached = self._pool.take(worker)
            if reached is not None:
                self._hold(worker, reached)
        if self._before:
            self._before = ()
            self._changed()
        for worker in self._configuration.workers.values():
            if worker.webhook is None:
                self._tasks.append(asyncio.create_task(self._reach_and_describe(worker)))
        if wait_seconds > 0:
            await self._wait(wait_seconds)

    def descriptions(self, worker: str) -> tuple[Description, ...]:
        """What those who can be asked of a worker say of themselves; none while nobody has said anything."""
        leased = self._held.get(worker)
        return (
            ()
            if leased is None or worker not in self._acquaintances
            else cast("DescribableChannel", leased.connection).live
        )

    def why_undescribed(self, worker: str) -> str:
        """Why nothing is known of a worker yet, as far as anybody knows; "" if it is described."""
        if self._described[worker].is_set() and self.descriptions(worker):
            return ""
        leased = self._held.get(worker)
        at = "" if leased is None else f" at {leased.connection.target}"
        return self._why(worker) or f"worker {worker!r} has not described itself in time{at}; see whether it runs there"

    async def close(self) -> None:
        """Let go of all workers. Those that nobody else holds are given up; with a pool of its own, at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self.shadows.close()
        self._before = ()
        self._changed = lambda: None
        while self._held:
            name, reached = self._held.popitem()
            self._acquaintances.pop(name, None)
            listener = self._process_listeners.pop(name, None)
            if listener is not None and reached.supervisor is not None:
                reached.supervisor.unlisten(listener)
            self._pool.release(reached)
        if self._owns_pool:
            await self._pool.close()

    def _hold(self, worker: Worker, reached: PooledWorker) -> None:
        name = worker.name
        self._held[name] = reached
        before = self._before
        self.shadows.reached(worker, reached, [each.shadows for each in before])
        if worker.webhook is not None:
            self._know_webhook(worker)
            return
        if reached.supervisor is not None:
            received = self._process_listeners[name] = lambda: self._not_described(name, "")
            reached.supervisor.listen(received)
        self._acquaintances[name] = WorkerDescriptions(
            worker=cast("DescribableChannel", reached.connection),
            configured=worker,
            policies=self._policies[name],
            characters=self._limits.message_characters,
            reported=self._availabilities.set,
            known=self._described[name].set,
            changed=self._report_changed,
            failed=lambda why: self._not_described(name, why),
            before=known_before(each.worker_descriptions(reached) for each in before),
        )

    def _know_webhook(self, worker: Worker) -> None:
        """It can be asked about whatever it is configured for, and sees and changes all that is granted."""
        for policy in self._policies[worker.name]:
            self._availabilities.set(policy, webhook_availability(policy, worker))
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

    def _report_undescribed(self, name: str, waited: float) -> None:
        why = self._why(name)
        _LOG.warning(
            "a worker is not described yet; until it is, its policies cannot be asked",
            worker=name,
            target=self._held[name].connection.target if name in self._held else "",
            waited=waited,
            **({"why": why} if why else {}),
        )

    def _why(self, name: str) -> str:
        """Why a worker is not described yet: what it says itself, else what its policies are told."""
        problem = self._problem(name)
        if problem is not None:
            return f"{problem.message}; {problem.hint}"
        worker_descriptions, leased = self._acquaintances.get(name), self._held.get(name)
        own = "" if worker_descriptions is None or leased is None else cast("DescribableChannel", leased.connection).why
        reported = (self._availabilities.get(policy) for policy in self._policies[name])
        return own or next((each.message for each in reported if isinstance(each, Unavailable)), "")

    # ---------------------------------------------------------------------------------------------- standing

    async def _reach_and_describe(self, worker: Worker) -> None:
        if worker.name not in self._held:
            target = worker.grpc.target if worker.grpc else ""
            self._undescribed(
                worker.name,
                f"worker {worker.name!r} is not started: another process that the gateway started is still at "
                f"{target}; leave out target, and each process gets a socket of its own",
            )
            self._hold(worker, await self._pool.wait_for(worker))
        connection = self._held[worker.name].connection
        never = cast("DescribableChannel", connection).never
        if never:
            self._undescribed(worker.name, never)
            self._report_undescribed(worker.name, 0.0)
            self._described[worker.name].set()  # nobody need wait for it
            return
        self._undescribed(
            worker.name,
            f"worker {worker.name!r} is not reached yet, at {connection.target}; see whether it runs and listens there",
        )
        await self._acquaintances[worker.name].keep()

    def _not_described(self, worker: str, why: str) -> None:
        """It could not be described. What was described before stands."""
        if not self._described[worker].is_set():
            self._undescribed(worker, why)

    def _problem(self, worker: str) -> Unavailable | None:
        """What became of its process, where the gateway starts it and it does not run."""
        leased = self._held.get(worker)
        return None if leased is None or leased.supervisor is None else leased.supervisor.problem

    def _undescribed(self, worker: str, why: str) -> None:
        """None of its policies can be asked, but for those that could be when the configuration changed."""
        for policy in self._policies[worker]:
            if self._availabilities.described(policy) is None:
                self._availabilities.set(policy, self._problem(worker) or undescribed(why), reported=False)
        self._changed()
