"""Log lines: JSON for machines, coloured text on a terminal; never a reason for a review to wait.

A line is put into a bounded queue, and a thread writes it to standard error. If whoever reads standard error stalls,
the queue fills, lines are dropped and counted; reviews go on. (A decision log written on the path of reviews has
multiplied a peer's p99 by ten.)
"""

import logging
import logging.handlers
import queue
import sys
from collections.abc import Callable
from typing import Any, Final, TextIO

import structlog

QUEUE_LINES: Final = 10_000
"""Lines in memory while standard error stalls: at 1 KB a line 10 MB, some seconds of the worst case (every review
denied)."""


class _DroppingHandler(logging.handlers.QueueHandler):
    """Puts a record into the queue, or counts it as dropped."""

    def __init__(self, lines: "queue.Queue[Any]", dropped: Callable[[], object]) -> None:
        super().__init__(lines)
        self._dropped = dropped

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """The record as it is: the queue does not leave this process."""
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        """Never wait."""
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self._dropped()


def _first_things_first(logger: Any, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """When, how bad, what; then the rest: a line can be read as it scrolls by."""
    del logger, method
    first = {name: event.pop(name) for name in ("timestamp", "level", "message", "logger") if name in event}
    return {**first, **event}


def configure_logs(
    *,
    level: str = "info",
    form: str = "auto",
    stream: TextIO | None = None,
    dropped: Callable[[], object] = lambda: None,
    lines: int = QUEUE_LINES,
) -> Callable[[], None]:
    """Set up logging for the whole process.

    Args:
        level: debug, info, warning or error.
        form: ``json``, ``text``, or ``auto``: text if the stream is a terminal.
        stream: where to; standard error if None.
        dropped: called for each line that could not be kept.
        lines: how many lines may wait to be written.

    Returns:
        What stops the writing thread, once the lines that wait are written.
    """
    out = stream or sys.stderr
    text = form == "text" or (form == "auto" and out.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    render: list[Any] = (
        [structlog.dev.ConsoleRenderer(colors=out.isatty())]
        if text
        else [
            structlog.processors.dict_tracebacks,
            structlog.processors.EventRenamer("message"),
            _first_things_first,
            structlog.processors.JSONRenderer(default=str),
        ]
    )
    writer = logging.StreamHandler(out)
    writer.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
        )
    )
    waiting: queue.Queue[Any] = queue.Queue(lines)
    listener = logging.handlers.QueueListener(waiting, writer)
    root = logging.getLogger()
    root.handlers[:] = [_DroppingHandler(waiting, dropped)]
    root.setLevel(level.upper())
    listener.start()
    return listener.stop
