"""How long the event loop kept its timers waiting: time in which the gateway, and not a worker, was late.

A timer that was to run at a moment and runs later shows that the loop was busy in between, or that the process did not
run. An answer that arrived meanwhile was not read. So this time does not count as the worker's.
"""

import asyncio
from typing import Final

LAG_INTERVAL_SECONDS: Final = 0.05
"""The interval of the timer: twenty a second, of some microseconds each. A tenth of the shortest timeout that a review
has (half a second)."""

LAG_MINIMUM_SECONDS: Final = 0.005
"""Shorter delays are not counted: timers are never exact."""


class LoopLag:
    """Measures the delay of the running event loop; ``seconds`` is the sum of all delays so far."""

    __slots__ = ("_due", "_loop", "_timer", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self._loop = asyncio.get_running_loop()
        self._due = 0.0
        self._timer = self._next()

    def close(self) -> None:
        """Stop measuring."""
        self._timer.cancel()

    def _next(self) -> asyncio.TimerHandle:
        self._due = self._loop.time() + LAG_INTERVAL_SECONDS
        return self._loop.call_at(self._due, self._measure)

    def _measure(self) -> None:
        late = self._loop.time() - self._due
        if late > LAG_MINIMUM_SECONDS:
            self.seconds += late
        self._timer = self._next()
