"""Switches from one configuration to the next, without delaying or losing a review.

A new configuration is a **candidate**: the gateway connects to its workers and describes them while the configuration
in force serves; the two share the workers that are the same. The candidate is adopted, in one step, when all its
workers are described or ``wait_seconds`` have passed. A policy that could be called so far, and cannot be called as the
candidate configures it, keeps its last good version (``last_good``). There is one candidate at most: a newer one
replaces it.

As soon as such a policy can be called as it is configured, the gateway calls that version. Then the configuration in
force is **renewed**: replaced by itself without the last good version, so that workers used only by that are closed.

A configuration that was replaced is **retiring**: it lives until its last review is decided. Then the workers that no
other configuration uses are closed.
"""

import asyncio
import gc
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

import structlog

from gateway.engine.policy_caller import PolicyCaller
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Configuration, Phase
from gateway.registration.entries import Entries
from gateway.registration.former_entries import FormerEntry
from gateway.registration.registered_entries import RegisteredEntries
from gateway.serving.driver import FactSource
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.serving.reload_report import Report
from gateway.telemetry.events import Events
from gateway.transports.limits import TransportLimits
from gateway.transports.transport_config import TransportConfig
from gateway.transports.worker_pool import WorkerPool
from gateway.transports.workers import Workers

_LOG: Final = structlog.get_logger(__name__)

FROZEN_FROM: Final = 1_000
"""Policies of a configuration that no garbage collection looks at: 10,000 of them would take 250 ms."""


class ConfigurationSwitch:
    """Holds the loaded configuration in force, the candidate to replace it, and those that are retiring.

    Args:
        configuration: the first one.
        texts: what it was read from.
        limits: of the calls to workers.
        wait_seconds: how long a start, and a candidate, waits for its workers to be described.
        caching: puts a cache in front of the workers; None: there is no cache.
        report: reports what becomes of candidates.
        keep: which former entries are kept, of all; None: all of them.
        worker_events: records what happens with workers.
        transport_config: credentials and settings of this process for connections to workers.
        facts: of the cluster; None: there is no cluster.
    """

    def __init__(  # noqa: PLR0913 - all but the first two by name
        self,
        configuration: Configuration,
        texts: Sequence[SourceText],
        *,
        limits: TransportLimits,
        wait_seconds: float,
        report: Report,
        keep: Callable[[tuple[FormerEntry, ...]], tuple[FormerEntry, ...]] | None = None,
        caching: Callable[[Workers], PolicyCaller] | None = None,
        worker_events: Events | None = None,
        transport_config: TransportConfig | None = None,
        facts: FactSource | None = None,
    ) -> None:
        self._limits = limits
        self._wait_seconds = wait_seconds
        self._report = report
        self._keep = keep
        self._caching = caching
        self._facts = facts
        self._pool = WorkerPool(limits, worker_events, transport_config)
        self.observers: list[Callable[[], object]] = []
        """Called when another configuration is in force, and when the availability of policies may have changed."""
        self._availabilities_changed = asyncio.Event()
        self._alive: set[LoadedConfiguration] = set()
        self._retiring: set[asyncio.Task[None]] = set()
        self._trial: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._proposing = asyncio.Lock()
        self._registered: tuple[tuple[Phase, RegisteredEntries], ...] = ()
        self.candidate: LoadedConfiguration | None = None
        self.current = self._generation(configuration, texts, None)

    async def start(self) -> None:
        """Connect to the workers of the first configuration."""
        await self.current.start(wait_seconds=self._wait_seconds)
        self._report.availability(self.current)
        self._watch = asyncio.create_task(self._watch_availabilities())

    async def propose(
        self, configuration: Configuration, texts: Sequence[SourceText], entries: Entries | None = None
    ) -> None:
        """Make a configuration the candidate, in the background; it replaces the present candidate, if any.

        ``entries``: see LoadedConfiguration.
        """
        async with self._proposing:
            await self._withdraw()
            self._begin(self._generation(configuration, texts, self.current, entries=entries))

    def registered(self, registered: tuple[tuple[Phase, RegisteredEntries], ...]) -> None:
        """Serve the entries that are registered now, by phase, whatever configuration they are of."""
        self._registered = registered
        for each in (self.current, self.candidate):
            if each is not None:
                each.learn(registered)
        self._report.entries(self.current)

    async def settled(self) -> None:
        """Wait until the present candidate, if there is one, is adopted or dropped."""
        if self._trial is not None:
            await asyncio.wait((self._trial,))

    async def withdraw(self) -> None:
        """Drop the candidate, if there is one."""
        async with self._proposing:
            await self._withdraw()
        # If that candidate was a renewal of the configuration in force, the renewal is due again.
        self._availabilities_changed.set()

    async def close(self) -> None:
        """Close all configurations and workers."""
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
        entries: Entries | None = None,
    ) -> LoadedConfiguration:
        generation = LoadedConfiguration(
            configuration,
            self._pool,
            limits=self._limits,
            texts=texts,
            loaded=loaded,
            before=before,
            caching=self._caching,
            changed=self._availabilities_changed.set,
            facts=self._facts,
            keep=self._keep,
            entries=entries,
        )
        generation.learn(self._registered)
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
        except Exception as error:  # noqa: BLE001 - reported; the configuration in force stays
            self.candidate = None
            self._report.failed(error)
            await self._end(candidate)
            return
        await self._report.known(candidate)
        if len(candidate.policies()) >= FROZEN_FROM:
            # In long-lived objects there is no garbage, but looking for it holds the loop. What is closed needs none.
            gc.collect(0)
            gc.freeze()

    def _adopt(self, candidate: LoadedConfiguration) -> None:
        before, self.current, self.candidate = self.current, candidate, None
        task = asyncio.create_task(self._retire(before))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)
        self._report.availability(candidate)
        if candidate.configuration is not before.configuration:
            self._report.adopted(candidate)
        self._notify()

    def _notify(self) -> None:
        for observer in self.observers:
            observer()

    async def _watch_availabilities(self) -> None:
        """Report changes of the policies' availability; renew the configuration when a last good version is unused."""
        while True:
            await self._availabilities_changed.wait()
            self._availabilities_changed.clear()
            try:
                self._report.availability(self.current)
                self._notify()
                await self._renew()
            except Exception:  # noqa: BLE001 - logged; the next change may succeed
                _LOG.exception("updating the availability of policies failed inside the gateway")

    async def _renew(self) -> None:
        async with self._proposing:
            current = self.current
            if self.candidate is None and current.is_superseding:
                self._begin(
                    self._generation(
                        current.configuration,
                        current.texts,
                        current,
                        loaded=current.loaded,
                        entries=current.entries,
                    )
                )

    async def _retire(self, generation: LoadedConfiguration) -> None:
        await generation.idle()
        await self._end(generation)
        await self._report.retired()

    async def _end(self, generation: LoadedConfiguration) -> None:
        await generation.close()
        self._alive.discard(generation)
