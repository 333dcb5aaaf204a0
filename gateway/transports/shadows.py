"""The shadows of one configuration: described and asked like its policies, and in nobody's way.

A shadow has a standing like any policy: its worker has to describe it, to claim no more than is granted, and to accept
its settings. Whatever keeps it from that is its own trouble. So shadows have acquaintances of their own with the
workers, even with those that policies are put to as well: settings that a worker is slow to judge, or refuses, hold up
no policy. Nobody waits for a shadow, neither a start nor a reload.

An answer in a version that nobody described is not held against the worker, as that of a policy would be: what a shadow
answers keeps no policy from its cache.
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
    from gateway.transports.pool import PooledWorker
    from gateway.transports.worker_channel import DescribableChannel


class Shadows:
    """Knows the shadows, and calls them. A PolicyCaller.

    Args:
        policies: of the configuration.
        characters: how much of a worker's own words is kept in one message.
        changed: called in the loop whenever a standing has changed.
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
        self._held: dict[str, PooledWorker] = {}
        self._acquaintances: dict[str, WorkerDescriptions] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def workers(self) -> frozenset[str]:
        """The names of the workers that they are put to."""
        return frozenset(self._policies)

    def availabilities(self, phase: Phase) -> Mapping[str, PolicyAvailability]:
        """The standing of each shadow of a phase, by its qualified name (``shadow_of``). One that is missing is not
        described yet.
        """
        return self._availabilities.of(phase)

    def known(self, call: PolicyCall) -> None:
        """Nothing is: a shadow is called."""

    def call(self, call: PolicyCall, waiter: CallWaiter) -> Callable[[], object]:
        """Call the shadow's worker, as Workers does."""
        name = call.policy.worker
        worker_descriptions = self._acquaintances.get(name)
        fits = None if worker_descriptions is None else worker_descriptions.fits(call.policy, call.version)
        return self._held[name].connection.ask(call, waiter.answered, fits)

    def disagreed(self, call: PolicyCall, version: str) -> None:
        """It is not held against the worker."""

    def reached(self, worker: Worker, reached: "PooledWorker", before: Sequence["Shadows"]) -> None:
        """A worker can be asked from now on; ``before`` knows the shadows that there were until now.

        Whoever reaches it holds it until ``close`` has returned.
        """
        policies = self._policies.get(worker.name)
        if policies is None:
            return
        self._held[worker.name] = reached
        if worker.webhook is not None:
            for policy in policies:
                self._reported(policy, webhook_availability(policy, worker))
            self._changed()
            return
        worker_descriptions = self._acquaintances[worker.name] = WorkerDescriptions(
            worker=cast("DescribableChannel", reached.connection),
            configured=worker,
            policies=policies,
            characters=self._characters,
            reported=self._reported,
            known=lambda: None,
            changed=self._changed,
            failed=lambda why: self._undescribed(policies, why),
            before=known_before(each.worker_descriptions(reached) for each in before),
        )
        self._undescribed(
            policies,
            f"worker {worker.name!r} is not reached yet, at {reached.connection.target}; see whether it runs and "
            "listens there",
        )
        self._tasks.append(asyncio.create_task(worker_descriptions.keep()))

    def worker_descriptions(self, reached: "PooledWorker") -> WorkerDescriptions | None:
        """What is known here of a worker, if it is one of those reached here that say anything of themselves."""
        name = reached.connection.name
        return self._acquaintances.get(name) if self._held.get(name) is reached else None

    async def close(self) -> None:
        """Listen to the workers no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._acquaintances.clear()
        self._held.clear()

    def _reported(self, policy: Policy, availability: PolicyAvailability) -> None:
        self._availabilities.set(policy, availability)

    def _undescribed(self, policies: Iterable[Policy], why: str) -> None:
        """None of them can be asked, but for those that could be before."""
        for policy in policies:
            if self._availabilities.described(policy) is None:
                self._availabilities.set(policy, undescribed(why), reported=False)
        self._changed()
