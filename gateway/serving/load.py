"""What a front has in hand at this moment: requests, reviews, bytes of their bodies."""

import asyncio

from gateway.serving.limits import Limits


class Load:
    """Counts of one front. All are gauges; they return to zero when it is idle.

    ``requests`` are requests whose answer is not made yet, ``reviews`` those of them that are being judged,
    ``body_bytes`` the bytes of all their bodies that have arrived; whoever has read a body takes them off.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._idle: asyncio.Event = asyncio.Event()
        self._idle.set()
        self.requests = 0
        self.reviews = 0
        self.body_bytes = 0

    def begin(self) -> None:
        """One more request is in hand."""
        self.requests += 1
        self._idle.clear()

    def end(self) -> None:
        """One request less is."""
        self.requests -= 1
        if not self.requests:
            self._idle.set()

    def hold(self, size: int) -> bool:
        """Take ``size`` more bytes of a body; False, and nothing taken, where they would be too many."""
        if self.body_bytes + size > self._limits.body_bytes_in_flight:
            return False
        self.body_bytes += size
        return True

    async def idle(self) -> None:
        """Wait until no request is in hand."""
        await self._idle.wait()
