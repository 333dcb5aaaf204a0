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
from typing import Final

import structlog

from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.serving.configuration_switch import ConfigurationSwitch
from gateway.serving.report import Report
from gateway.sources.files import SourceError
from gateway.sources.watching import PollTimer, Source

_LOG: Final = structlog.get_logger(__name__)


class Reload:
    """Watches a source, and proposes what it says.

    Args:
        source: was read for the configuration in force.
        rollout: takes proposals.
        report: says what came of it.
        interval: seconds from look to look; 0: only ``now`` looks.
    """

    def __init__(self, source: Source, rollout: ConfigurationSwitch, report: Report, *, interval: float) -> None:
        self._source = source
        self._rollout = rollout
        self._report = report
        self._interval = interval
        self._looking = PollTimer()
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
