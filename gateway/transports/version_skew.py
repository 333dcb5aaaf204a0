"""Detects version skew: replicas of one worker that answer in different versions.

One address may have many replicas, and during a rolling update they have two versions. The gateway cannot choose which
replica answers a call, and a description comes from one replica. So an answer in another version is a disagreement.
From then on verdicts are not cached, until there has been no further disagreement for a while.

An answer without a version cannot disagree: the contract requires a version if there is more than one replica.
"""

import asyncio
from collections.abc import Callable
from time import monotonic


class VersionSkew:
    """The version skew of one worker, shared by all configurations that use it.

    ``disagreements`` counts the reported ones.

    Args:
        seconds: how long after the last disagreement the versions are assumed to differ.
        clock: seconds that only grow.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._last: float | None = None
        self._reported = asyncio.Event()
        self.disagreements = 0

    @property
    def settled(self) -> bool:
        """Whether there has been no disagreement for long enough."""
        return self._last is None or self._clock() - self._last >= self._seconds

    def disagreed(self) -> bool:
        """Record an answer in another version. Returns whether the version was settled until now."""
        was_settled = self.settled
        self._last = self._clock()
        self.disagreements += 1
        # Wake all waiters, and give later ones a new event: several configurations wait.
        self._reported.set()
        self._reported = asyncio.Event()
        return was_settled

    async def beyond(self, seen: int) -> None:
        """Return when there are more than ``seen`` disagreements."""
        while self.disagreements <= seen:
            await self._reported.wait()
