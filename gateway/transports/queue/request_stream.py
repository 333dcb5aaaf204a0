"""The backlog of a request stream (a lane), and whether one more call can be answered in time.

The length is Redis' last answer plus the calls that are not written yet. Entries are deleted when they are answered, so
it includes the calls at workers.

The throughput of a lane is known only while all its bridges are busy: in an idle minute the number of answers depends
on the number of calls. So only those seconds count that begin and end with at least as many calls as the bridges handle
at once. A call is rejected if the backlog, at that rate, takes longer than its deadline allows. One answer is added to
those counted, so that a second without any does not give a rate of zero.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gateway.transports.queue.consumer_registry import RegisteredBridge

SECONDS: Final = 10.0
"""Busy seconds over which the rate is measured."""

LEAST_SECONDS: Final = 5.0
"""Busy seconds after which the rate is known. A worker or bridge that pauses for a moment after a burst has answered
nothing yet, which does not predict the next seconds; pauses are shorter than this."""


class StreamBacklog(Struct, frozen=True, kw_only=True):
    """Why a call would be late: ``length`` calls are before it, and take ``seconds``."""

    length: int
    seconds: float


class RequestStream:
    """One lane, as last observed.

    ``length`` and ``bytes`` are Redis' last answers; ``unsent`` counts this gateway's calls that are not written yet.
    """

    __slots__ = ("_answered", "_busy", "_capacity", "_was_busy", "bytes", "length", "unsent")

    def __init__(self) -> None:
        self.length = 0
        self.bytes = 0
        self.unsent = 0
        self._capacity = 0
        self._busy: deque[tuple[float, int]] = deque()
        self._answered: dict[str, tuple[int, int]] = {}
        self._was_busy = False

    @property
    def capacity(self) -> int:
        """How many calls its bridges handle at once; 0: it has no bridge."""
        return self._capacity

    @property
    def waiting(self) -> int:
        """How many calls are in it."""
        return self.length + self.unsent

    @property
    def load(self) -> float:
        """Calls in it, per call that its bridges handle at once."""
        return self.waiting / max(self._capacity, 1)

    def observe(self, bridges: Mapping[str, RegisteredBridge]) -> None:
        """Update capacity and rate. To be called once after each reading of presences and length."""
        self._capacity = sum(bridge.capacity for bridge in bridges.values())
        is_busy = self.length >= self._capacity > 0
        elapsed, answered = 0.0, 0
        for name, bridge in bridges.items():
            before = self._answered.get(name)
            if before is not None and bridge.at > before[0] and bridge.answered >= before[1]:
                elapsed = max(elapsed, (bridge.at - before[0]) / 1000)
                answered += bridge.answered - before[1]
        self._answered = {name: (bridge.at, bridge.answered) for name, bridge in bridges.items()}
        if not is_busy:
            self._busy.clear()
        elif self._was_busy and elapsed:
            self._busy.append((elapsed, answered))
            while len(self._busy) > 1 and sum(seconds for seconds, _ in self._busy) > SECONDS:
                self._busy.popleft()
        self._was_busy = is_busy

    def backlog(self, left: float) -> StreamBacklog | None:
        """Why one more call with so many seconds left would be late; None: it would not, or the rate is unknown."""
        if self.waiting <= self._capacity:
            return None
        elapsed = sum(seconds for seconds, _ in self._busy)
        if elapsed < LEAST_SECONDS:
            return None
        answered = sum(number for _, number in self._busy) + 1
        seconds = self.waiting * elapsed / answered
        return StreamBacklog(length=self.waiting, seconds=seconds) if seconds > left else None
