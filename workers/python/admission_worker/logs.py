"""The worker's log: one line for each event on standard error, as text or JSON.

The log never has documents. Lines that are logged during a policy call, by the policy's own code too, have the policy's
name and the AdmissionRequest's uid as fields in JSON.
"""

import logging
import sys
import time
from contextvars import ContextVar
from typing import Any, Final

import msgspec

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")


judged: ContextVar[tuple[str, str] | None] = ContextVar("judged", default=None)
"""Policy and uid of the call in this context."""


class _Json(logging.Formatter):
    """One JSON object on each line: ``time``, ``level``, ``logger``, ``message``; and if known ``policy``, ``uid`` and
    ``exception``.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        policy, uid = judged.get() or ("", "")
        line |= {name: text for name, text in (("policy", policy), ("uid", uid)) if text}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


class _Text(logging.Formatter):
    """``TIME LEVEL MESSAGE``, with a traceback below."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own
        """One line, whatever the message has."""
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - logging's own
        return _time(record)


def start(form: str, level: str) -> None:
    """Log to standard error, for the whole process.

    Args:
        form: one of ``FORMATS``.
        level: one of ``LEVELS``.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _time(record: logging.LogRecord) -> str:
    """RFC 3339, in UTC, to the millisecond."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"
