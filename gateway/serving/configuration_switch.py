"""From one configuration to the next, with nobody waiting and nothing lost.

A new configuration is a **candidate**: its workers are reached and described beside those in force, of which it shares
all that are the same. It is adopted in one moment, when its workers are described or have had their time. Each policy
that can be asked until then and cannot be asked as it is configured now keeps its last good version (``last_good``).
There is one candidate at most: a newer one takes its place.

As soon as such a policy can be asked as it is configured, it is. Then the configuration in force is **renewed**:
followed by itself, without the version that is not needed any more, so that workers which only that one had are let go.

A generation that was followed is **retiring**: it lives until its last review is decided. Only then are workers let go
that nobody else holds.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

import structlog

from gateway.engine.policy_caller import PolicyCaller
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Configuration
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.serving.report import Report
from gateway.telemetry.events import Events
from gateway.transports.limits import TransportLimits
from gateway.transports.pool import WorkerPool
from gateway.transports.transport_config import TransportConfig
from gateway.transports.workers import Workers

_LOG: Final = structlog.get_logger(__name__)


class ConfigurationSwitch:
    """Keeps the generation in force, the candidate to follow it, and those that retire.

    Args:
        configuration: the first one.
        texts: what it was read from.
        limits: of the calls to workers.
        wait_seconds: how long a start, and a candidate, waits for its workers to be described.
        asking: puts a cache in front of a generation's workers; None: there is none.
        report: says what becomes of candidates.
        worker_events: is told what happens with workers.
        transport_config: what the process has been given to reach workers with.
    """

    def __init__(  # noqa: PLR0913 - all but the first two by name
        self,
        configuration: Configuration,
        texts: Sequence[SourceText],
        *,
        limits: TransportLimits,
        wait_seconds: float,
        report: Report,
        asking: Callable[[Workers], PolicyCaller] | None = None,
        worker_events: Events | None = None,
        transport_config: TransportConfig | None = None,
    ) -> None:
        self._limits = limits
        self._wait_seconds = wait_seconds
        self._report = report
        self._asking = asking
        self._pool = WorkerPool(limits, worker_events, transport_config)
        self._availabilities_changed = asyncio.Event()
        self._alive: set[LoadedConfiguration] = set()
        self._retiring: set[asyncio.Task[None]] = set()
        self._trial: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._proposing = asyncio.Lock()
        self.candidate: LoadedConfiguration | None = None
        self.current = self._generation(configuration, texts, None)

    async def start(self) -> None:
        """Reach the workers of the first generation."""
        await self.current.start(wait_seconds=self._wait_seconds)
        self._report.availability(self.current)
        self._watch = asyncio.create_task(self._watch_availabilities())

    async def propose(self, configuration: Configuration, texts: Sequence[SourceText]) -> None:
        """Try a configuration, in the background, instead of the candidate that there may be."""
        async with self._proposing:
            await self._withdraw()
            self._begin(self._generation(configuration, texts, self.current))

    async def withdraw(self) -> None:
        """Give the candidate up, if there is one."""
        async with self._proposing:
            await self._withdraw()
        # If that would have renewed what is in force: it is due again.
        self._availabilities_changed.set()

    async def close(self) -> None:
        """Leave nothing behind."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        await self.withdraw()
        for task in tuple(self._retiring):
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        for generation in tuple(self._alive):
            await self._end(generation)
        await self._pool.close()

    # --------------------------------------------------------------------------------------------- one candidate

    def _generation(
        self,
        configuration: Configuration,
        texts: Sequence[SourceText],
        before: LoadedConfiguration | None,
        *,
        loaded: datetime | None = None,
    ) -> LoadedConfiguration:
        generation = LoadedConfiguration(
            configuration,
            self._pool,
            limits=self._limits,
            texts=texts,
            loaded=loaded,
            before=before,
            asking=self._asking,
            changed=self._availabilities_changed.set,
        )
        self._alive.add(generation)
        return generation

    def _begin(self, candidate: LoadedConfiguration) -> None:
        self.candidate = candidate
        self._trial = asyncio.create_task(self._try(candidate))

    async def _withdraw(self) -> None:
        trial, self._trial = self._trial, None
        if trial is not None:
            trial.cancel()
            await asyncio.gather(trial, return_exceptions=True)
        candidate, self.candidate = self.candidate, None
        if candidate is not None:
            await self._end(candidate)

    async def _try(self, candidate: LoadedConfiguration) -> None:
        try:
            await candidate.start(wait_seconds=self._wait_seconds)
            await candidate.follow(self.current)
            self._adopt(candidate)
        except Exception as error:  # noqa: BLE001 - told, and what is in force stays in force
            self.candidate = None
            self._report.failed(error)
            await self._end(candidate)

    def _adopt(self, candidate: LoadedConfiguration) -> None:
        before, self.current, self.candidate = self.current, candidate, None
        task = asyncio.create_task(self._retire(before))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)
        self._report.availability(candidate)
        if candidate.configuration is not before.configuration:
            self._report.adopted(candidate)

    async def _watch_availabilities(self) -> None:
        """Tell what becomes of the policies in force, and renew what is in force when that frees a version."""
        while True:
            await self._availabilities_changed.wait()
            self._availabilities_changed.clear()
            try:
                self._report.availability(self.current)
                await self._renew()
            except Exception:  # noqa: BLE001 - logged; the next change may go better
                _LOG.exception("looking after the policies in force failed inside the gateway")

    async def _renew(self) -> None:
        async with self._proposing:
            current = self.current
            if self.candidate is None and current.is_superseding:
                self._begin(self._generation(current.configuration, current.texts, current, loaded=current.loaded))

    async def _retire(self, generation: LoadedConfiguration) -> None:
        await generation.idle()
        await self._end(generation)
        self._report.retired()

    async def _end(self, generation: LoadedConfiguration) -> None:
        await generation.close()
        self._alive.discard(generation)
