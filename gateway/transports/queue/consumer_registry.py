"""Who takes work from a queue: the bridges that say that they are there, and what their workers say of themselves.

Each writes a Presence every second. One that is older than ``GONE_MS`` is of a bridge that is gone, and so is one that
is missing: who stops properly takes it away. Only while Redis has been back for less than that, whoever was there
before counts as still there, for nobody could say it.

A bridge reads one lane. A question may go by any lane in which somebody holds its policy as it was described; of these
by the one in which the fewest wait for each call that can be worked on at once.
"""

from collections.abc import Mapping

from msgspec import Struct

from gateway.transports.descriptions import Description
from gateway.transports.queue.wire import GONE_MS


class RegisteredBridge(Struct, frozen=True, kw_only=True):
    """One of them. ``at`` is in milliseconds of Redis' clock, ``answered`` since it was started."""

    description: Description
    lane: str
    capacity: int
    answered: int
    at: int


class ConsumerRegistry:
    """All of them, by consumer name."""

    def __init__(self) -> None:
        self.bridges: Mapping[str, RegisteredBridge] = {}
        self.live: tuple[Description, ...] = ()
        self._lanes: dict[frozenset[Description] | None, tuple[str, ...]] = {}

    def update(self, found: Mapping[str, RegisteredBridge], now: int, back_since: int) -> bool:
        """Take over what was read at ``now``. Whether who is there, or what they describe, has changed.

        Args:
            found: what stands in Redis.
            now: Redis' time.
            back_since: since when there has been a link to it.
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
        """Those in which somebody has one of these descriptions; None: any."""
        known = self._lanes.get(fits)
        if known is None:
            if len(self._lanes) >= KEPT:
                self._lanes.clear()
            known = self._lanes[fits] = tuple(
                {bridge.lane: None for bridge in self.bridges.values() if fits is None or bridge.description in fits}
            )
        return known

    def described(self) -> dict[Description, int]:
        """Which descriptions there are, and how many have each."""
        counted: dict[Description, int] = {}
        for bridge in self.bridges.values():
            counted[bridge.description] = counted.get(bridge.description, 0) + 1
        return counted

    def of(self, lane: str) -> dict[str, RegisteredBridge]:
        """Who reads a lane."""
        return {name: bridge for name, bridge in self.bridges.items() if bridge.lane == lane}


KEPT = 1000
"""Sets of descriptions whose lanes are kept: one for each policy and version; beyond this all start anew."""
