"""Reports the results of reloads."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import product
from typing import Final

import structlog

from gateway.policies.errors import ConfigurationError
from gateway.policies.model import Mode, Phase
from gateway.serving.degradation import LISTED, Degradation, shortened
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.sources.files import SourceError
from gateway.telemetry.log_slices import LogSlices
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import (
    CONFIGURATION_ERRORS,
    CONFIGURATION_LOADED,
    CONFIGURATION_RELOADS,
    LAST_RELOAD_SUCCESSFUL,
    POLICIES,
)

_LOG: Final = structlog.get_logger(__name__)


class Report:
    """Reports the result of each reload in the log, the metrics and the note on /readyz. Called in the loop."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._current: LoadedConfiguration | None = None
        self._stale: str | None = None
        self._rejected: tuple[str, ...] = ()
        self._has_bad_files = False
        self._since = datetime.now(UTC)
        self._degradation = Degradation(metrics)
        self._lines = LogSlices()

    @property
    def warnings(self) -> Sequence[str]:
        """A line for each policy that is not in force as it is configured."""
        return self._degradation.lines

    @property
    def rejected(self) -> Sequence[str]:
        """The errors because of which the configuration that was read last is not in force."""
        return self._rejected

    @property
    def note(self) -> str | None:
        """Why the configuration in force is not that of the source; None if it is."""
        if self._stale is None:
            return None
        return f"the last good configuration, of {_time(self._since)}, is served, because {self._stale}"

    def unreadable(self, error: SourceError) -> None:
        """The source cannot be read."""
        _LOG.error("the configuration cannot be read; the last good one stays", error=str(error))
        self._has_bad_files = True
        self._stays("unreadable", str(error), errors=1, rejected=(str(error),))

    def invalid(self, errors: Sequence[ConfigurationError]) -> None:
        """The new files have errors."""
        for error in errors:
            self._lines.write(partial(_log_error, error))
        first, *more = errors
        self._lines.write(
            partial(_LOG.error, "the new configuration is not loaded; the last good one stays", errors=len(errors))
        )
        others = f" (and {len(more)} more, see the log)" if more else ""
        self._has_bad_files = True
        why = f"the new one has an error: {first}{others}"
        self._stays(
            "invalid", why, errors=len(errors), rejected=tuple(shortened(str(each)) for each in errors[:LISTED])
        )

    def valid(self) -> None:
        """The files can be read, and have no error."""
        self._has_bad_files = False

    def unchanged(self, generation: LoadedConfiguration) -> None:
        """The source has the configuration in force, unchanged or again."""
        _LOG.info("the configuration is unchanged")
        self._stale, self._rejected = None, ()
        self._count("unchanged", errors=len(generation.configuration.errors), good=True)

    def availability(self, generation: LoadedConfiguration) -> None:
        """The availability of policies of the configuration in force may have changed."""
        self._degradation.update(generation)

    def adopted(self, generation: LoadedConfiguration) -> None:
        """The new configuration is in force. (With errors only in objects of the cluster.)"""
        if not self._has_bad_files:
            self._stale, self._rejected = None, ()
        self._since = generation.loaded
        for error in generation.configuration.errors:
            self._lines.write(partial(_log_object_error, error))
        for warning in generation.configuration.warnings:
            self._lines.write(partial(_log_warning, warning))
        in_force = partial(
            _LOG.info,
            "a new configuration is in force",
            mutating=len(generation.configuration.mutating),
            validating=len(generation.configuration.validating),
            workers=len(generation.configuration.workers),
        )
        self._lines.write(in_force)
        self._in_force(generation)
        self._count("loaded", errors=len(generation.configuration.errors), good=not self._has_bad_files)

    def loaded(self, configuration: LoadedConfiguration) -> None:
        """The first configuration is in force."""
        self._metrics.know(configuration.policies(), configuration.entry_names())
        self._in_force(configuration)

    async def known(self, configuration: LoadedConfiguration) -> None:
        """Let the counters of an adopted configuration's policies and entries begin at 0, while the loop goes on. Those
        of the previous one stay: it may still decide reviews.
        """
        for _ in self._metrics.knowing(configuration.policies(), configuration.entry_names()):
            await asyncio.sleep(0)

    def _in_force(self, configuration: LoadedConfiguration) -> None:
        self._current = configuration
        counted = Counter((policy.phase, policy.mode) for policy in configuration.policies())
        for phase, mode in product(Phase, Mode):
            self._metrics.set(POLICIES, counted[phase, mode], phase, mode)
        self._metrics.set(CONFIGURATION_LOADED, configuration.loaded.timestamp())
        self._metrics.set(CONFIGURATION_ERRORS, len(configuration.configuration.errors))
        self._metrics.set(LAST_RELOAD_SUCCESSFUL, 1)

    def entries(self, configuration: LoadedConfiguration) -> None:
        """Count the entries that the configuration in force has learnt, too."""
        self._metrics.know((), configuration.entry_names())

    async def retired(self) -> None:
        """A replaced configuration is closed: its metrics end, except those of what the present one has too."""
        current = self._current
        if current is None:
            return
        for _ in self._metrics.forgetting_others(current.policies, current.entry_names):
            await asyncio.sleep(0)
            if self._current is not current:
                # Its own metrics have begun. It has replaced a configuration too, which will be closed.
                return

    def failed(self, error: Exception) -> None:
        """There was an error inside the gateway."""
        _LOG.error("a reload failed inside the gateway; the last good configuration stays", exc_info=error)
        self._stays("failed", f"loading the new one failed: {type(error).__name__}, see the log", errors=0)

    def _stays(self, result: str, why: str, *, errors: int, rejected: tuple[str, ...] = ()) -> None:
        self._stale = shortened(why)
        self._rejected = rejected
        self._count(result, errors=errors, good=False)

    def _count(self, result: str, *, errors: int, good: bool) -> None:
        """``good``: the configuration in force is that of the source."""
        self._metrics.count(CONFIGURATION_RELOADS, result)
        self._metrics.set(CONFIGURATION_ERRORS, errors)
        self._metrics.set(LAST_RELOAD_SUCCESSFUL, good)


def _log_error(error: ConfigurationError) -> None:
    _LOG.error("an error in the new configuration", place=str(error.place), error=error.message)


def _log_object_error(error: ConfigurationError) -> None:
    # A warning: the object's author reads it in its status.
    _LOG.warning("an error in an object of the cluster", place=str(error.place), error=error.message)


def _log_warning(warning: ConfigurationError) -> None:
    _LOG.warning("a warning about the configuration", place=str(warning.place), warning=warning.message)


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
