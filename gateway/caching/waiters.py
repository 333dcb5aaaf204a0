"""Who waits for an answer: one ask of one review, until it is answered or its review does not wait any more.

Each is told at most one stale verdict, then one answer, and counts once. A reply that breaks costs nobody else theirs.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

import structlog

from gateway.caching.cache import Kept, VerdictCache
from gateway.caching.entries import Entry, reusable
from gateway.caching.events import LookupResult
from gateway.deciding.asking import Asker, Reply
from gateway.deciding.origin import ASKED, Origin, Source
from gateway.deciding.steps import Ask
from gateway.deciding.verdicts import Answer, Failure, Verdict
from gateway.policies.model import Cache
from gateway.reasons import Reason

_LOG: Final = structlog.get_logger(__name__)


class CachedWorkers(Asker, Protocol):
    """Workers that a cache can stand in front of."""

    def settled(self, ask: Ask) -> bool:
        """Whether all live connections of the policy's worker report the version of the ask. Cheap."""

    def disagreed(self, ask: Ask, version: str) -> None:
        """An answer came from another version than the one that was asked for."""


class _Has(Enum):
    NOTHING = 0
    STALE = 1
    ENDED = 2


class Waiter:
    """One ask of one review. ``cancel`` is what leaves."""

    __slots__ = ("_cancel", "_has", "ask", "cache", "reply", "store", "workers")

    def __init__(self, store: VerdictCache, workers: CachedWorkers, ask: Ask, cache: Cache, reply: Reply) -> None:
        self.store = store
        self.workers = workers
        self.ask = ask
        self.cache = cache
        self.reply = reply
        self._has = _Has.NOTHING
        self._cancel: Callable[[], object] = lambda: None

    @property
    def ended(self) -> bool:
        """Whether it has its answer, or does not wait for it any more."""
        return self._has is _Has.ENDED

    def count(self, result: LookupResult) -> None:
        """Tell what came of the lookup."""
        self.store.events.looked_up(self.ask.policy, result)

    def count_miss(self) -> None:
        """Tell that the worker is asked."""
        self.count(LookupResult.STALE if self._has is _Has.STALE else LookupResult.MISS)

    def asks(self, cancel: Callable[[], object]) -> None:
        """From now on, this is how to leave."""
        if self.ended:
            cancel()
        else:
            self._cancel = cancel

    def cancel(self) -> None:
        """Its review does not wait any more."""
        self._has = _Has.ENDED
        cancel, self._cancel = self._cancel, lambda: None
        cancel()

    def offer(self, kept: Kept) -> None:
        """A stale verdict is at hand."""
        if self._has is not _Has.NOTHING:
            return
        self._has = _Has.STALE
        try:
            self.reply.fallback(kept.verdict, Origin(source=Source.STALE, age=kept.age))
        except Exception:  # noqa: BLE001 - logged; as in ``end``
            _LOG.exception("telling a stale verdict failed inside the gateway", uid=self.ask.uid)

    def end(self, answer: Answer, origin: Origin) -> None:
        """It has its answer. One reply that fails must not cost the others theirs."""
        if self.ended:
            return
        self._has = _Has.ENDED
        self._cancel = lambda: None
        try:
            self.reply.answered(answer, origin)
        except Exception:  # noqa: BLE001 - logged; the driver answers for what it raises
            _LOG.exception("telling an answer failed inside the gateway", uid=self.ask.uid)

    def keep(self, question: bytes, answer: Answer, asked: float) -> bool:
        """Keep an answer if it may be kept. Whether others may share it."""
        if isinstance(answer, Failure):
            return False
        if answer.version not in {"", self.ask.version}:
            self.workers.disagreed(self.ask, answer.version)
            return False
        if not reusable(answer) or not self.workers.settled(self.ask):
            return False
        self.store.keep(question, Entry(said=asked, verdict=answer), self.ask.policy, self.cache)
        return True

    def fail(self, error: Exception) -> None:
        """Asking broke."""
        _LOG.error("asking a worker failed inside the gateway", uid=self.ask.uid, exc_info=error)
        message = f"asking worker {self.ask.policy.worker!r}: {type(error).__name__}; see the gateway's log"
        self.end(Failure(reason=Reason.INTERNAL, message=message), ASKED)


class Alone:
    """Asks for one waiter, after what it shared came to nothing."""

    __slots__ = ("_asked", "_question", "_waiter")

    def __init__(self, question: bytes, waiter: Waiter) -> None:
        self._question = question
        self._waiter = waiter
        self._asked = waiter.store.now()

    def go(self) -> None:
        """Ask now."""
        waiter = self._waiter
        if waiter.ended:
            return
        waiter.count_miss()
        try:
            waiter.asks(waiter.workers.ask(waiter.ask, self))
        except Exception as error:  # noqa: BLE001 - logged; the review hears of a failure INTERNAL
            waiter.fail(error)

    def answered(self, answer: Answer, origin: Origin = ASKED) -> None:
        """See Reply."""
        self._waiter.keep(self._question, answer, self._asked)
        self._waiter.end(answer, origin)

    def fallback(self, verdict: Verdict, origin: Origin) -> None:
        """See Reply. Workers have none."""
