"""A loop whose time the test sets: nothing waits, and the clock that the gateway reads jumps to the next timer.

``run_until_idle`` handles what is due without letting time pass, ``run_for`` goes through all timers of a span. The
gateway reads ``time.monotonic`` besides the loop's clock: ``clocks`` makes both one, in all modules imported so far.
"""

import asyncio
import contextlib
import selectors
import sys
import time
from collections.abc import Callable, Iterator

START = 1000.0
"""The loop's clock at first: not 0, so that no ``or`` takes it for "none"."""

EPOCH = 1_700_000_000.0
"""Seconds since 1970 at the loop's time 0."""


class _Selector(selectors.SelectSelector):
    """Has no sockets to wait for. Stops the loop where time would pass the horizon."""

    def __init__(self):
        super().__init__()
        self.now = START
        self.horizon = START
        self.stop: Callable[[], None] = lambda: None

    def select(self, timeout=None):
        if timeout is None or self.now + timeout > self.horizon:
            self.now = max(self.now, self.horizon)
            self.stop()
        else:
            self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """See above."""

    def __init__(self):
        self._virtual = _Selector()
        super().__init__(self._virtual)
        self._virtual.stop = self.stop
        self.wall_offset = 0.0
        """By how many seconds the clock of the wall has been set forward."""
        # asyncio's own resolution is less than two neighbouring floats are apart after some months: a timer of now
        # would never be due.
        self._clock_resolution = 1e-6

    def time(self):
        return self._virtual.now

    def seconds_since_1970(self) -> float:
        return EPOCH + self._virtual.now + self.wall_offset

    def spend(self, seconds: float) -> None:
        """Something takes so long, and nothing else runs meanwhile."""
        self._virtual.now += seconds

    def run_until_idle(self) -> None:
        """Handle everything that is due now."""
        self.run_for(0.0)

    def run_for(self, seconds: float) -> None:
        """Handle everything that happens within so many seconds."""
        self._virtual.horizon = self._virtual.now + seconds
        self.run_forever()


@contextlib.contextmanager
def clocks(loop: VirtualLoop) -> Iterator[None]:
    """While the gateway's modules read the clocks of this loop."""
    replaced = {time.monotonic: loop.time, time.time: loop.seconds_since_1970}
    changed = []
    for module in [module for name, module in sys.modules.items() if name.partition(".")[0] == "gateway"]:
        for name in ("monotonic", "time"):
            original = module.__dict__.get(name)
            if original in replaced.keys():  # noqa: SIM118 - a module object would be hashed, which is fine too
                changed.append((module, name, original))
                setattr(module, name, replaced[original])
    try:
        yield
    finally:
        for module, name, original in changed:
            setattr(module, name, original)
