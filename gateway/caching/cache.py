"""The verdicts kept between reviews. It outlives configurations: what changes with one is in the question.

kept      allow and deny, with everything they say; never a failure, never what the worker said not to reuse
used      fresh: as an answer. Stale: only handed to whoever asks the worker, should that fail
where     in this process's memory, and in Redis if there is one; what Redis had, memory has from then on
not used  what is from the future (by more than clocks may differ), older than any entry may be, or purged
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
from gateway.policies.model import Cache, Phase, Policy
from gateway.telemetry.events import Events, NoEvents
from gateway.telemetry.labels import CacheEvent, LookupResult
from gateway.telemetry.table import CACHE_ENTRIES, CACHE_LOOKUPS, CACHE_PURGED_POLICIES

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
    """Equal questions that are open (``flights``)."""

    def join(self, call: PolicyCall, waiter: CallWaiter, workers: CachedWorkers) -> Callable[[], object]:
        """Wait with the others. The result leaves."""

    def offer(self, call: PolicyCall, kept: CachedVerdict) -> None:
        """A stale verdict is at hand for one of them."""


class VerdictCache:
    """What this process has, and what it shares.

    Args:
        limits: of everything.
        events: hears what happens.
        redis: the second level, made with the same limits and events; None: there is none.
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
        """Connect to Redis in the background, if there is one; wait for it so long at most.

        Returns:
            Whether everything can be used already. If not, nothing is lost: Redis is used as soon as it answers.
        """
        if self.redis is None:
            return True
        return await self.redis.start(self._purges, self._forget, wait_seconds=wait_seconds)

    async def close(self) -> None:
        """Let go of Redis. Reviews must have ended, or be about to ask their workers."""
        for sweep in self._sweeps:
            sweep.cancel()
        await asyncio.gather(*self._sweeps, return_exceptions=True)
        if self.redis is not None:
            await self.redis.close()

    async def purge(self, policies: Iterable[str]) -> bool | None:
        """Use no verdict of these policies again that was asked for before now, here or in any other replica.

        Args:
            policies: qualified names; in both phases. A name that no policy has purges nothing.

        Returns:
            Whether the other replicas will know within ``purge_poll_seconds``. If not, Redis could not be told, or
            does not tell them; it will be told when it can be. None: there is no Redis, and nobody to be told.
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

    # -------------------------------------------------------------------------------------------- for askers

    def count_lookup(self, policy: Policy, result: LookupResult) -> None:
        """Report what came of looking for a verdict of this policy."""
        self._events.count(CACHE_LOOKUPS, policy.phase, policy.qualified_name, result)

    def peek(self, cache_key: bytes, cache: Cache) -> CachedVerdict | None:
        """What memory has for a question that may be used, fresh or stale."""
        content = self._memory.get(cache_key)
        if content is None:
            return None
        entry = unpacked(content)
        if entry is None or self._over(cache_key, entry):
            self._memory.remove(cache_key)
            return None
        # What is too old under this ttl stays: it may be fresh under another, and goes as the least recently used.
        return self.judged(cache_key, entry, cache)

    def judged(self, cache_key: bytes, entry: Entry, cache: Cache) -> CachedVerdict | None:
        """An entry as it may be used under this ``cache``; None: not at all."""
        age = self.now() - entry.said
        lives = life(entry.verdict, cache)
        if self._over(cache_key, entry) or not -self.limits.clock_skew_seconds <= age < lives + cache.stale_if_error:
            return None
        return CachedVerdict(verdict=entry.verdict, age=max(age, 0.0), fresh=age < lives)

    def _over(self, cache_key: bytes, entry: Entry) -> bool:
        """Whether nobody may use it again."""
        return self.now() - entry.said >= self.limits.entry_seconds or self._purges.covers(
            prefix_of(cache_key), entry.said
        )

    def keep(self, cache_key: bytes, entry: Entry, cache: Cache) -> None:
        """Keep what a worker has just said, here and in Redis."""
        seconds = life(entry.verdict, cache) + cache.stale_if_error
        if seconds <= 0 or self.judged(cache_key, entry, cache) is None:
            return
        content = self._write_down(cache_key, entry)
        if content is not None:
            self._events.count(CACHE_ENTRIES, CacheEvent.STORED)
            if self.redis is not None:
                self.redis.write(cache_key, content, seconds)

    def remember(self, cache_key: bytes, entry: Entry) -> None:
        """Keep what Redis had, here, unless what is here is newer."""
        content = self._memory.get(cache_key)
        here = None if content is None else unpacked(content)
        if here is None or here.said < entry.said:
            self._write_down(cache_key, entry)

    def _write_down(self, cache_key: bytes, entry: Entry) -> bytes | None:
        content = packed(entry)
        if content is None or len(content) > self.limits.entry_bytes:
            self._events.count(CACHE_ENTRIES, CacheEvent.TOO_LARGE)
            return None
        self._memory.put(cache_key, content)
        return content

    # ------------------------------------------------------------------------------------------------ purges

    def _forget(self, marks: frozenset[bytes]) -> None:
        """Another replica has purged these policies; who they are, their marks don't say."""
        _LOG.info("a purge by another replica is in force", policies=len(marks))
        self._events.count(CACHE_PURGED_POLICIES, amount=len(marks))
        self._detach(marks)
        sweep = asyncio.create_task(self._memory.sweep(marks))
        self._sweeps.add(sweep)
        sweep.add_done_callback(self._sweeps.discard)

    def _detach(self, marks: frozenset[bytes]) -> None:
        """Who asks from now on must not share an answer to an ask from before. Who waits already goes on waiting."""
        for cache_key in [each for each in self.flights if prefix_of(each) in marks]:
            del self.flights[cache_key]
