"""How much waits in a lane, and whether one more call can be answered in time.

The length is what Redis said last, and what has not been written to it yet; whoever is answered is taken out, so it
counts those that are worked on as well.

How fast a lane goes is only known while everybody in it is busy: what is answered in an idle minute says how much was
called, not how much could be. So only those seconds count at whose ends at least as many were in it as can be worked on
at once. A call is refused if the backlog, at that pace, takes longer than the call has; one answer is added to those
seen, so that a second without any is not taken for the end.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gateway.transports.queue.consumer_registry import RegisteredBridge

SECONDS: Final = 10.0
"""Of busy time that is looked back on."""

LEAST_SECONDS: Final = 5.0
"""Of busy time from which on a pace is known. A worker or a bridge that stands still for a moment when a crowd has just
come has answered nothing yet, which says nothing of the next ten seconds; for so long nobody stands still."""


class StreamBacklog(Struct, frozen=True, kw_only=True):
    """Why a call would be late: so many are before it, and all of them take so many seconds."""

    length: int
    seconds: float


class RequestStream:
    """One lane, as far as it is known.

    ``length`` and ``bytes`` are Redis' last word of it, ``unsent`` those of ours that it does not know of.
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
        """How many can be worked on at once: 0, nobody is there."""
        return self._capacity

    @property
    def waiting(self) -> int:
        """How many are in it."""
        return self.length + self.unsent

    @property
    def load(self) -> float:
        """How many are in it for each that can be worked on at once."""
        return self.waiting / max(self._capacity, 1)

    def observe(self, bridges: Mapping[str, RegisteredBridge]) -> None:
        """See how far they are, once after each reading of presences and length."""
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
        """Why one more would be late that has so many seconds left; None: as far as anybody knows it would not."""
        if self.waiting <= self._capacity:
            return None
        elapsed = sum(seconds for seconds, _ in self._busy)
        if elapsed < LEAST_SECONDS:
            return None
        answered = sum(number for _, number in self._busy) + 1
        seconds = self.waiting * elapsed / answered
        return StreamBacklog(length=self.waiting, seconds=seconds) if seconds > left else None
