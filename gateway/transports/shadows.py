"""The shadows of one configuration: described and called like its policies, without delaying the policies.

A shadow has an availability like any policy: its worker has to describe it, to claim no more than is granted, and to
accept its settings. Shadows have their own ``WorkerDescriptions``, even for workers that policies use too. So settings
of a shadow that a worker validates slowly, or rejects, delay no policy. Neither a start nor a reload waits for a
shadow.

A shadow's answer in an undescribed version does not count as version skew of the worker, as a policy's would: it does
not disable the cache of a policy.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from gateway.engine.plan import PolicyAvailability
from gateway.engine.policy_call import PolicyCall
from gateway.engine.policy_caller import CallWaiter
from gateway.policies.fields.shadows import shadow_of
from gateway.policies.model import Phase, Policy
from gateway.policies.workers.targets import Worker
from gateway.transports.availability import PolicyAvailabilities
from gateway.transports.description_validator import undescribed, webhook_availability
from gateway.transports.worker_descriptions import WorkerDescriptions, known_before

if TYPE_CHECKING:
    from gateway.transports.worker_channel import DescribableChannel
    from gateway.transports.worker_pool import PooledWorker


class Shadows:
    """Describes the shadows, and calls them. A PolicyCaller.

    Args:
        policies: of the configuration.
        characters: how much of a worker's text one message keeps.
        changed: called in the loop whenever an availability has changed.
    """

    def __init__(self, policies: Iterable[Policy], characters: int, changed: Callable[[], object]) -> None:
        self._characters = characters
        self._changed = changed
        self._policies: dict[str, list[Policy]] = {}
        for policy in policies:
            shadow = shadow_of(policy)
            if shadow is not None:
                self._policies.setdefault(shadow.worker, []).append(shadow)
        self._availabilities = PolicyAvailabilities(characters, warns=True)
        self._leased: dict[str, PooledWorker] = {}
        self._worker_descriptions: dict[str, WorkerDescriptions] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def workers(self) -> frozenset[str]:
        """The names of the shadows' workers."""
        return frozenset(self._policies)

    def availabilities(self, phase: Phase) -> Mapping[str, PolicyAvailability]:
        """The availability of each shadow of a phase, by its qualified name (``shadow_of``). A shadow without one is
        not described yet.
        """
        return self._availabilities.of(phase)

    def known(self, call: PolicyCall) -> None:
        """None: a shadow is always called."""

    def call(self, call: PolicyCall, waiter: CallWaiter) -> Callable[[], object]:
        """Call the shadow's worker, as Workers does."""
        name = call.policy.worker
        worker_descriptions = self._worker_descriptions.get(name)
        fits = None if worker_descriptions is None else worker_descriptions.fits(call.policy, call.version)
        return self._leased[name].meter.call(call, waiter.answered, fits, of_policy=False)

    def disagreed(self, call: PolicyCall, version: str) -> None:
        """Ignored: a shadow's answers do not count as version skew."""

    def add_worker(self, worker: Worker, pooled: "PooledWorker", before: Sequence["Shadows"]) -> None:
        """A worker can be called from now on; ``before`` are the shadows of the previous configuration.

        The caller releases the worker only after ``close`` has returned.
        """
        policies = self._policies.get(worker.name)
        if policies is None:
            return
        self._leased[worker.name] = pooled
        self._availabilities.before = tuple(each._availabilities for each in before)  # noqa: SLF001 - of the same class
        self._describe(worker, pooled, policies, before)
        self._availabilities.before = ()

    def _describe(
        self, worker: Worker, pooled: "PooledWorker", policies: list[Policy], before: Sequence["Shadows"]
    ) -> None:
        if worker.webhook is not None:
            for policy in policies:
                self._availabilities.set((policy,), webhook_availability(policy, worker))
            self._changed()
            return
        worker_descriptions = self._worker_descriptions[worker.name] = WorkerDescriptions(
            worker=cast("DescribableChannel", pooled.connection),
            configured=worker,
            policies=policies,
            characters=self._characters,
            reported=self._availabilities.set,
            known=lambda: None,
            changed=self._changed,
            failed=lambda why: self._undescribed(policies, why),
            before=known_before(each.worker_descriptions(pooled) for each in before),
        )
        self._undescribed(
            policies,
            f"worker {worker.name!r} is not connected yet; check that it runs and listens at "
            f"{pooled.connection.target}",
        )
        self._tasks.append(asyncio.create_task(worker_descriptions.keep()))

    def worker_descriptions(self, pooled: "PooledWorker") -> WorkerDescriptions | None:
        """The descriptions of a worker, if it is in use here and describes itself."""
        name = pooled.connection.name
        return self._worker_descriptions.get(name) if self._leased.get(name) is pooled else None

    async def close(self) -> None:
        """Stop listening to the workers. What is closed is part of no cycle of references: it is freed at once."""
        self._changed = lambda: None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._worker_descriptions.clear()
        self._leased.clear()

    def _undescribed(self, policies: Iterable[Policy], why: str) -> None:
        """Mark these policies as undescribed, except those that are described already."""
        unknown = [policy for policy in policies if self._availabilities.described(policy) is None]
        self._availabilities.set(unknown, undescribed(why), reported=False)
        self._changed()
