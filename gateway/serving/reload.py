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
"""

import asyncio
from typing import Final

import structlog

from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.serving.configuration_switch import ConfigurationSwitch
from gateway.serving.reload_report import Report
from gateway.sources.files import SourceError
from gateway.sources.watching import PollTimer, Source

_LOG: Final = structlog.get_logger(__name__)


class Reload:
    """Watches a source, and proposes its configurations.

    Args:
        source: that of the configuration in force.
        rollout: takes the proposals.
        report: reports the results.
        interval: seconds between polls; 0: the source is read only by ``now``.
    """

    def __init__(self, source: Source, rollout: ConfigurationSwitch, report: Report, *, interval: float) -> None:
        self._source = source
        self._rollout = rollout
        self._report = report
        self._interval = interval
        self._poll_timer = PollTimer()
        self._tried: tuple[SourceText, ...] | None = None

    def now(self) -> None:
        """Read the source at once, whether or not it has changed."""
        self._poll_timer.now()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            requested = await self._poll_timer.pause(self._interval)
            try:
                if requested or await asyncio.to_thread(self._source.changed):
                    await self._read(again=requested)
            except Exception as error:  # noqa: BLE001 - reported; the next poll may succeed
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
