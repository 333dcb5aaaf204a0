"""Hot reload: the source is looked at again and again, and what it says now is taken over whole, or not at all.

    ================================  ==========  ==================================================================
    the new texts                     result      what follows
    ================================  ==========  ==================================================================
    cannot be read                    unreadable  the last good configuration stays; again when something has changed
    have any mistake                  invalid     the same; all mistakes are in the log
    are those in force                unchanged   what was wrong meanwhile is forgotten
    are new and sound                 loaded      the next review is decided by them
    broke something inside the        failed      the last good configuration stays
    gateway
    ================================  ==========  ==================================================================

"The last good one stays" is said in the log, once for each new text, in the metrics, and in ``/readyz?verbose`` as long
as it holds. The gateway stays ready: it has a complete configuration.

What the workers say of the new configuration holds nothing up: a policy that its worker does not hold, or whose
settings or claims are refused, keeps its last good version (``last_good``), and /readyz?verbose lists it
(``degradation``).

A start is more lenient than a reload: there is no good version to keep, so policies with mistakes stand in the chain
as failures, and the others are served.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import structlog

from gateway.policies.configuration import load
from gateway.policies.document import SourceText
from gateway.policies.model import Configuration
from gateway.serving.degradation import Degradation, shortened
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.serving.looking import Looking
from gateway.serving.rollout import Rollout
from gateway.sources.files import SourceError
from gateway.sources.watching import Source
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import (
    CONFIGURATION_ERRORS,
    CONFIGURATION_LOADED,
    CONFIGURATION_RELOADS,
    LAST_RELOAD_SUCCESSFUL,
)

_LOG: Final = structlog.get_logger(__name__)


class Report:
    """What is said of reloads: log, metrics, and the note on /readyz. A RolloutEvents."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._current: LoadedConfiguration | None = None
        self._stale: str | None = None
        self._since = datetime.now(UTC)
        self._degradation = Degradation(metrics)

    @property
    def warnings(self) -> Sequence[str]:
        """A line for each policy that is not in force as it is configured."""
        return self._degradation.lines

    @property
    def note(self) -> str | None:
        """Why what is served is not what the source says; None where it is."""
        if self._stale is None:
            return None
        return f"the last good configuration, of {_time(self._since)}, is served, because {self._stale}"

    def unreadable(self, error: SourceError) -> None:
        """The source cannot be read."""
        _LOG.error("the configuration cannot be read; the last good one stays", error=str(error))
        self._stays("unreadable", str(error), errors=1)

    def invalid(self, configuration: Configuration) -> None:
        """There are mistakes in it."""
        for error in configuration.errors:
            _LOG.error("a mistake in the new configuration", place=str(error.place), mistake=error.message)
        first, *more = configuration.errors
        _LOG.error("the new configuration is not loaded; the last good one stays", mistakes=len(configuration.errors))
        others = f" (and {len(more)} more, see the log)" if more else ""
        self._stays("invalid", f"the new one has a mistake: {first}{others}", errors=len(configuration.errors))

    def unchanged(self, generation: LoadedConfiguration) -> None:
        """The source says, or says again, what is in force."""
        _LOG.info("the configuration is the one that is served")
        self._stale = None
        self._count("unchanged", errors=len(generation.configuration.errors), good=True)

    def standing(self, generation: LoadedConfiguration) -> None:
        """Which policies of the one in force can be asked may have changed."""
        self._degradation.update(generation)

    def adopted(self, generation: LoadedConfiguration) -> None:
        """The new one is in force."""
        self._stale = None
        self._since = generation.loaded
        for warning in generation.configuration.warnings:
            _LOG.warning("a warning about the configuration", place=str(warning.place), warning=warning.message)
        _LOG.info(
            "a new configuration is in force",
            mutating=len(generation.configuration.mutating),
            validating=len(generation.configuration.validating),
            workers=len(generation.configuration.workers),
        )
        self.loaded(generation)
        self._count("loaded", errors=0, good=True)

    def loaded(self, configuration: LoadedConfiguration) -> None:
        """This one is in force. Its policies and entries are counted from now on; one before may still have reviews."""
        self._current = configuration
        self._metrics.know(configuration.policies(), configuration.entry_names())
        self._metrics.set(CONFIGURATION_LOADED, configuration.loaded.timestamp())
        self._metrics.set(CONFIGURATION_ERRORS, len(configuration.configuration.errors))
        self._metrics.set(LAST_RELOAD_SUCCESSFUL, 1)

    def retired(self) -> None:
        """The one before is not at work any more: what only that one had is not counted any more."""
        if self._current is not None:
            self._metrics.forget_others(self._current.policies(), self._current.entry_names())

    def failed(self, error: Exception) -> None:
        """A mistake of our own."""
        _LOG.error("a reload failed inside the gateway; the last good configuration stays", exc_info=error)
        self._stays("failed", f"loading the new one failed: {type(error).__name__}, see the log", errors=0)

    def _stays(self, result: str, why: str, *, errors: int) -> None:
        self._stale = shortened(why)
        self._count(result, errors=errors, good=False)

    def _count(self, result: str, *, errors: int, good: bool) -> None:
        """``good``: what is served is what the source says."""
        self._metrics.count(CONFIGURATION_RELOADS, result)
        self._metrics.set(CONFIGURATION_ERRORS, errors)
        self._metrics.set(LAST_RELOAD_SUCCESSFUL, good)


class Reload:
    """Watches a source, and proposes what it says.

    Args:
        source: was read for the configuration in force.
        rollout: takes proposals.
        report: says what came of it.
        interval: seconds from look to look; 0: only ``now`` looks.
    """

    def __init__(self, source: Source, rollout: Rollout, report: Report, *, interval: float) -> None:
        self._source = source
        self._rollout = rollout
        self._report = report
        self._interval = interval
        self._looking = Looking()
        self._tried: tuple[SourceText, ...] | None = None

    def now(self) -> None:
        """Read the source at once, whether or not it looks changed."""
        self._looking.now()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            asked = await self._looking.pause(self._interval)
            try:
                if asked or await asyncio.to_thread(self._source.changed):
                    await self._read(again=asked)
            except Exception as error:  # noqa: BLE001 - told; the next look may go better
                self._report.failed(error)

    async def _read(self, *, again: bool) -> None:
        try:
            texts = await self._source.fetch()
        except SourceError as error:
            self._tried = None
            await self._rollout.withdraw()
            self._report.unreadable(error)
            return
        if texts == self._rollout.current.texts:
            self._tried = None
            await self._rollout.withdraw()
            self._report.unchanged(self._rollout.current)
        elif again or texts != self._tried:
            self._tried = texts
            await self._try(texts)

    async def _try(self, texts: tuple[SourceText, ...]) -> None:
        # In a thread: 10,000 namespaces take seconds to parse.
        configuration = await asyncio.to_thread(load, texts)
        if configuration.fatal or configuration.errors:
            await self._rollout.withdraw()
            self._report.invalid(configuration)
        else:
            await self._rollout.propose(configuration, texts)


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
