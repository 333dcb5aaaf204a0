"""Sealed verdicts in a Redis that all replicas share.

A lookup ends within the budget, with an entry or without one, whatever Redis does. A value is an entry only if it was
sealed with one of the gateway's keys for this name; everything else is a miss, and counted.

A purge is a marker in Redis, sealed as entries are, with its time. Other replicas read the markers of the policies that
they look up: once a second, and with the lookup itself if they may have missed one (at first, and after Redis was
unavailable). A purge that Redis did not take is written when Redis is back. Deleting the entries only frees memory.
(A client that can write to Redis can delete the marker. Replicas that have not read it then use verdicts from before
it: authentic, and within their ttl. To invalidate those, replace the seal key.)
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
"""A time in msgpack is 9 bytes, sealed 42."""

_READING: Final = "GETRANGE"
"""The command that reads markers, as lookups read entries."""

_encode_moment: Final = msgspec.msgpack.Encoder().encode
_decode_moment: Final = msgspec.msgpack.Decoder(float).decode


class RedisStore:
    """Verdicts in Redis.

    Args:
        address: of Redis.
        seals: the keys; ``refresh`` them when their file may have changed.
        limits: of time, size and number.
        events: counts what happens.
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
        self._purged: Callable[[frozenset[bytes]], object] = lambda _: None
        self._watched: dict[bytes, None] = {}
        self._current: set[bytes] = set()
        self._unwritten: dict[bytes, float] = {}
        # Held while markers are read or written, so that a purge and a poll share one connection.
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def up(self) -> bool:
        """Whether a lookup would be sent."""
        return self._link.up

    @property
    def refused(self) -> Mapping[str, str]:
        """Each kind of command (SET, GETRANGE, …) whose last use Redis refused, and why."""
        return self._link.refused

    async def start(
        self, purges: Purges, purged: Callable[[frozenset[bytes]], object], *, wait_seconds: float = 0.0
    ) -> bool:
        """Connect in the background; wait at most ``wait_seconds``. Returns whether Redis is usable already.

        Args:
            purges: records purges by other replicas.
            purged: called with the marks of policies whose purge is new.
            wait_seconds: 0 does not wait.
        """
        self._purges = purges
        self._purged = purged
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
        """Look up an entry. The returned function cancels.

        ``found`` is called once, within the budget, never inside ``look_up`` itself, with the newest entry under any
        seal key. The caller checks its age and whether it was purged; new purges are recorded before.
        """
        keys, mark = self._seals.keys, prefix_of(cache_key)
        names = [entry_name(key, cache_key) for key in keys]
        if mark not in self._current:
            self._watch(mark)
            names += [marker_name(key, mark) for key in keys]
        return self._lookups.look_up(names, partial(self._found, keys, names, mark, found))

    def write(self, cache_key: bytes, content: bytes, seconds: float) -> None:
        """Write an entry in the background; it expires in Redis after ``seconds``."""
        self._writes.put(cache_key, content, max(1, int(min(seconds, self._limits.entry_seconds) * 1000)))

    async def purge(self, marks: frozenset[bytes], when: float) -> bool:
        """Write the markers that these policies were purged at this time, for all replicas. Then delete their entries.

        Returns:
            Whether Redis has the markers, and replicas can read them; if not, they are written when Redis takes them.
        """
        self._writes.drop(lambda cache_key: prefix_of(cache_key) not in marks)
        async with self._turn:
            self._unwritten |= dict.fromkeys(marks, when)
            await self._write_markers()
            # If this user may write markers but not read them, no replica can: all log in as the same user.
            notified = not marks & self._unwritten.keys() and _READING not in self.refused
        self._deletions.put(entries_pattern(key, mark) for mark in marks for key in self._seals.keys)
        return notified

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
            self._purged(frozenset((mark,)))
        if _unread(markers):
            # Without the markers, entries may be purged: the other node of a cluster may be unavailable.
            found(None)
            return
        found(max((entry for entry in entries if entry is not None), key=lambda entry: entry.called_at, default=None))

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
            # The first lookup after the link is up reads the purges made meanwhile.
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
                        await self._write_markers()
                        read = await self._read_markers(list(self._watched))
                    if self._link.up:
                        self._current = read
            except LinkError:
                self._current.clear()
            except Exception:  # noqa: BLE001 - logged, and tried again
                _LOG.exception("polling purges failed inside the gateway")

    async def _read_markers(self, marks: list[bytes]) -> set[bytes]:
        """Read the markers of these policies. Returns the policies whose markers could all be read."""
        keys = self._seals.keys
        commands = [(_READING, marker_name(key, mark), 0, _MARKER_BYTES) for mark in marks for key in keys]
        if not commands:
            return set()
        values = await self._link.execute(commands)
        purged, read = set(), set()
        for number, mark in enumerate(marks):
            names = [marker_name(key, mark) for key in keys]
            markers = values[number * len(keys) : (number + 1) * len(keys)]
            if self._note(mark, keys, names, markers):
                purged.add(mark)
            if not _unread(markers):
                read.add(mark)
        if purged:
            self._purged(frozenset(purged))
        return read

    def _note(self, mark: bytes, keys: tuple[SealKey, ...], names: list[str], values: list[Any]) -> bool:
        """Record the purges in a policy's markers. Returns whether one was new."""
        is_new = False
        for key, name, value in zip(keys, names, values, strict=False):
            content = self._opened(key, name, value, _MARKER_BYTES)
            if content is None:
                continue
            try:
                when = _decode_moment(content)
            except msgspec.MsgspecError:
                self._events.count(CACHE_REDIS_ERRORS, RedisFault.UNREADABLE)
                continue
            is_new = self._purges.note(mark, when, self._now()) or is_new
        return is_new

    async def _write_markers(self) -> None:
        """Write the markers that Redis does not have yet, under all keys: some replicas may have only an old one."""
        unwritten = dict(self._unwritten)
        try:
            # Another replica may have purged later than this one: do not replace its marker with an earlier time.
            await self._read_markers(list(unwritten))
            latest = {mark: max(when, self._purges.latest(mark)) for mark, when in unwritten.items()}
            writes = [(mark, self._marker(key, mark, latest[mark])) for mark in unwritten for key in self._seals.keys]
            answers = await self._link.execute([command for _, command in writes]) if writes else []
        except LinkError:
            return
        failed = {mark for (mark, _), answer in zip(writes, answers, strict=True) if isinstance(answer, BaseException)}
        for mark, when in unwritten.items():
            if mark not in failed and self._unwritten.get(mark) == when:
                del self._unwritten[mark]

    def _marker(self, key: SealKey, mark: bytes, when: float) -> Command:
        name = marker_name(key, mark)
        seconds = self._limits.entry_seconds + 2 * self._limits.clock_skew_seconds
        return ("SET", name, key.seal(named(name), _encode_moment(when)), "PX", int(seconds * 1000))


def _unread(markers: list[Any]) -> bool:
    """Whether one of the markers is an error."""
    return any(isinstance(each, BaseException) for each in markers)
