"""An estimate of Redis' clock. Gateways and bridges write deadlines in it, because their own clocks may differ.

Each heartbeat calls Redis' TIME. The answer was true at some moment of the round trip, so the offset to the local clock
is known to half the round trip. Of the last samples, the one with the shortest round trip counts. A sample that
contradicts the earlier ones discards them: another server answers now, or its clock was set.
"""

from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Final

SAMPLES: Final = 8
"""Samples that are kept, of as many seconds. Two clocks drift apart by a millisecond in that time, at worst."""

_DRIFT: Final = 0.005
"""Seconds by which samples may disagree beyond their round trips: a clock that is being slewed, and TIME's own µs."""


class RedisClock:
    """Redis' time in milliseconds since 1970.

    Args:
        local: a monotonic clock, in seconds.
    """

    __slots__ = ("_local", "_offset", "_samples")

    def __init__(self, local: Callable[[], float] = monotonic) -> None:
        self._local = local
        self._samples: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        self._offset: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is a sample."""
        return self._offset is not None

    def sample(self, sent: float, received: float, seconds: int, microseconds: int) -> None:
        """Add an answer of TIME.

        Args:
            sent: when TIME was sent, by the local clock.
            received: when its answer arrived.
            seconds: of the answer.
            microseconds: of the answer.
        """
        half = max(received - sent, 0.0) / 2
        offset = seconds + microseconds / 1e6 - (sent + half)
        if any(abs(offset - other) > half + error + _DRIFT for error, other in self._samples):
            self._samples.clear()
        self._samples.append((half, offset))
        self._offset = min(self._samples)[1]

    def now(self) -> int:
        """Redis' time now.

        Raises:
            ValueError: there is no sample.
        """
        return self.at(self._local())

    def at(self, moment: float) -> int:
        """Redis' time at a moment of the local clock, limited to what a float counts exactly.

        Raises:
            ValueError: there is no sample.
        """
        if self._offset is None:
            raise ValueError("Redis' time is not known yet")
        return int(min(max((moment + self._offset) * 1000, 0), _END))

    def until(self, milliseconds: int) -> float:
        """The moment of the local clock that corresponds to Redis' time ``milliseconds``.

        Raises:
            ValueError: there is no sample.
        """
        if self._offset is None:
            raise ValueError("Redis' time is not known yet")
        return milliseconds / 1000 - self._offset


_END: Final = 2**52
"""The year 144683: up to here a float counts milliseconds exactly."""
