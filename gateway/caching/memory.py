"""The verdicts in this process's memory; the least recently used are evicted first.

An entry is stored as the bytes that Redis gets too. Decoding them for each hit costs a microsecond; but their size is
exact, and the garbage collector does not have to traverse them.

Expired entries are removed on a lookup, or evicted as least recently used: a timer for each would cost more than the
memory.
"""

import asyncio
from collections import OrderedDict
from typing import Final

from gateway.caching.cache_keys import prefix_of
from gateway.telemetry.events import Events
from gateway.telemetry.labels import CacheEvent
from gateway.telemetry.table import CACHE_EVENTS, CACHE_MEMORY_BYTES, CACHE_MEMORY_ENTRIES

ENTRY_OVERHEAD: Final = 320
"""Bytes that an entry takes beyond its content: key (48 + 33) and content (33) as objects, its node in an
OrderedDict (56), and its places in two tables that are a third to two thirds full. 190 to 293 were measured, by how
full they are; a test measures again."""

_SWEEP: Final = 1000
"""Entries checked in one loop iteration: a fifth of a millisecond."""


class Memory:
    """Verdicts by cache key, in at most ``limit`` bytes."""

    __slots__ = ("_bytes", "_entries", "_events", "_limit")

    def __init__(self, limit: int, events: Events) -> None:
        self._limit = limit
        self._events = events
        self._entries: OrderedDict[bytes, bytes] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """Bytes of all entries, with their overhead."""
        return self._bytes

    def get(self, cache_key: bytes) -> bytes | None:
        """The content stored for a key, which is now the most recently used."""
        content = self._entries.get(cache_key)
        if content is not None:
            self._entries.move_to_end(cache_key)
        return content

    def put(self, cache_key: bytes, content: bytes) -> None:
        """Store this content, and evict the least recently used entries beyond the limit."""
        before = self._entries.pop(cache_key, None)
        if before is not None:
            self._bytes -= len(before) + ENTRY_OVERHEAD
        self._entries[cache_key] = content
        self._bytes += len(content) + ENTRY_OVERHEAD
        evicted = 0
        while self._bytes > self._limit:
            _, oldest = self._entries.popitem(last=False)
            self._bytes -= len(oldest) + ENTRY_OVERHEAD
            evicted += 1
        if evicted:
            self._events.count(CACHE_EVENTS, CacheEvent.EVICTED, amount=evicted)
        self._report_size()

    def remove(self, cache_key: bytes) -> None:
        """Remove the entry of a key."""
        content = self._entries.pop(cache_key, None)
        if content is not None:
            self._bytes -= len(content) + ENTRY_OVERHEAD
            self._report_size()

    def _report_size(self) -> None:
        self._events.set(CACHE_MEMORY_BYTES, self._bytes)
        self._events.set(CACHE_MEMORY_ENTRIES, len(self._entries))

    async def sweep(self, marks: frozenset[bytes]) -> None:
        """Remove all entries of these policies, a thousand in one loop iteration."""
        keys = list(self._entries)
        for start in range(0, len(keys), _SWEEP):
            for cache_key in keys[start : start + _SWEEP]:
                if prefix_of(cache_key) in marks:
                    self.remove(cache_key)
            await asyncio.sleep(0)
