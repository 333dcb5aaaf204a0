"""The bridges of a queue that are present, and their workers' descriptions.

Each bridge writes a Presence every second, and removes it when it stops. A bridge is gone when its Presence is older
than ``GONE_MS`` or missing. For ``GONE_MS`` after Redis has come back, bridges that were present before still count as
present, because they could not write.

A bridge reads one lane. A call may go to any lane with a bridge that has the description which the call was made for;
of these, to the lane with the fewest waiting calls per call that its bridges handle at once.
"""

from collections.abc import Mapping

from msgspec import Struct

from gateway.transports.descriptions import Description
from gateway.transports.queue.codec import GONE_MS


class RegisteredBridge(Struct, frozen=True, kw_only=True):
    """A bridge that is present. ``at`` is in milliseconds of Redis' clock; ``answered`` counts since its start."""

    description: Description
    lane: str
    capacity: int
    answered: int
    at: int


class ConsumerRegistry:
    """All bridges that are present, by consumer name."""

    def __init__(self) -> None:
        self.bridges: Mapping[str, RegisteredBridge] = {}
        self.live: tuple[Description, ...] = ()
        self._lanes: dict[frozenset[Description] | None, tuple[str, ...]] = {}

    def update(self, found: Mapping[str, RegisteredBridge], now: int, back_since: int) -> bool:
        """Replace the bridges by what was read at ``now``. Returns whether bridges, lanes or descriptions have changed.

        Args:
            found: the presences in Redis.
            now: Redis' time.
            back_since: since when Redis has been connected.
        """
        present = {name: bridge for name, bridge in found.items() if abs(now - bridge.at) <= GONE_MS}
        if now - back_since < GONE_MS:
            present = {**self.bridges, **present}
        before = {(name, bridge.lane, bridge.description) for name, bridge in self.bridges.items()}
        after = {(name, bridge.lane, bridge.description) for name, bridge in present.items()}
        self.bridges = present
        if before == after:
            return False
        self.live = tuple({bridge.description: None for bridge in present.values()})
        self._lanes.clear()
        return True

    def lanes(self, fits: frozenset[Description] | None = None) -> tuple[str, ...]:
        """The lanes with a bridge of one of these descriptions; None: of any."""
        known = self._lanes.get(fits)
        if known is None:
            if len(self._lanes) >= KEPT:
                self._lanes.clear()
            known = self._lanes[fits] = tuple(
                {bridge.lane: None for bridge in self.bridges.values() if fits is None or bridge.description in fits}
            )
        return known

    def described(self) -> dict[Description, int]:
        """The number of bridges by description."""
        counted: dict[Description, int] = {}
        for bridge in self.bridges.values():
            counted[bridge.description] = counted.get(bridge.description, 0) + 1
        return counted

    def of(self, lane: str) -> dict[str, RegisteredBridge]:
        """The bridges that read a lane."""
        return {name: bridge for name, bridge in self.bridges.items() if bridge.lane == lane}


KEPT = 1000
"""Sets of descriptions whose lanes are cached: one for each policy and version. Beyond this the cache is cleared."""
