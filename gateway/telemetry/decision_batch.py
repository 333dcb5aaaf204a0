"""Holds the decisions of a sample back for a moment, and hands them on together.

What is done for one review in a hundred finds none of its code in the processor's cache, and takes several times as
long as it takes for the next one right after it. So spans and recordings are made of up to 16 decisions at once.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from gateway.engine.decision import Decision

_LOG: Final = structlog.get_logger(__name__)

MOST: Final = 16
"""Decisions that wait, which are handed on in one call of the event loop: some 3 ms of it."""

SECONDS: Final = 0.5
"""The longest wait: a span is exported, and a recording written, half a second later than it could be."""

LARGE_BYTES: Final = 262_144
"""A decision about a larger review does not wait, so that those that do hold 4 MB of reviews at most."""


class DecisionBatch:
    """Decisions that wait. Used in the event loop.

    Args:
        take: called with each decision, after its answer has left, in their order. What it raises is logged.
    """

    def __init__(self, take: Callable[[Decision], None]) -> None:
        self._take = take
        self._waiting: list[Decision] = []
        self._timer: asyncio.Handle | None = None

    def add(self, decision: Decision) -> None:
        """Hand this decision on soon."""
        self._waiting.append(decision)
        is_due = len(self._waiting) >= MOST or review_bytes(decision) > LARGE_BYTES
        if self._timer is not None and is_due:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_soon(self.flush) if is_due else loop.call_later(SECONDS, self.flush)

    def flush(self) -> None:
        """Hand on all that wait."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        for decision in waiting:
            try:
                self._take(decision)
            except Exception:  # noqa: BLE001 - logged: the next ones go on
                _LOG.exception("an observer of decisions failed", uid=decision.request.uid)


def review_bytes(decision: Decision) -> int:
    """The bytes of the members of the AdmissionRequest."""
    return sum(memoryview(text).nbytes for text in decision.request.members.values())
