"""Lookups in Redis: all lookups of one loop iteration share a pipeline, and none waits longer than the budget.

The lookups of one iteration have one timer. When it fires, those without an answer are misses, and a later answer is
ignored. At most ``redis_connections`` pipelines are in flight; lookups meanwhile are collected for the next pipeline.
So under load the pipelines become larger, not more numerous.

GETRANGE instead of GET: a client of Redis may write values of 512 MB; a lookup reads at most the largest entry and a
byte. GETRANGE does not distinguish an empty value from a missing one; both are a miss.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from gateway.caching.limits import CacheLimits
from gateway.caching.link import CacheLink, LinkError
from gateway.redis.sealing import SEAL_BYTES

Found = Callable[[list[Any] | None], object]
"""Gets the values of the names, in their order (bytes, empty if missing, or an exception); None: no answer in time.
Called once, never inside ``look_up`` itself."""

PIPELINE: Final = 1000
"""Names in one pipeline. Their values, of 1 KB mostly, are 1 MB: 10 ms of a 1 Gbit/s network, half the budget."""


class Lookup:
    """One lookup in progress. After ``cancel``, its callback is not called."""

    __slots__ = ("found", "names")

    def __init__(self, names: list[str], found: Found) -> None:
        self.names = names
        self.found: Found | None = found

    def cancel(self) -> None:
        """Drop the callback."""
        self.found = None

    def end(self, values: list[Any] | None) -> None:
        """Call the callback, once."""
        found, self.found = self.found, None
        if found is not None:
            found(values)


class _Tick:
    """The lookups of one loop tick."""

    __slots__ = ("late", "lookups", "timer")

    def __init__(self) -> None:
        self.lookups: list[Lookup] = []
        self.late = False
        self.timer: asyncio.TimerHandle | None = None


class Lookups:
    """Collects lookups and sends them."""

    def __init__(self, link: CacheLink, limits: CacheLimits) -> None:
        self._link = link
        self._limits = limits
        self._current: _Tick | None = None
        self._waiting: list[_Tick] = []
        self._under_way: set[asyncio.Task[None]] = set()

    def look_up(self, names: list[str], found: Found) -> Callable[[], object]:
        """Look up the values of these names. The returned function cancels."""
        lookup = Lookup(names, found)
        tick = self._current
        if tick is None:
            tick = self._current = _Tick()
            loop = asyncio.get_running_loop()
            tick.timer = loop.call_later(self._limits.redis_seconds, self._ring, tick)
            loop.call_soon(self._turn)
        tick.lookups.append(lookup)
        return lookup.cancel

    def give_up(self) -> None:
        """End all lookups as misses: the link is down."""
        for task in self._under_way:
            task.cancel()
        ticks, self._waiting = self._waiting, []
        for tick in ticks:
            self._end(tick)

    def _turn(self) -> None:
        tick, self._current = self._current, None
        if tick is not None:
            self._waiting.append(tick)
        self._send()

    def _send(self) -> None:
        while self._waiting and len(self._under_way) < self._limits.redis_connections:
            ticks, names = [], 0
            while self._waiting and names < PIPELINE:
                tick = self._waiting.pop(0)
                ticks.append(tick)
                names += sum(len(lookup.names) for lookup in tick.lookups)
            task = asyncio.create_task(self._send_ticks(ticks))
            self._under_way.add(task)
            task.add_done_callback(partial(self._done, ticks))

    def _done(self, ticks: list[_Tick], task: "asyncio.Task[None]") -> None:
        # Here, not in the task: one that is cancelled before it starts runs no ``finally``.
        for tick in ticks:
            self._end(tick)
        self._under_way.discard(task)
        self._send()

    async def _send_ticks(self, ticks: list[_Tick]) -> None:
        try:
            lookups = [each for tick in ticks if not tick.late for each in tick.lookups if each.found is not None]
            if lookups:
                last = self._limits.entry_bytes + SEAL_BYTES
                commands = [("GETRANGE", name, 0, last) for lookup in lookups for name in lookup.names]
                values = iter(await self._link.execute(commands))
                if not any(tick.late for tick in ticks):
                    self._link.in_time()
                for lookup in lookups:
                    lookup.end([next(values) for _ in lookup.names])
        except LinkError:
            pass

    def _ring(self, tick: _Tick) -> None:
        tick.late = True
        if tick is self._current:
            # The loop was busy for all of the budget. What is looked up from now on has its own.
            self._current = None
        if any(lookup.found is not None for lookup in tick.lookups):
            self._link.late()
        self._end(tick)

    def _end(self, tick: _Tick) -> None:
        if tick.timer is not None:
            tick.timer.cancel()
            tick.timer = None
        for lookup in tick.lookups:
            lookup.end(None)
