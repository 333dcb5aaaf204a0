"""Where a gateway's decisions are written: the decision log, as the settings say."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.serving.settings import Settings
from gateway.telemetry.background_writer import BackgroundWriter, Sink
from gateway.telemetry.decisions import DecisionLog
from gateway.telemetry.events import Events
from gateway.telemetry.line_sinks import DescriptorSink, FileSink
from gateway.telemetry.table import DECISION_LOG, DECISIONS_DROPPED

if TYPE_CHECKING:
    from gateway.serving.review_handler import DecisionObserver

NONE: Final = "none"
STDOUT: Final = "stdout"


class DecisionOutputs:
    """The writers of one gateway, each with its thread.

    Args:
        settings: of the gateway.
        events: counts decisions that are dropped.
    """

    def __init__(self, settings: Settings, events: Events) -> None:
        self._events = events
        self._writers: list[BackgroundWriter] = []
        self.observers: list[DecisionObserver] = []
        if settings.decision_log != NONE:
            writer = self._writer(DECISION_LOG, _sink(settings.decision_log))
            self.observers.append(DecisionLog(writer, settings.decision_log_level))

    def _writer(self, output: str, sink: Sink) -> BackgroundWriter:
        writer = BackgroundWriter(
            sink, lambda reason, count: self._events.count(DECISIONS_DROPPED, output, reason, amount=count)
        )
        self._writers.append(writer)
        return writer

    def start(self) -> None:
        """Begin to write; in the event loop."""
        for writer in self._writers:
            writer.start()

    def stop(self) -> None:
        """Write what waits, as long as that takes no longer than a writer's ``STOP_SECONDS``."""
        for writer in self._writers:
            writer.stop()


def _sink(destination: str) -> Sink:
    if destination == STDOUT:
        return DescriptorSink(sys.__stdout__.fileno() if sys.__stdout__ else 1, "standard output")
    return FileSink(Path(destination))
