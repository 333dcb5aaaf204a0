"""The verdict cache. It outlives configurations: what changes with a configuration is part of the cache key.

stored    allow and deny, whole; never a failure, never a verdict that the worker marks as not reusable
used      fresh: as the answer. Stale: only if the call to the worker fails (stale-if-error)
where     in this process's memory, and in Redis if there is one; an entry found in Redis is stored in memory too
not used  entries from the future (beyond the permitted clock skew), beyond the maximum age, or purged
"""

import asyncio
from collections.abc import Callable, Iterable
from time import time
from typing import TYPE_CHECKING, Final, Optional, Protocol

import structlog
from msgspec import Struct

from gateway.caching.cache_keys import policy_prefix, prefix_of
from gateway.caching.entries import Entry, life, packed, unpacked
from gateway.caching.limits import CacheLimits
from gateway.caching.memory import Memory
from gateway.caching.purges import Purges
from gateway.engine.policy_call import PolicyCall
from gateway.engine.policy_caller import CallWaiter, PolicyCaller
from gateway.engine.verdicts import Verdict
from gateway.policies.model import Cache, Phase
from gateway.telemetry.events import Events, NoEvents
from gateway.telemetry.labels import CacheEvent, LookupResult
from gateway.telemetry.table import CACHE_EVENTS, CACHE_LOOKUPS, CACHE_PURGED_POLICIES

if TYPE_CHECKING:
    from gateway.caching.redis import RedisStore

_LOG: Final = structlog.get_logger(__name__)


class CachedWorkers(PolicyCaller, Protocol):
    """Workers that a cache can stand in front of."""

    def settled(self, call: PolicyCall) -> bool:
        """Whether all live connections of the policy's worker report the version of the call. Cheap."""


class CachedVerdict(Struct, frozen=True, kw_only=True):
    """A verdict that was found: its age in seconds, and whether it is fresh; if not, it is stale."""

    verdict: Verdict
    age: float
    fresh: bool


class OpenFlight(Protocol):
    """Equal calls in progress (``flights``)."""

    def join(self, call: PolicyCall, waiter: CallWaiter, workers: CachedWorkers) -> Callable[[], object]:
        """Wait for the result of the flight. The returned function stops waiting."""

    def offer(self, call: PolicyCall, kept: CachedVerdict) -> None:
        """Offer a stale verdict to one of the calls."""


