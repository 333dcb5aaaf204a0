"""Writes to Redis, in the background: a review never waits for a write, and no failed write affects it.

Writes wait in a queue that is bounded in entries and bytes; one pipeline at a time takes from it and seals the entries.
If the queue is full, or while Redis is skipped, writes are dropped and counted. Then another replica calls its worker
once more.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from gateway.caching.limits import CacheLimits
from gateway.caching.link import CacheLink, LinkError
from gateway.redis.pipelines import Command
from gateway.telemetry.events import Events
from gateway.telemetry.labels import CacheEvent
from gateway.telemetry.table import CACHE_EVENTS

PIPELINE_BYTES: Final = 1_000_000
"""Bytes sealed and sent at once: a millisecond of AES, or a single entry of the largest size."""

PIPELINE: Final = 100
"""Entries sealed at once: at 10 microseconds each, they block the loop for a millisecond."""

Sealing = Callable[[bytes, bytes, int], Command]
"""Makes the command that writes the content of a cache key with a time to live in milliseconds."""


class Writes:
    """The queue, and the task that empties it while there is anything in it."""

    def __init__(self, link: CacheLink, limits: CacheLimits, events: Events, sealing: Sealing) -> None:
        self._link = link
        self._limits = limits
        self._events = events
        self._sealing = sealing
        self._queue: OrderedDict[bytes, tuple[bytes, int]] = OrderedDict()
        self._bytes = 0
        self._task: asyncio.Task[None] | None = None

    def put(self, cache_key: bytes, content: bytes, milliseconds: int) -> None:
        """Write this in the background; it replaces a waiting write of the same key."""
        before = self._queue.pop(cache_key, None)
        if before is not None:
            self._bytes -= len(before[0])
        full = len(self._queue) >= self._limits.redis_writes
        if not self._link.up or full or self._bytes + len(content) > self._limits.redis_write_bytes:
            self._events.count(CACHE_EVENTS, CacheEvent.WRITE_DROPPED)
            return
        self._queue[cache_key] = content, milliseconds
        self._bytes += len(content)
        if self._task is None:
            self._task = asyncio.create_task(self._empty())

    def drop(self, wanted: Callable[[bytes], bool] = lambda _: False) -> None:
        """Drop all waiting writes, except those whose key is ``wanted``."""
        dropped = [cache_key for cache_key in self._queue if not wanted(cache_key)]
        for cache_key in dropped:
            self._bytes -= len(self._queue.pop(cache_key)[0])
        if dropped:
            self._events.count(CACHE_EVENTS, CacheEvent.WRITE_DROPPED, amount=len(dropped))

    async def close(self) -> None:
        """Stop. Waiting writes are dropped."""
        self.drop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _empty(self) -> None:
        try:
            # Wait for the end of this loop iteration, so that its entries share the pipeline.
            await asyncio.sleep(0)
            while self._queue:
                commands = self._take()
                try:
                    await self._link.execute(commands)
                except LinkError:
                    self._events.count(CACHE_EVENTS, CacheEvent.WRITE_DROPPED, amount=len(commands))
                    if not self._link.up:
                        self.drop()
        finally:
            self._task = None

    def _take(self) -> list[Command]:
        commands: list[Command] = []
        size = 0
        while self._queue and len(commands) < PIPELINE and size < PIPELINE_BYTES:
            cache_key, (content, milliseconds) = self._queue.popitem(last=False)
            self._bytes -= len(content)
            size += len(content)
            commands.append(self._sealing(cache_key, content, milliseconds))
        return commands
