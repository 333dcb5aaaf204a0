"""Whether those who answer for one worker are of one version.

Behind one address there may be many replicas, and while a new version is rolled out they are of two. Which of them
answers a call, nobody here chooses: what was described is one replica's word. So an answer that names another version
is a disagreement, and from then on nobody can tell whose verdict a cached one would stand in for, until there has been
no further disagreement for a while.

An answer that names no version cannot disagree: the contract asks for it where there is more than one replica.
"""

import asyncio
from collections.abc import Callable
from time import monotonic


class VersionSkew:
    """What is known of it, for all configurations that hold the worker.

    ``disagreements`` counts what was told.

    Args:
        seconds: after the last disagreement, how long the versions are taken to differ.
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
        """Somebody has answered in another version. Returns whether all was settled until now."""
        was_settled = self.settled
        self._last = self._clock()
        self.disagreements += 1
        # Whoever waits is woken, and the next one waits for the next: several configurations wait for the same.
        self._reported.set()
        self._reported = asyncio.Event()
        return was_settled

    async def beyond(self, seen: int) -> None:
        """Return when there are more than ``seen`` disagreements."""
        while self.disagreements <= seen:
            await self._reported.wait()
