"""Deletes the entries of purged policies from Redis. This only frees memory: the marker of a purge covers them.

So a purge does not wait for it, policies are deleted one by one, and entries that cannot be deleted now expire. (A
purge that waited would take as long as Redis needs to scan all of its names.)
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from gateway.caching.link import CacheLink, LinkError

SCAN_COUNT: Final = 1000
"""Names that Redis scans in one step: about 0.3 ms in which it does nothing else."""

SCAN_STEPS: Final = 100_000
"""Steps at most: a hundred million names. A cursor that does not end is invalid."""


class Deletions:
    """The patterns whose names are to be deleted, and the task that does it while there are any."""

    def __init__(self, link: CacheLink) -> None:
        self._link = link
        self._patterns: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None

    def put(self, patterns: Iterable[str]) -> None:
        """Delete all names that match these glob patterns, in the background."""
        self._patterns |= dict.fromkeys(patterns)
        if self._task is None:
            self._task = asyncio.create_task(self._empty())

    async def close(self) -> None:
        """Stop. Entries that are not deleted yet expire."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _empty(self) -> None:
        try:
            while self._patterns:
                pattern = next(iter(self._patterns))
                del self._patterns[pattern]
                for master in self._link.masters():
                    with suppress(LinkError):
                        await self._delete_on(master, pattern)
        finally:
            self._task = None

    async def _delete_on(self, master: Any, pattern: str) -> None:
        cursor = 0
        for _ in range(SCAN_STEPS):
            answer = await self._link.execute_on(master, "SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT)
            cursor, names = _scanned(answer)
            if names:
                await self._link.execute([("UNLINK", name) for name in names])
            if not cursor:
                break


def _scanned(answer: Any) -> tuple[int, list[bytes]]:
    """The cursor and the names of one step; cursor 0 (the end) if the answer is invalid."""
    try:
        cursor, names = answer
        return int(cursor), [name for name in names if isinstance(name, bytes)]
    except (TypeError, ValueError):
        return 0, []
