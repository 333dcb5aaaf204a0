"""The decision log: a line of JSON for each review, the document of ``gateway.telemetry.decision_document``.

It is the only log of decisions: the process's own log has no line for a review. So there is one format, one level and
one place to look, and the standard error has what the process says of itself.

A line is made when the answer has left, and only if the level selects it; then a thread writes it. No review waits.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from gateway.engine.answer_source import Source
from gateway.engine.decision import Decision
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.verdicts import Deny, Failure
from gateway.telemetry.background_writer import BackgroundWriter
from gateway.telemetry.decision_document import decision_document, encoded
from gateway.telemetry.labels import Drop
from gateway.telemetry.log_level import LogLevel

_LOG: Final = structlog.get_logger(__name__)


class DecisionLog:
    """Logs decisions. A DecisionObserver.

    Args:
        writer: takes the lines.
        level: which decisions are logged.
    """

    def __init__(self, writer: BackgroundWriter, level: LogLevel = LogLevel.DENIED) -> None:
        self._writer = writer
        self._level = level

    def decided(self, decision: Decision) -> None:
        """Log this decision when its answer has left, if the level selects it; in the event loop."""
        if self._level is not LogLevel.ALL:
            level = LogLevel.FAILED if decision.reason is not None else level_of(decision.calls)
            if level is LogLevel.ALL or (level is LogLevel.DENIED and self._level is LogLevel.FAILED):
                return
        if self._writer.full:
            # The line would be made for nothing.
            self._writer.drop(Drop.FULL, error="too many decisions wait to be written")
            return
        asyncio.get_running_loop().call_soon(self._write, decision)

    def _write(self, decision: Decision) -> None:
        try:
            line = encoded(decision_document(decision)) + b"\n"
        except Exception:  # noqa: BLE001 - logged and counted: an observer must not raise
            _LOG.exception("a decision cannot be logged", uid=decision.request.uid)
            self._writer.drop(Drop.INTERNAL)
            return
        self._writer.put(line)


def level_of(calls: Sequence[InvocationRecord]) -> LogLevel:
    """The lowest level that selects a decision with these calls."""
    level = LogLevel.ALL
    for call in calls:
        if isinstance(call.answer, Failure) or call.source is Source.STALE:
            return LogLevel.FAILED
        if isinstance(call.answer, Deny) or call.would_change or call.conflicts:
            level = LogLevel.DENIED
    return level