class VerdictCache:
    """The verdicts of this process, and those that it shares through Redis.

    Args:
        limits: of everything.
        events: counts what happens.
        redis: the shared store, with the same limits and events; None: there is none.
        now: seconds since 1970, the same as Redis'.
    """

    def __init__(
        self,
        limits: CacheLimits | None = None,
        events: Events | None = None,
        redis: Optional["RedisStore"] = None,
        now: Callable[[], float] = time,
    ) -> None:
        self.limits = limits or CacheLimits()
        self._events = events or NoEvents()
        self.now = now
        self.redis = redis
        self.flights: dict[bytes, OpenFlight] = {}
        self._memory = Memory(self.limits.memory_bytes, self._events)
        self._purges = Purges(self.limits)
        self._sweeps: set[asyncio.Task[None]] = set()

    async def start(self, *, wait_seconds: float = 0.0) -> bool:
        """Connect to Redis in the background, if there is one; wait at most ``wait_seconds`` for it.

        Returns:
            Whether Redis is usable already. If not, the cache uses it as soon as it answers.
        """
        if self.redis is None:
            return True
        return await self.redis.start(self._purges, self._forget, wait_seconds=wait_seconds)

    async def close(self) -> None:
        """Close the connections to Redis. Reviews must have ended; others would call their workers."""
        for sweep in self._sweeps:
            sweep.cancel()
        await asyncio.gather(*self._sweeps, return_exceptions=True)
        if self.redis is not None:
            await self.redis.close()

    async def purge(self, policies: Iterable[str]) -> bool | None:
        """Purge these policies: no verdict of a call made before now is reused, here or in any other replica.

        Args:
            policies: qualified names; in both phases. A name that no policy has purges nothing.

        Returns:
            True: the other replicas purge within ``purge_poll_seconds``. False: Redis did not take the purge, or does
            not let replicas read it; it is written again until Redis takes it. None: there is no Redis.
        """
        names = tuple(policies)
        marks = frozenset(policy_prefix(phase, name) for name in names for phase in Phase)
        when = self.now()
        for mark in marks:
            self._purges.note(mark, when, when)
        self._detach(marks)
        self._events.count(CACHE_PURGED_POLICIES, amount=len(names))
        _LOG.info("verdicts purged", policies=sorted(names))
        await self._memory.sweep(marks)
        return None if self.redis is None else await self.redis.purge(marks, when)

    # ------------------------------------------------------------------------------------------- for callers

    def count_lookup(self, call: PolicyCall, result: LookupResult) -> None:
        """Count the result of the lookup for this call, and write it down in the call."""
        call.lookup = result
        policy = call.policy
        self._events.count(CACHE_LOOKUPS, policy.phase, policy.qualified_name, result)

    def holds(self, cache_key: bytes) -> bool:
        """Whether memory has a verdict for a key, usable or not."""
        return self._memory.get(cache_key) is not None

    def peek(self, cache_key: bytes, cache: Cache) -> CachedVerdict | None:
        """The verdict in memory for a key, fresh or stale; None if there is no usable one."""
        content = self._memory.get(cache_key)
        if content is None:
            return None
        entry = unpacked(content)
        if entry is None or self._over(cache_key, entry):
            self._memory.remove(cache_key)
            return None
        # An entry too old under this ttl stays: it may be fresh under another. It is evicted as least recently used.
        return self.usable(cache_key, entry, cache)

    def usable(self, cache_key: bytes, entry: Entry, cache: Cache) -> CachedVerdict | None:
        """The verdict of an entry under this ``cache``, fresh or stale; None if it must not be used."""
        age = self.now() - entry.called_at
        lives = life(entry.verdict, cache)
        if self._over(cache_key, entry) or not -self.limits.clock_skew_seconds <= age < lives + cache.stale_if_error:
            return None
        return CachedVerdict(verdict=entry.verdict, age=max(age, 0.0), fresh=age < lives)

    def _over(self, cache_key: bytes, entry: Entry) -> bool:
        """Whether the entry is purged or beyond the maximum age."""
        return self.now() - entry.called_at >= self.limits.entry_seconds or self._purges.covers(
            prefix_of(cache_key), entry.called_at
        )

    def keep(self, cache_key: bytes, entry: Entry, cache: Cache) -> None:
        """Store a worker's new verdict, here and in Redis."""
        seconds = life(entry.verdict, cache) + cache.stale_if_error
        if seconds <= 0 or self.usable(cache_key, entry, cache) is None:
            return
        content = self._store(cache_key, entry)
        if content is not None:
            self._events.count(CACHE_EVENTS, CacheEvent.STORED)
            if self.redis is not None:
                self.redis.write(cache_key, content, seconds)

    def remember(self, cache_key: bytes, entry: Entry) -> None:
        """Store an entry found in Redis in memory, unless memory has a newer one."""
        content = self._memory.get(cache_key)
        here = None if content is None else unpacked(content)
        if here is None or here.called_at < entry.called_at:
            self._store(cache_key, entry)

    def _store(self, cache_key: bytes, entry: Entry) -> bytes | None:
        content = packed(entry)
        if content is None or len(content) > self.limits.entry_bytes:
            self._events.count(CACHE_EVENTS, CacheEvent.TOO_LARGE)
            return None
        self._memory.put(cache_key, content)
        return content

    # ------------------------------------------------------------------------------------------------ purges

    def _forget(self, marks: frozenset[bytes]) -> None:
        """Another replica has purged these policies. Their marks are hashes, so the log cannot name them."""
        _LOG.info("a purge by another replica is in force", policies=len(marks))
        self._events.count(CACHE_PURGED_POLICIES, amount=len(marks))
        self._detach(marks)
        sweep = asyncio.create_task(self._memory.sweep(marks))
        self._sweeps.add(sweep)
        sweep.add_done_callback(self._sweeps.discard)

    def _detach(self, marks: frozenset[bytes]) -> None:
        """New calls must not share the result of a call that began before the purge. Calls that wait already do."""
        for cache_key in [each for each in self.flights if prefix_of(each) in marks]:
            del self.flights[cache_key]
