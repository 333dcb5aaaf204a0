"""From one configuration to the next, with nobody waiting and nothing lost.

A new configuration is a **candidate**: its workers are reached and described beside those in force, of which it shares
all that are the same. It is adopted as a whole, in one moment, when each policy that can be asked now can be asked in
it too; until then what is in force stays in force, and the candidate is tried again whenever a standing changes. There
is one candidate at most: a newer one takes its place.

A generation that was followed is **retiring**: it lives until its last review is decided. Only then are workers let go
that nobody else holds.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from gateway.deciding.asking import Asker
from gateway.policies.document import SourceText
from gateway.policies.model import Configuration
from gateway.serving.loaded_configuration import Blocker, LoadedConfiguration
from gateway.transports.events import WorkerEvents
from gateway.transports.limits import TransportLimits
from gateway.transports.means import Means
from gateway.transports.pool import WorkerPool
from gateway.transports.workers import Workers


class RolloutEvents(Protocol):
    """Who wants to know what becomes of a candidate. Called in the loop."""

    def waiting(self, blockers: Sequence[Blocker]) -> None:
        """It is not adopted, because these policies could be asked until now. It is tried on."""

    def adopted(self, generation: LoadedConfiguration) -> None:
        """It is in force."""

    def retired(self) -> None:
        """The last review of the generation before is decided, and its workers are let go."""

    def failed(self, error: Exception) -> None:
        """Trying it broke inside the gateway. It is given up."""


class Rollout:
    """Keeps the generation in force, the candidate to follow it, and those that retire.

    Args:
        configuration: the first one.
        texts: what it was read from.
        limits: of the calls to workers.
        wait_seconds: how long a start, and a candidate, waits for its workers to be described.
        asking: puts a cache in front of a generation's workers; None: there is none.
        events: hears what becomes of candidates.
        worker_events: hears of what happens with workers.
        means: what the process has been given to reach workers with.
    """

    def __init__(  # noqa: PLR0913 - all but the first two by name
        self,
        configuration: Configuration,
        texts: Sequence[SourceText],
        *,
        limits: TransportLimits,
        wait_seconds: float,
        events: RolloutEvents,
        asking: Callable[[Workers], Asker] | None = None,
        worker_events: WorkerEvents | None = None,
        means: Means | None = None,
    ) -> None:
        self._limits = limits
        self._wait_seconds = wait_seconds
        self._events = events
        self._asking = asking
        self._pool = WorkerPool(limits, worker_events, means)
        self._standings_changed = asyncio.Event()
        self._alive: set[LoadedConfiguration] = set()
        self._retiring: set[asyncio.Task[None]] = set()
        self._trial: asyncio.Task[None] | None = None
        self.candidate: LoadedConfiguration | None = None
        self.current = self._generation(configuration, texts, None)

    async def start(self) -> None:
        """Reach the workers of the first generation."""
        await self.current.start(wait_seconds=self._wait_seconds)

    async def propose(self, configuration: Configuration, texts: Sequence[SourceText]) -> None:
        """Try a configuration, in the background, instead of the candidate that there may be."""
        await self.withdraw()
        self.candidate = self._generation(configuration, texts, self.current)
        self._trial = asyncio.create_task(self._try(self.candidate))

    async def withdraw(self) -> None:
        """Give the candidate up, if there is one."""
        trial, self._trial = self._trial, None
        if trial is not None:
            trial.cancel()
            await asyncio.gather(trial, return_exceptions=True)
        candidate, self.candidate = self.candidate, None
        if candidate is not None:
            await self._end(candidate)

    async def close(self) -> None:
        """Leave nothing behind."""
        await self.withdraw()
        for task in tuple(self._retiring):
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        for generation in tuple(self._alive):
            await self._end(generation)
        await self._pool.close()

    # --------------------------------------------------------------------------------------------- one candidate

    def _generation(
        self, configuration: Configuration, texts: Sequence[SourceText], before: LoadedConfiguration | None
    ) -> LoadedConfiguration:
        generation = LoadedConfiguration(
            configuration,
            self._pool,
            limits=self._limits,
            texts=texts,
            before=before,
            asking=self._asking,
            changed=self._standings_changed.set,
        )
        self._alive.add(generation)
        return generation

    async def _try(self, candidate: LoadedConfiguration) -> None:
        try:
            await candidate.start(wait_seconds=self._wait_seconds)
            await self._until_no_policy_is_lost(candidate)
            self._adopt(candidate)
        except Exception as error:  # noqa: BLE001 - told, and what is in force stays in force
            self.candidate = None
            self._events.failed(error)
            await self._end(candidate)

    async def _until_no_policy_is_lost(self, candidate: LoadedConfiguration) -> None:
        told: Sequence[Blocker] = ()
        while True:
            self._standings_changed.clear()
            blockers = candidate.blockers(self.current)
            if not blockers:
                return
            if blockers != told:
                told = blockers
                self._events.waiting(blockers)
            await self._standings_changed.wait()

    def _adopt(self, candidate: LoadedConfiguration) -> None:
        before, self.current, self.candidate = self.current, candidate, None
        task = asyncio.create_task(self._retire(before))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)
        self._events.adopted(candidate)

    async def _retire(self, generation: LoadedConfiguration) -> None:
        await generation.idle()
        await self._end(generation)
        self._events.retired()

    async def _end(self, generation: LoadedConfiguration) -> None:
        await generation.close()
        self._alive.discard(generation)
