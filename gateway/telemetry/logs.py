"""Logging: JSON for machines, coloured text on a terminal. Reviews never wait for it.

A line is put into a bounded queue, and a thread writes it to standard error. If the reader of standard error stalls,
the queue fills, and lines are dropped and counted; reviews continue, and the process can still end. (A decision log
written synchronously has multiplied the p99 of another gateway by ten.)
"""

import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final, TextIO

import structlog

from gateway.telemetry.line_sinks import other_processes_wait

QUEUE_LINES: Final = 10_000
"""Lines in memory while standard error stalls: at 1 KB a line 10 MB, some seconds of the worst case (every review
denied)."""

STOP_SECONDS: Final = 2.0
"""How long the shutdown waits for the remaining lines to be written."""


class _DroppingHandler(logging.Handler):
    """Puts a record into the queue, or counts it as dropped."""

    def __init__(self, lines: "queue.Queue[Any]", dropped: Callable[[], object]) -> None:
        super().__init__()
        self._lines = lines
        self._dropped = dropped

    def emit(self, record: logging.LogRecord) -> None:
        """Never wait."""
        try:
            self._lines.put_nowait(record)
        except queue.Full:
            self._dropped()


class _Writer:
    """Writes records, one line each, in a thread of its own.

    It is no logging.Handler and does not write through sys.stderr: the interpreter flushes both when it exits, and
    would wait for a thread that blocks on a stalled reader.
    """

    def __init__(
        self,
        lines: "queue.Queue[logging.LogRecord | None]",
        formatter: logging.Formatter,
        out: TextIO,
        dropped: Callable[[], object],
        *,
        shared: bool,
    ) -> None:
        self._shared = shared
        self._lines = lines
        self._formatter = formatter
        self._out = out
        self._dropped = dropped
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write the remaining lines and stop; give up after ``STOP_SECONDS``."""
        try:
            self._lines.put(None, timeout=STOP_SECONDS)
        except queue.Full:
            return
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while (record := self._lines.get()) is not None:
            try:
                self._write(f"{self._formatter.format(record)}\n")
            except Exception:  # noqa: BLE001 - closed, full, or a record that cannot be written: there is no log for it
                self._dropped()

    def _write(self, line: str) -> None:
        try:
            descriptor = self._out.fileno()
        except (OSError, ValueError):
            # A stream without a file descriptor, such as a test's.
            self._out.write(line)
            return
        rest = memoryview(line.encode(errors="backslashreplace"))
        with other_processes_wait(descriptor) if self._shared else nullcontext():
            while rest:
                rest = rest[os.write(descriptor, rest) :]


def _first_things_first(logger: Any, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Put time, level and event first, for readers of a terminal."""
    del logger, method
    first = {name: event.pop(name) for name in ("timestamp", "level", "message", "logger") if name in event}
    return {**first, **event}


def _caught(logger: Any, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Take the current exception here, because the writing thread has none."""
    del logger, method
    if event.get("exc_info") is True:
        event["exc_info"] = sys.exc_info()
    return event


class _Numbered:
    """Adds the number of the process to each line, also of libraries, unless it is about another one."""

    def __init__(self, process: int) -> None:
        self._process = process

    def __call__(self, logger: Any, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        del logger, method
        event.setdefault("process", self._process)
        return event


# Without the frames' variables: they may hold a Secret.
_TRACEBACK: Final = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
)


def configure_logs(
    *,
    level: str = "info",
    form: str = "auto",
    stream: TextIO | None = None,
    dropped: Callable[[], object] = lambda: None,
    lines: int = QUEUE_LINES,
    process: int | None = None,
) -> Callable[[], None]:
    """Set up logging for the whole process.

    Args:
        level: debug, info, warning or error.
        form: ``json``, ``text``, or ``auto``: text if the stream is a terminal.
        stream: the output; standard error if None.
        dropped: called for each dropped line.
        lines: how many lines may wait to be written.
        process: the number of this process, in each line; None: there are no others.

    Returns:
        A function that stops the writing thread when the waiting lines are written or ``STOP_SECONDS`` have passed.
    """
    out = stream or sys.stderr
    text = form == "text" or (form == "auto" and out.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        _caught,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if process is not None:
        shared.append(_Numbered(process))
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    render: list[Any] = (
        [structlog.dev.ConsoleRenderer(colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback)]
        if text
        else [
            _TRACEBACK,
            structlog.processors.EventRenamer("message"),
            _first_things_first,
            structlog.processors.JSONRenderer(default=str),
        ]
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
    )
    waiting: queue.Queue[Any] = queue.Queue(lines)
    writer = _Writer(waiting, formatter, out, dropped, shared=process is not None)
    root = logging.getLogger()
    root.handlers[:] = [_DroppingHandler(waiting, dropped)]
    root.setLevel(level.upper())
    writer.start()
    return writer.stop
