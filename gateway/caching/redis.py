"""The second level: sealed verdicts in a Redis that all replicas share.

Whatever Redis does, who looks something up hears of an entry within the budget, or of none. Whatever stands in Redis,
an entry is one that was sealed with one of our keys under this very name; everything else is a miss, and counted.

A purge is a marker in Redis, sealed as entries are, with its moment. Other replicas read the markers of the policies
that they look up: once a second, and together with the lookup itself where they cannot know (at first, and after Redis
was away). A purge that Redis could not be told is told when it is back. Deleting the entries only saves their room.
(Who can write to Redis can delete the marker. Replicas that have not read it yet then take the verdicts from before it
for what they are: authentic, and within their ttl. To make them worthless, replace the seal key.)
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from time import time
from typing import Any, Final

import msgspec
import structlog

from gateway.caching.cache_keys import prefix_of
from gateway.caching.deletions import Deletions
from gateway.caching.entries import Entry, unpacked
from gateway.caching.limits import CacheLimits
from gateway.caching.link import CacheLink, LinkError
from gateway.caching.lookups import Lookups
from gateway.caching.names import entries_pattern, entry_name, marker_name, named
from gateway.caching.purges import Purges
from gateway.caching.writes import Writes
from gateway.redis.addresses import RedisAddress
from gateway.redis.faults import RedisFault
from gateway.redis.pipelines import Command
from gateway.redis.sealing import SEAL_BYTES, SealKey, SealKeys
from gateway.telemetry.events import Events
from gateway.telemetry.table import CACHE_REDIS_ERRORS, CACHE_SEAL_FAILURES

_LOG: Final = structlog.get_logger(__name__)

WATCHED: Final = 10_000
"""Policies whose purges are polled: ten times the largest configuration. 250 KB a second, by 25 bytes of an answer."""

_MARKER_BYTES: Final = 64
"""A moment in msgpack is 9 bytes, sealed 42."""

_READING: Final = "GETRANGE"
"""The command that reads markers, as lookups read entries."""

_encode_moment: Final = msgspec.msgpack.Encoder().encode
_decode_moment: Final = msgspec.msgpack.Decoder(float).decode


class RedisStore:
    """Verdicts in Redis.

    Args:
        address: which Redis.
        seals: the keys; ``refresh`` them when their file may have changed.
        limits: of time, size and number.
        events: hears what happens.
        now: seconds since 1970.
    """

    def __init__(
        self,
        address: RedisAddress,
        seals: SealKeys,
        limits: CacheLimits,
        events: Events,
        now: Callable[[], float] = time,
    ) -> None:
        self._seals = seals
        self._limits = limits
        self._events = events
        self._now = now
        self._link = CacheLink(address, limits, events, self._changed)
        self._lookups = Lookups(self._link, limits)
        self._writes = Writes(self._link, limits, events, self._sealed)
        self._deletions = Deletions(self._link)
        self._purges = Purges(limits)
        self._received: Callable[[frozenset[bytes]], object] = lambda _: None
        self._watched: dict[bytes, None] = {}
        self._current: set[bytes] = set()
        self._untold: dict[bytes, float] = {}
        # Whoever reads or writes markers; so a purge and a poll share one connection.
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def up(self) -> bool:
        """Whether a lookup would be sent."""
        return self._link.up

    @property
    def refused(self) -> Mapping[str, str]:
        """Each kind of command (SET, GETRANGE, …) that Redis refused last although it answers, and why."""
        return self._link.refused

    async def start(
        self, purges: Purges, received: Callable[[frozenset[bytes]], object], *, wait_seconds: float = 0.0
    ) -> bool:
        """Connect in the background; wait for it so long at most. Whether Redis can be used already.

        Args:
            purges: where purges by others are noted.
            received: hears of those that were news.
            wait_seconds: 0 does not wait.
        """
        self._purges = purges
        self._received = received
        self._link.start()
        self._task = asyncio.create_task(self._poll())
        return await self._link.wait(wait_seconds) if wait_seconds > 0 else False

    async def close(self) -> None:
        """End all connections. What waits to be written is dropped."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self._deletions.close()
        await self._writes.close()
        await self._link.close()
        self._lookups.give_up()

    def look_up(self, cache_key: bytes, found: Callable[[Entry | None], object]) -> Callable[[], object]:
        """Look for an entry; the result cancels.

        ``found`` is called once, within the budget, never inside ``look_up`` itself, with the newest entry there is
        under any of our keys. How old it may be and whether it was purged is the caller's to judge; purges that were
        news have been noted before.
        """
        keys, mark = self._seals.keys, prefix_of(cache_key)
        names = [entry_name(key, cache_key) for key in keys]
        if mark not in self._current:
            self._watch(mark)
            names += [marker_name(key, mark) for key in keys]
        return self._lookups.look_up(names, partial(self._found, keys, names, mark, found))

    def write(self, cache_key: bytes, content: bytes, seconds: float) -> None:
        """Write an entry some time soon; Redis may forget it after so many seconds."""
        self._writes.put(cache_key, content, max(1, int(min(seconds, self._limits.entry_seconds) * 1000)))

    async def purge(self, marks: frozenset[bytes], when: float) -> bool:
        """Tell all replicas that these policies were purged at this moment. Their entries are deleted afterwards.

        Returns:
            Whether Redis has the news, and gives it; if not, it is told when it can be.
        """
        self._writes.drop(lambda cache_key: prefix_of(cache_key) not in marks)
        async with self._turn:
            self._untold |= dict.fromkeys(marks, when)
            await self._report()
            # Who may write markers but not read them has told nobody: the others log in as the same user.
            reported = not marks & self._untold.keys() and _READING not in self.refused
        self._deletions.put(entries_pattern(key, mark) for mark in marks for key in self._seals.keys)
        return reported

    # ----------------------------------------------------------------------------------------------- entries

    def _found(
        self,
        keys: tuple[SealKey, ...],
        names: list[str],
        mark: bytes,
        found: Callable[[Entry | None], object],
        values: list[Any] | None,
    ) -> None:
        if values is None:
            found(None)
            return
        entries = [self._entry(*each) for each in zip(keys, names, values, strict=False)]
        markers = values[len(keys) :]
        if self._note(mark, keys, names[len(keys) :], markers):
            self._received(frozenset((mark,)))
        if _unread(markers):
            # Redis has entries, and does not say whether they were purged: of a cluster, the other node may be away.
            found(None)
            return
        found(max((entry for entry in entries if entry is not None), key=lambda entry: entry.said, default=None))

    def _entry(self, key: SealKey, name: str, value: Any) -> Entry | None:
        content = self._opened(key, name, value, self._limits.entry_bytes + SEAL_BYTES)
        if content is None:
            return None
        entry = unpacked(content)
        if entry is None:
            self._events.count(CACHE_REDIS_ERRORS, RedisFault.UNREADABLE)
        return entry

    def _opened(self, key: SealKey, name: str, value: Any, longest: int) -> bytes | None:
        if isinstance(value, BaseException) or value == b"":
            return None
        if not isinstance(value, bytes) or len(value) > longest:
            self._events.count(CACHE_REDIS_ERRORS, RedisFault.UNREADABLE)
            return None
        content = key.open(named(name), value)
        if content is None:
            self._events.count(CACHE_SEAL_FAILURES)
        return content

    def _sealed(self, cache_key: bytes, content: bytes, milliseconds: int) -> Command:
        key = self._seals.keys[0]
        name = entry_name(key, cache_key)
        return ("SET", name, key.seal(named(name), content), "PX", milliseconds)

    # ------------------------------------------------------------------------------------------------ purges

    def _changed(self, up: bool) -> None:  # noqa: FBT001 - Link's own callback
        if not up:
            # Whatever is purged while Redis is away, we hear of with the first lookup after it.
            self._current.clear()
            self._lookups.give_up()
            self._writes.drop()

    def _watch(self, mark: bytes) -> None:
        if mark not in self._watched:
            if len(self._watched) >= WATCHED:
                self._watched.pop(next(iter(self._watched)))
            self._watched[mark] = None

    async def _poll(self) -> None:
        while not self._closed:
            await asyncio.sleep(self._limits.purge_poll_seconds)
            try:
                if self._link.up:
                    async with self._turn:
                        await self._report()
                        read = await self._listen(list(self._watched))
                    if self._link.up:
                        self._current = read
            except LinkError:
                self._current.clear()
            except Exception:  # noqa: BLE001 - logged, and tried again: nobody else would
                _LOG.exception("polling purges failed inside the gateway")

    async def _listen(self, marks: list[bytes]) -> set[bytes]:
        """Read the markers of these policies. Those of which all could be read."""
        keys = self._seals.keys
        commands = [(_READING, marker_name(key, mark), 0, _MARKER_BYTES) for mark in marks for key in keys]
        if not commands:
            return set()
        values = await self._link.execute(commands)
        received, read = set(), set()
        for number, mark in enumerate(marks):
            names = [marker_name(key, mark) for key in keys]
            markers = values[number * len(keys) : (number + 1) * len(keys)]
            if self._note(mark, keys, names, markers):
                received.add(mark)
            if not _unread(markers):
                read.add(mark)
        if received:
            self._received(frozenset(received))
        return read

    def _note(self, mark: bytes, keys: tuple[SealKey, ...], names: list[str], values: list[Any]) -> bool:
        """Read what stands in a policy's markers. Whether it was news."""
        changes = False
        for key, name, value in zip(keys, names, values, strict=False):
            content = self._opened(key, name, value, _MARKER_BYTES)
            if content is None:
                continue
            try:
                when = _decode_moment(content)
            except msgspec.MsgspecError:
                self._events.count(CACHE_REDIS_ERRORS, RedisFault.UNREADABLE)
                continue
            changes = self._purges.note(mark, when, self._now()) or changes
        return changes

    async def _report(self) -> None:
        """Write the markers that Redis does not have yet, under all keys: some replicas may have only an old one."""
        untold = dict(self._untold)
        try:
            # Another replica may have purged after us, while we could not tell: its moment must not be set back.
            await self._listen(list(untold))
            latest = {mark: max(when, self._purges.latest(mark)) for mark, when in untold.items()}
            reported = [(mark, self._marker(key, mark, latest[mark])) for mark in untold for key in self._seals.keys]
            answers = await self._link.execute([command for _, command in reported]) if reported else []
        except LinkError:
            return
        failed = {
            mark for (mark, _), answer in zip(reported, answers, strict=True) if isinstance(answer, BaseException)
        }
        for mark, when in untold.items():
            if mark not in failed and self._untold.get(mark) == when:
                del self._untold[mark]

    def _marker(self, key: SealKey, mark: bytes, when: float) -> Command:
        name = marker_name(key, mark)
        seconds = self._limits.entry_seconds + 2 * self._limits.clock_skew_seconds
        return ("SET", name, key.seal(named(name), _encode_moment(when)), "PX", int(seconds * 1000))


def _unread(markers: list[Any]) -> bool:
    """Whether one of them has an error in its place."""
    return any(isinstance(each, BaseException) for each in markers)
