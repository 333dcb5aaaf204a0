"""Puts the verdict cache in front of the workers of one configuration. Each configuration has its own caller.

A call goes straight to its worker if its policy has no ``cache``, or has side effects for this request. So does a call
whose worker has live connections of different versions: the gateway cannot know which version would answer, so it looks
up, shares and stores nothing.
"""

import asyncio
from collections.abc import Callable

from gateway.caching.cache import CachedWorkers, VerdictCache
from gateway.caching.cache_keys import cache_key_of
from gateway.caching.flights import Flight
from gateway.engine.answer_source import Origin, Source
from gateway.engine.policy_call import PolicyCall
from gateway.engine.policy_caller import CallWaiter
from gateway.engine.verdicts import Verdict
from gateway.telemetry.labels import LookupResult


class CachingCaller:
    """A PolicyCaller. It raises what the workers raise.

    Args:
        workers: those that are called on a cache miss.
        cache: the verdicts of earlier calls.
    """

    __slots__ = ("_cache", "_last", "_workers")

    def __init__(self, workers: CachedWorkers, cache: VerdictCache) -> None:
        self._workers = workers
        self._cache = cache
        # ``call`` follows ``known`` with the same call: its cache key is computed once.
        self._last: tuple[PolicyCall, bytes] | None = None

    def known(self, call: PolicyCall) -> tuple[Verdict, Origin] | None:
        """The fresh verdict in this process's memory, if there is one."""
        if call.cache is None or not self._workers.settled(call):
            return None
        cache_key = cache_key_of(call)
        kept = self._cache.peek(cache_key, call.cache)
        if kept is None or not kept.fresh:
            self._last = call, cache_key
            return None
        self._cache.count_lookup(call, LookupResult.MEMORY)
        return kept.verdict, Origin(source=Source.MEMORY, age=kept.age)

    def call(self, call: PolicyCall, waiter: CallWaiter) -> Callable[[], object]:
        """Get an answer that memory does not have: from a call in progress, from Redis, or from the worker."""
        if call.cache is None:
            return self._workers.call(call, waiter)
        if not self._workers.settled(call):
            self._cache.count_lookup(call, LookupResult.BYPASS)
            return self._workers.call(call, waiter)
        cache_key = self._cache_key(call)
        flight = self._cache.flights.get(cache_key) or Flight(self._cache, cache_key)
        kept = self._cache.peek(cache_key, call.cache)
        if kept is None and self._cache.holds(cache_key):
            call.lookup = LookupResult.EXPIRED
        elif kept is not None:
            asyncio.get_running_loop().call_soon(flight.offer, call, kept)
        return flight.join(call, waiter, self._workers)

    def disagreed(self, call: PolicyCall, version: str) -> None:
        """See PolicyCaller."""
        self._workers.disagreed(call, version)

    def _cache_key(self, call: PolicyCall) -> bytes:
        last, self._last = self._last, None
        return last[1] if last is not None and last[0] is call else cache_key_of(call)
