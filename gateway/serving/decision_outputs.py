"""Where a gateway's decisions are written: the decision log, and recordings, as the settings say.

The lines about reviews that were let pass unjudged are in the decision log, whatever its level; without one, they are
on standard error, one write for each, so that they do not mix with the process's own lines.
"""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.serving.settings import Settings
from gateway.telemetry.background_writer import BATCH_BYTES, BackgroundWriter, Sink
from gateway.telemetry.decisions import DecisionLog
from gateway.telemetry.events import Events
from gateway.telemetry.line_sinks import DescriptorSink, FileSink
from gateway.telemetry.recordings import Recorder
from gateway.telemetry.table import DECISION_LOG, DECISIONS_DROPPED, RECORDINGS
from gateway.telemetry.unjudged import UnjudgedLog

if TYPE_CHECKING:
    from gateway.serving.review_handler import DecisionObserver

NONE: Final = "none"
OTLP: Final = "otlp"
STDOUT: Final = "stdout"


class OutputError(Exception):
    """Decisions cannot be logged or recorded as the settings say. The message: which setting, why, and what to do;
    nothing of a key.
    """


class DecisionOutputs:
    """The writers of one gateway, each with its thread.

    Args:
        settings: of the gateway.
        events: counts decisions that are dropped.

    Raises:
        OutputError: a file or directory in the settings cannot be used. (A full disk can: it may have room later.)
    """

    def __init__(self, settings: Settings, events: Events) -> None:
        self._events = events
        self._writers: list[BackgroundWriter] = []
        self._recorder: Recorder | None = None
        self.observers: list[DecisionObserver] = []
        if settings.decision_log != NONE:
            writer = self._writer(DECISION_LOG, _sink(settings.decision_log, shared=settings.processes > 1))
            self.observers.append(DecisionLog(writer, settings.decision_log_level))
        else:
            writer = self._writer(DECISION_LOG, _standard_error(shared=settings.processes > 1), batch_bytes=1)
        self.observers.append(UnjudgedLog(writer))
        if settings.recording_dir is not None and settings.recording_sample_ratio:
            writer = self._writer(RECORDINGS, _segments(settings.recording_dir, settings.recording_key_file))
            self._recorder = Recorder(writer, settings.recording_sample_ratio)
            self.observers.append(self._recorder)

    def _writer(self, output: str, sink: Sink, *, batch_bytes: int = BATCH_BYTES) -> BackgroundWriter:
        writer = BackgroundWriter(
            sink,
            lambda reason, count: self._events.count(DECISIONS_DROPPED, output, reason, amount=count),
            batch_bytes=batch_bytes,
        )
        self._writers.append(writer)
        return writer

    def start(self) -> None:
        """Begin to write; in the event loop."""
        for writer in self._writers:
            writer.start()

    async def stop(self) -> None:
        """Write what waits, as long as that takes no longer than a writer's ``STOP_SECONDS``."""
        if self._recorder is not None:
            self._recorder.flush()
        for writer in self._writers:
            await asyncio.to_thread(writer.stop)


def _sink(destination: str, *, shared: bool) -> Sink:
    if destination == OTLP:
        # It takes as long to import as half of the rest.
        from gateway.telemetry.otlp_logs import OtlpSink  # noqa: PLC0415

        return OtlpSink()
    if destination == STDOUT:
        return DescriptorSink(sys.__stdout__.fileno() if sys.__stdout__ else 1, "standard output", shared=shared)
    sink = FileSink(Path(destination))
    try:
        sink.check()
    except OSError as error:
        why = error.strerror if destination else "it is empty"
        raise OutputError(
            f"--decision-log {destination!r}: {why}; set a file that the gateway can write, in a "
            "directory that exists, or one of stdout, otlp and none"
        ) from None
    return sink


def _standard_error(*, shared: bool) -> Sink:
    return DescriptorSink(sys.__stderr__.fileno() if sys.__stderr__ else 2, "standard error", shared=shared)


def _segments(directory: Path, key_file: Path | None) -> Sink:
    # Without recordings, a gateway needs none of the cryptography.
    from gateway.redis.sealing import SealKeys  # noqa: PLC0415
    from gateway.serving.recording_segments import SegmentSink  # noqa: PLC0415

    keys = SealKeys(key_file, "recording key file")
    if keys.why:
        raise OutputError(keys.why)
    sink = SegmentSink(directory, keys)
    try:
        sink.check()
    except OSError as error:
        raise OutputError(
            f"--recording-dir {str(directory)!r}: {error.strerror}; set a directory that exists, and that the "
            "gateway can read and write"
        ) from None
    return sink
