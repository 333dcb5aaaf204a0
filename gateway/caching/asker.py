"""A cache in front of the workers of one configuration: cheap to make, for each configuration anew.

An ask whose policy has no ``cache``, or that has side effects for this request, goes straight to its worker. So does
one whose worker's live connections are of different versions: nobody knows which of them would answer, so nothing is
looked up, shared or kept.
"""

import asyncio
from collections.abc import Callable

from gateway.caching.cache import VerdictCache
from gateway.caching.events import LookupResult
from gateway.caching.flights import Flight
from gateway.caching.questions import question_of
from gateway.caching.waiters import CachedWorkers, Waiter
from gateway.deciding.asking import Reply
from gateway.deciding.origin import Origin, Source
from gateway.deciding.steps import Ask
from gateway.deciding.verdicts import Verdict


class CachingAsker:
    """An Asker. What it raises is what the workers raise.

    Args:
        workers: who is asked.
        cache: what was said before.
    """

    __slots__ = ("_cache", "_last", "_workers")

    def __init__(self, workers: CachedWorkers, cache: VerdictCache) -> None:
        self._workers = workers
        self._cache = cache
        # ``ask`` follows ``known`` with the same ask: its question is worked out once.
        self._last: tuple[Ask, bytes] | None = None

    def known(self, ask: Ask) -> tuple[Verdict, Origin] | None:
        """The verdict, if this process has it fresh."""
        if ask.cache is None or not self._workers.settled(ask):
            return None
        question = question_of(ask)
        kept = self._cache.peek(question, ask.cache)
        if kept is None or not kept.fresh:
            self._last = ask, question
            return None
        self._cache.events.looked_up(ask.policy, LookupResult.MEMORY)
        return kept.verdict, Origin(source=Source.MEMORY, age=kept.age)

    def ask(self, ask: Ask, reply: Reply) -> Callable[[], object]:
        """Find an answer that is not known: shared with another review, in Redis, or the worker's."""
        if ask.cache is None:
            return self._workers.ask(ask, reply)
        if not self._workers.settled(ask):
            self._cache.events.looked_up(ask.policy, LookupResult.BYPASS)
            return self._workers.ask(ask, reply)
        question = self._question(ask)
        waiter = Waiter(self._cache, self._workers, ask, ask.cache, reply)
        kept = self._cache.peek(question, ask.cache)
        if kept is not None:
            asyncio.get_running_loop().call_soon(waiter.offer, kept)
        flight = self._cache.flights.get(question) or Flight(self._cache, question)
        return flight.join(waiter)

    def _question(self, ask: Ask) -> bytes:
        last, self._last = self._last, None
        return last[1] if last is not None and last[0] is ask else question_of(ask)
