"""How many hooks run at the same time. All hooks of a process share its cores, so they share this bound.

Whoever finds no seat waits for one, first come, first served. So many may wait and no more: the next one is refused at
once, since whoever is last in a long queue gets an answer only after nobody wants it.
"""

import asyncio
import contextlib
import os
from collections import deque
from typing import Final

PER_CORE: Final = 2
"""Hooks for each core: while one waits for its disk or the network, another one computes."""


class NoSeatError(Exception):
    """As many wait already as may."""


def seats_of(processes: int) -> int:
    """How many hooks may run; 0: two for each core that this process may use."""
    if processes:
        return processes
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return PER_CORE * cores


class Seats:
    """Gives seats.

    Args:
        processes: how many there are; 0: see ``seats_of``.
        waiting: how many may wait.
    """

    def __init__(self, processes: int, waiting: int) -> None:
        self.processes = seats_of(processes)
        self.waiting = waiting
        self.taken = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    async def take(self, *, patient: bool = False) -> None:
        """Wait for a seat. It is to be given back.

        Args:
            patient: however many wait already.

        Raises:
            NoSeatError: too many wait.
        """
        if self.taken < self.processes:
            self.taken += 1
            return
        if not patient and len(self._queue) >= self.waiting:
            raise NoSeatError
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # It was this one's turn already.
                self.give_back()
            else:
                with contextlib.suppress(ValueError):
                    self._queue.remove(turn)
            raise

    def give_back(self) -> None:
        """A seat is free: the next one's, or nobody's."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.taken -= 1
