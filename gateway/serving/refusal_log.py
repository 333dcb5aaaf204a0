"""The log lines of refusals: at most ``LINES`` of each kind in a second, then one that says how many were left out.

A client without credentials, on one connection that it keeps, can have four thousand requests a second refused. A line
for each would fill a disk, and hide the first one. The metrics count each: what is left out is only text.
What bounds the state is the number of kinds: they are those of an enumeration.
"""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

import structlog

from gateway.serving.refusals import Refusal
from gateway.telemetry.events import Events
from gateway.telemetry.table import ADMIN_REQUESTS_REJECTED

_LOG: Final = structlog.get_logger(__name__)

LINES: Final = 10
"""Lines of a kind in a period: with two dozen kinds, 250 a second at most, 50 KB. Of a fault of one client, the first
ten have all that there is to know."""

PERIOD_SECONDS: Final = 1.0

Later = Callable[[float, Callable[[], object]], object]
"""Calls a function after so many seconds."""


class RefusalLog:
    """Writes the lines of one listener. Use it in the event loop.

    Args:
        message: of each line.
        now: seconds, from any start.
        later: as ``loop.call_later``; None: of the running loop.
    """

    def __init__(self, message: str, *, now: Callable[[], float] = monotonic, later: Later | None = None) -> None:
        self._message = message
        self._now = now
        self._later = later or (lambda seconds, call: asyncio.get_running_loop().call_later(seconds, call))
        self._periods: dict[str, _Period] = {}

    def write(self, refusal: str, **fields: Any) -> None:
        """Write a line about a refusal, or count it as left out."""
        now = self._now()
        period = self._periods.get(refusal)
        if period is None or now - period.began >= PERIOD_SECONDS:
            self._end(refusal)
            period = self._periods[refusal] = _Period(now)
        if period.lines < LINES:
            period.lines += 1
            _LOG.warning(self._message, refusal=refusal, **fields)
            return
        period.left_out += 1
        if period.left_out == 1:
            # Whether or not there is another one, so that the last flood has its line too.
            self._later(max(period.began + PERIOD_SECONDS - now, 0.0), lambda: self._end(refusal, period))

    def _end(self, refusal: str, period: "_Period | None" = None) -> None:
        """Say what was left out in the latest period; in ``period``, if it is still the latest."""
        latest = self._periods.get(refusal)
        if latest is None or (period is not None and period is not latest):
            return
        del self._periods[refusal]
        if latest.left_out:
            _LOG.warning(f"{self._message}; lines were left out", refusal=refusal, left_out=latest.left_out)


class AdminRefusals:
    """Logs and counts what an admin listener refuses. A Note.

    They have a metric of their own: a client that may not read a page is no kube-apiserver whose calls fail, which is
    what the alerts about the other listener say.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._log = RefusalLog("a request to the admin listener was refused")

    def __call__(self, refusal: Refusal, *, peer: str, why: str) -> None:
        """See Note."""
        self._log.write(refusal.value, peer=peer, why=why)
        self._events.count(ADMIN_REQUESTS_REJECTED, refusal)


class _Period:
    """The lines of a kind since ``began``."""

    __slots__ = ("began", "left_out", "lines")

    def __init__(self, began: float) -> None:
        self.began = began
        self.lines = 0
        self.left_out = 0
