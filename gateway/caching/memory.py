"""The first level: verdicts of this process, the least recently used first to go.

An entry is kept as the bytes that Redis gets too. Reading them again for each hit costs a microsecond; but bytes are
counted exactly, and a hundred thousand of them hold nothing that the garbage collector has to walk.

Expired entries are found when somebody asks for them, or go as the least recently used: a timer for each would cost
more than the room.
"""

import asyncio
from collections import OrderedDict
from typing import Final

from gateway.caching.cache_keys import prefix_of
from gateway.telemetry.events import Events
from gateway.telemetry.labels import CacheEvent
from gateway.telemetry.table import CACHE_ENTRIES, CACHE_MEMORY_BYTES, CACHE_MEMORY_ENTRIES

ENTRY_OVERHEAD: Final = 320
"""Bytes that an entry takes beyond its content: question (48 + 33) and content (33) as objects, its node in an
OrderedDict (56), and its places in two tables that are a third to two thirds full. 190 to 293 were measured, by how
full they are; a test measures again."""

_SWEEP: Final = 1000
"""Entries looked at in one turn of the loop: a fifth of a millisecond."""


class Memory:
    """Verdicts by question, in at most so many bytes."""

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
        """Bytes, with everything around the entries."""
        return self._bytes

    def get(self, cache_key: bytes) -> bytes | None:
        """The content kept for a question, which is now the most recently used."""
        content = self._entries.get(cache_key)
        if content is not None:
            self._entries.move_to_end(cache_key)
        return content

    def put(self, cache_key: bytes, content: bytes) -> None:
        """Keep this content in the place of what was kept; older entries make room."""
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
            self._events.count(CACHE_ENTRIES, CacheEvent.EVICTED, amount=evicted)
        self._report_size()

    def remove(self, cache_key: bytes) -> None:
        """Forget what is kept for a question."""
        content = self._entries.pop(cache_key, None)
        if content is not None:
            self._bytes -= len(content) + ENTRY_OVERHEAD
            self._report_size()

    def _report_size(self) -> None:
        self._events.set(CACHE_MEMORY_BYTES, self._bytes)
        self._events.set(CACHE_MEMORY_ENTRIES, len(self._entries))

    async def sweep(self, marks: frozenset[bytes]) -> None:
        """Forget all entries of these policies, a thousand at a time: nobody waits for it."""
        questions = list(self._entries)
        for start in range(0, len(questions), _SWEEP):
            for cache_key in questions[start : start + _SWEEP]:
                if prefix_of(cache_key) in marks:
                    self.remove(cache_key)
            await asyncio.sleep(0)
