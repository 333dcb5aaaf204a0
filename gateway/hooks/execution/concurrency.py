"""Limits how many hooks run at the same time, and decides which runs next. All hooks of a process share its cores, so
they share this limit; a slow or hanging hook must not use all of it.

* A call that finds no free slot waits. The next slot goes to the hook with the fewest running processes; among equals,
  to the one that was served the longest ago; among the calls of one hook, in order of arrival.
* The last free slot is reserved for a hook that has no running process: a single hook may have all slots but one. As
  long as fewer hooks hang than there are slots, the others continue. (While one hook has all slots but one, a second
  one that begins to hang takes the last: then the others wait once, until the first hook's time limit.)
* The number of waiting calls of each hook is limited; one more is rejected at once, since the last call of a long queue
  would get its answer after its deadline. A hanging hook fills its own queue only.

With one slot, none is reserved.
"""

import asyncio
import os
from collections import Counter, deque
from typing import Final

PER_CORE: Final = 2
"""Processes per core: while one waits for the disk or the network, another one computes."""

RESERVED: Final = 1
"""Slots for hooks that have no running process; in addition to those for the cores, so that a single hook can use all
cores. A hanging process uses none."""


class QueueFullError(Exception):
    """The limit of waiting calls of a hook is reached."""


def process_limit(processes: int) -> int:
    """How many hooks may run; 0: two for each core that this process may use, and the reserved one."""
    if processes:
        return processes
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return PER_CORE * cores + RESERVED


class ConcurrencyLimiter:
    """Hands out slots.

    Args:
        processes: how many slots there are; 0: see ``process_limit``.
        waiting: how many calls of each hook may wait.
    """

    def __init__(self, processes: int, waiting: int) -> None:
        self.processes = process_limit(processes)
        self.waiting = waiting
        self.running = 0
        self._running_of: Counter[str] = Counter()
        # In order of service: first the hook that was served the longest ago.
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}

    async def acquire(self, hook: str) -> None:
        """Wait for a slot. The caller must release it.

        Raises:
            QueueFullError: too many calls of this hook wait.
        """
        if len(self._queues.get(hook, ())) >= self.waiting:
            raise QueueFullError
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(hook, deque()).append(slot)
        self._assign()
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                # The slot was assigned before the cancellation arrived.
                self.release(hook)
            else:
                self._dequeue(hook, slot)
            raise

    def release(self, hook: str) -> None:
        """Give a slot of this hook back."""
        self.running -= 1
        self._running_of[hook] -= 1
        if not self._running_of[hook]:
            del self._running_of[hook]
        self._assign()

    def _assign(self) -> None:
        """Assign the free slots to waiting calls."""
        while (free := self.processes - self.running) and self._queues:
            hook = min(self._queues, key=self._running_of.__getitem__)
            if free <= RESERVED and self._running_of[hook]:
                return
            slot = self._queues[hook][0]
            self._dequeue(hook, slot)
            if slot.done():
                # Cancelled, and not removed yet.
                continue
            self.running += 1
            self._running_of[hook] += 1
            if hook in self._queues:
                self._queues[hook] = self._queues.pop(hook)
            slot.set_result(None)

    def _dequeue(self, hook: str, slot: asyncio.Future[None]) -> None:
        queue = self._queues.get(hook, deque())
        if slot in queue:
            queue.remove(slot)
            if not queue:
                del self._queues[hook]
