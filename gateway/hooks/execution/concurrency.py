"""How many hooks run at the same time, and whose turn is next. All hooks of a process share its cores, so they share
this bound; and one that hangs, or is slow, must not take it all.

* Whoever finds no seat waits. The next seat goes to the hook that has the fewest; among equals to the one that has
  waited the longest since it was served; of one hook, first come, first served. So nobody is given more than its fair
  part while others wait.
* The last free seat is only for a hook that has none: a hook alone may have all but one. Where fewer hooks hang than
  there are seats, the others go on: a seat that one of the former gives back is not given to one of them again before
  there is another free one. (While one has all but one, a second one that begins to hang takes the last: then the
  others wait once, until the first one's time limit.)
* Of each hook so many may wait and no more: the next one is refused at once, since whoever is last in a long queue gets
  an answer only after nobody wants it. A hook that hangs fills its own queue, and nobody else's.

Where there is one seat, there is none to keep: then each waits for each.
"""

import asyncio
import os
from collections import Counter, deque
from typing import Final

PER_CORE: Final = 2
"""Hooks for each core: while one waits for its disk or the network, another one computes."""

KEPT: Final = 1
"""Seats that are kept for hooks that have none; beside those for the cores, so that a hook alone can use all of them.
One that hangs computes nothing."""


class NoSeatError(Exception):
    """As many of this hook wait already as may."""


def seats_of(processes: int) -> int:
    """How many hooks may run; 0: two for each core that this process may use, and the one that is kept."""
    if processes:
        return processes
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return PER_CORE * cores + KEPT


class Seats:
    """Gives seats.

    Args:
        processes: how many there are; 0: see ``seats_of``.
        waiting: how many of each hook may wait.
    """

    def __init__(self, processes: int, waiting: int) -> None:
        self.processes = seats_of(processes)
        self.waiting = waiting
        self.taken = 0
        self._has: Counter[str] = Counter()
        # First whoever has waited the longest since it was served.
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}

    async def take(self, hook: str) -> None:
        """Wait for a seat. It is to be given back.

        Raises:
            NoSeatError: too many of this hook wait.
        """
        if len(self._queues.get(hook, ())) >= self.waiting:
            raise NoSeatError
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(hook, deque()).append(turn)
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # It was this one's turn already.
                self.give_back(hook)
            else:
                self._forget(hook, turn)
            raise

    def give_back(self, hook: str) -> None:
        """A seat of this hook is free."""
        self.taken -= 1
        self._has[hook] -= 1
        if not self._has[hook]:
            del self._has[hook]
        self._serve()

    def _serve(self) -> None:
        """Give out what may be given out."""
        while (free := self.processes - self.taken) and self._queues:
            hook = min(self._queues, key=self._has.__getitem__)
            if free <= KEPT and self._has[hook]:
                return
            turn = self._queues[hook][0]
            self._forget(hook, turn)
            if turn.done():
                # Cancelled, and not gone yet.
                continue
            self.taken += 1
            self._has[hook] += 1
            if hook in self._queues:
                self._queues[hook] = self._queues.pop(hook)
            turn.set_result(None)

    def _forget(self, hook: str, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(hook, deque())
        if turn in queue:
            queue.remove(turn)
            if not queue:
                del self._queues[hook]
