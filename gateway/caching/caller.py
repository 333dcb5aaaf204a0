"""A cache in front of the workers of one configuration: cheap to make, for each configuration anew.

A call whose policy has no ``cache``, or that has side effects for this request, goes straight to its worker. So does
one whose worker's live connections are of different versions: nobody knows which of them would answer, so nothing is
looked up, shared or kept.
"""

import asyncio
from collections.abc import Callable

from gateway.caching.cache import CachedWorkers, VerdictCache
from gateway.caching.cache_keys import cache_key_of
from gateway.caching.flights import Flight
from gateway.engine.origin import Origin, Source
from gateway.engine.policy_call import PolicyCall
from gateway.engine.policy_caller import CallWaiter
from gateway.engine.verdicts import Verdict
from gateway.telemetry.labels import LookupResult


class CachingCaller:
    """A PolicyCaller. What it raises is what the workers raise.

    Args:
        workers: who is called.
        cache: what was said before.
    """

    __slots__ = ("_cache", "_last", "_workers")

    def __init__(self, workers: CachedWorkers, cache: VerdictCache) -> None:
        self._workers = workers
        self._cache = cache
        # ``call`` follows ``known`` with the same call: its question is worked out once.
        self._last: tuple[PolicyCall, bytes] | None = None

    def known(self, call: PolicyCall) -> tuple[Verdict, Origin] | None:
        """The verdict, if this process has it fresh."""
        if call.cache is None or not self._workers.settled(call):
            return None
        cache_key = cache_key_of(call)
        kept = self._cache.peek(cache_key, call.cache)
        if kept is None or not kept.fresh:
            self._last = call, cache_key
            return None
        self._cache.count_lookup(call.policy, LookupResult.MEMORY)
        return kept.verdict, Origin(source=Source.MEMORY, age=kept.age)

    def call(self, call: PolicyCall, waiter: CallWaiter) -> Callable[[], object]:
        """Find an answer that is not known: shared with another review, in Redis, or the worker's."""
        if call.cache is None:
            return self._workers.call(call, waiter)
        if not self._workers.settled(call):
            self._cache.count_lookup(call.policy, LookupResult.BYPASS)
            return self._workers.call(call, waiter)
        cache_key = self._question(call)
        flight = self._cache.flights.get(cache_key) or Flight(self._cache, cache_key)
        kept = self._cache.peek(cache_key, call.cache)
        if kept is not None:
            asyncio.get_running_loop().call_soon(flight.offer, call, kept)
        return flight.join(call, waiter, self._workers)

    def disagreed(self, call: PolicyCall, version: str) -> None:
        """See PolicyCaller."""
        self._workers.disagreed(call, version)

    def _question(self, call: PolicyCall) -> bytes:
        last, self._last = self._last, None
        return last[1] if last is not None and last[0] is call else cache_key_of(call)
