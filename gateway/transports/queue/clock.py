"""Redis' clock, as seen from here: in it all who share a queue say their deadlines, whatever their own clocks show.

Redis' TIME is called now and then. Its answer was true at some moment between the question and the answer, so the
difference to our own clock is known to half the round trip; of the last few samples the quickest is believed. One that
contradicts it, since both cannot be true, ends it: that is another server now, or its clock was set.
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
    """Tells Redis' time in milliseconds since 1970.

    Args:
        local: seconds that only grow.
    """

    __slots__ = ("_local", "_offset", "_samples")

    def __init__(self, local: Callable[[], float] = monotonic) -> None:
        self._local = local
        self._samples: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        self._offset: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether Redis has been called."""
        return self._offset is not None

    def sample(self, sent: float, received: float, seconds: int, microseconds: int) -> None:
        """Redis has answered TIME.

        Args:
            sent: when it was called, by our own clock.
            received: when its answer was there.
            seconds: what it said.
            microseconds: and this.
        """
        half = max(received - sent, 0.0) / 2
        offset = seconds + microseconds / 1e6 - (sent + half)
        if any(abs(offset - other) > half + error + _DRIFT for error, other in self._samples):
            self._samples.clear()
        self._samples.append((half, offset))
        self._offset = min(self._samples)[1]

    def now(self) -> int:
        """The time there.

        Raises:
            ValueError: it is not known.
        """
        return self.at(self._local())

    def at(self, moment: float) -> int:
        """The time there at a moment of our own clock. A moment that is beyond all time is the end of it.

        Raises:
            ValueError: it is not known.
        """
        if self._offset is None:
            raise ValueError("Redis has not been asked for its time")
        return int(min(max((moment + self._offset) * 1000, 0), _END))

    def until(self, milliseconds: int) -> float:
        """The moment of our own clock at which it is so late there.

        Raises:
            ValueError: it is not known.
        """
        if self._offset is None:
            raise ValueError("Redis has not been asked for its time")
        return milliseconds / 1000 - self._offset


_END: Final = 2**52
"""The year 144683: what a float of milliseconds still counts one by one."""
