"""Hot reload: the gateway polls the source, and loads a changed configuration whole or not at all.

    ================================  ==========  ==================================================================
    the new texts                     result      what follows
    ================================  ==========  ==================================================================
    cannot be read                    unreadable  the last good configuration stays; read again after a change
    have any error                    invalid     the same; all errors are in the log
    are those in force                unchanged   the note of an earlier error is removed
    are new and have no error         loaded      they decide the next review
    cause an error inside the         failed      the last good configuration stays
    gateway
    ================================  ==========  ==================================================================

The gateway reports that the last good configuration stays: in the log, once for each new text, in the metrics, and in
``/readyz?verbose`` as long as that is so. It stays ready: it has a complete configuration.

Workers do not prevent a reload: a policy that its worker does not hold, or whose settings or claims the worker rejects,
keeps its last good version (``last_good``), and /readyz?verbose lists it (``degradation``).

A start is more lenient than a reload: there is no good version to keep, so policies with errors are failures in the
chain, and the others are served.

With ``--cluster-policies`` the objects of the cluster are loaded together with the files, at each change, and with
errors as at a start (``load_partially``): no object keeps the others, or the files, from being loaded. Bad files
are tried again at each change in the cluster, because what they lack may have been made there. Nothing is served until
all objects have been listed once. A configuration that is being prepared is not replaced by one with other objects, but
followed by it: else a worker that does not answer and a stream of changes could delay them forever.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import structlog

from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Configuration, Phase
from gateway.policies.partial_load import PartialLoad, load_partially
from gateway.registration.entries import Entries, make_entries
from gateway.serving.configuration_switch import ConfigurationSwitch
from gateway.serving.reload_report import Report
from gateway.serving.threads import in_thread
from gateway.sources.files import SourceError
from gateway.sources.watching import PollTimer, Source

if TYPE_CHECKING:
    from gateway.cluster.policy_objects import PolicyObjects

_LOG: Final = structlog.get_logger(__name__)

_GATHER_SECONDS: Final = 0.05
"""How long further changes in the cluster are waited for: one `kubectl apply` makes several objects."""

_RETRY_SECONDS: Final = 2.0
"""Until a first load that failed is tried again."""


class Reload:
    """Watches a source, and proposes its configurations.

    Args:
        source: that of the configuration in force.
        files: the texts that were read from it.
        rollout: takes the proposals.
        report: reports the results.
        interval: seconds between polls; 0: the source is read only by ``now``.
    """

    def __init__(
        self,
        source: Source,
        files: tuple[SourceText, ...],
        *,
        rollout: ConfigurationSwitch,
        report: Report,
        interval: float,
    ) -> None:
        self.refused: Mapping[SourceText, str] = {}
        """The objects of the cluster that are not in the last proposal, and why."""
        self._source = source
        self._files = files
        self._rollout = rollout
        self._report = report
        self._interval = interval
        self._objects: PolicyObjects | None = None
        self._objects_changed = asyncio.Event()
        self._poll_timer = PollTimer()
        self._loading = asyncio.Lock()
        self._tried: tuple[SourceText, ...] | None = None
        self._invalid: tuple[SourceText, ...] | None = None

    def now(self) -> None:
        """Read the source at once, whether or not it has changed."""
        self._poll_timer.now()

    async def run(self) -> None:
        """Watch the files until cancelled."""
        while True:
            requested = await self._poll_timer.pause(self._interval)
            try:
                if requested or await asyncio.to_thread(self._source.changed):
                    async with self._loading:
                        await self._read(again=requested)
            except Exception as error:  # noqa: BLE001 - reported; the next poll may succeed
                self._report.failed(error)

    def objects_changed(self) -> None:
        """An object of the cluster has changed, or all are known now."""
        self._objects_changed.set()

    async def follow(self, objects: "PolicyObjects", ready: Callable[[], object]) -> None:
        """Load the objects of the cluster at each change, until cancelled.

        Args:
            objects: all of them.
            ready: called once, when what was loaded is in force for the first time. That is tried until it succeeds.
        """
        is_ready = False
        self._objects = objects
        while True:
            await self._objects_changed.wait()
            await asyncio.sleep(_GATHER_SECONDS)
            self._objects_changed.clear()
            if not objects.known:
                continue
            loaded = None
            try:
                async with self._loading:
                    loaded = await self._load_objects()
                await self._rollout.settled()
            except Exception as error:  # noqa: BLE001 - reported; the next change may succeed
                self._report.failed(error)
            if is_ready:
                continue
            if loaded is not None and loaded.texts == self._rollout.current.texts:
                is_ready = True
                ready()
            else:
                await asyncio.sleep(_RETRY_SECONDS)
                self._objects_changed.set()

    async def _read(self, *, again: bool) -> None:
        try:
            files = await self._source.fetch()
        except SourceError as error:
            self._tried = None
            await self._withdraw()
            self._report.unreadable(error)
            return
        if self._in_force(files):
            self._tried = self._invalid = None
            self._files = files
            self._report.valid()
            await self._propose(await self._load(files))
            self._report.unchanged(self._rollout.current)
        elif again or files != self._tried:
            self._tried = files
            await self._try(files)

    async def _try(self, files: tuple[SourceText, ...]) -> None:
        loaded = await self._load(files)
        if loaded.configuration.fatal or loaded.file_errors:
            self._invalid = files
            await self._withdraw()
            self._report.invalid(loaded.file_errors)
        else:
            await self._accept(files, loaded)

    async def _load_objects(self) -> PartialLoad:
        if self._invalid is not None:
            loaded = await self._load(self._invalid)
            if not loaded.configuration.fatal and not loaded.file_errors:
                await self._accept(self._invalid, loaded)
                return loaded
        loaded = await self._load(self._files)
        await self._propose(loaded)
        return loaded

    async def _accept(self, files: tuple[SourceText, ...], loaded: PartialLoad) -> None:
        self._files, self._invalid = files, None
        self._report.valid()
        await self._propose(loaded)

    async def _load(self, files: tuple[SourceText, ...]) -> PartialLoad:
        objects = [] if self._objects is None else [each.text for each in self._objects.all().values()]
        good = {text.name: text for text in self._rollout.current.texts if text.in_cluster}
        # In a thread: 10,000 namespaces take seconds to parse.
        return await in_thread(lambda: load_partially(files, objects, good))

    async def _propose(self, loaded: PartialLoad) -> None:
        self.refused = loaded.refused
        if loaded.texts == self._rollout.current.texts:
            await self._rollout.withdraw()
        else:
            entries = await in_thread(lambda: _entries(loaded.configuration))
            await self._rollout.propose(loaded.configuration, loaded.texts, entries)

    async def _withdraw(self) -> None:
        """Drop the candidate, which is made of files that have changed; one of objects, too, is made of good files."""
        if self._objects is None:
            await self._rollout.withdraw()

    def _in_force(self, files: tuple[SourceText, ...]) -> bool:
        return files == tuple(text for text in self._rollout.current.texts if not text.in_cluster)


def _entries(configuration: Configuration) -> Entries:
    """The entries of a configuration, each with its revision: of thousands with conditions that takes long."""
    entries = make_entries(configuration)
    for phase in Phase:
        for entry in entries.of(phase):
            _ = entry.revision
    return entries
