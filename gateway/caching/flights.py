"""Single flight: equal questions that are open at the same time, in any number of reviews, are put once.

    the first       looks in Redis, then calls its worker; the others wait
    a verdict       goes to all: the one that called has it from its worker, the others shared it
    a failure       goes to the one that called; each of the others calls for itself
    not to be       a verdict that its worker says not to reuse, or of another version than the question's, is for
    shared          the one that called, too; the others call for themselves
    leaving         (an API server hangs up, a deadline passes) ends nothing while others wait, whoever called; the last
                    one to leave cancels what is under way

What Redis had counts for each by its own policy's ttl: for some it may be fresh, and the rest go on to the worker. Each
is told at most one stale verdict, then one answer, and counts once.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import structlog

from gateway.caching.cache import CachedVerdict, CachedWorkers, VerdictCache
from gateway.caching.entries import Entry, reusable
from gateway.engine.origin import CALLED, Origin, Source
from gateway.engine.policy_call import PolicyCall
from gateway.engine.policy_caller import CallWaiter
from gateway.engine.verdicts import Answer, Failure, Verdict
from gateway.policies.model import Cache
from gateway.reasons import Reason
from gateway.telemetry.labels import LookupResult

_LOG: Final = structlog.get_logger(__name__)


def _nothing() -> None:
    """Nothing is under way."""


class Flight:
    """One open question, and every call that waits for its answer: see above. It is the CallWaiter of the workers."""

    __slots__ = ("_asked", "_caller", "_cancel", "_own", "_question", "_stale", "_store", "_waiting", "_workers")

    def __init__(self, store: VerdictCache, cache_key: bytes) -> None:
        self._store = store
        self._question = cache_key
        self._waiting: dict[PolicyCall, tuple[CallWaiter, CachedWorkers]] = {}
        self._stale: set[PolicyCall] = set()
        self._own: dict[PolicyCall, Callable[[], object]] = {}
        # The call that the worker is asked with for all, when, and what cancels that or the look-up before it.
        self._caller: PolicyCall | None = None
        self._workers: CachedWorkers | None = None
        self._asked = 0.0
        self._cancel: Callable[[], object] = _nothing

    def join(self, call: PolicyCall, waiter: CallWaiter, workers: CachedWorkers) -> Callable[[], object]:
        """Wait with the others, or be the first. The result leaves.

        Raises:
            Exception: whatever calling the worker raises, if that happens at once.
        """
        is_first = not self._waiting
        self._waiting[call] = waiter, workers
        if is_first:
            self._store.flights[self._question] = self
            redis = self._store.redis
            try:
                if redis is not None and redis.up:
                    self._cancel = redis.look_up(self._question, self._found)
                else:
                    self._ask(call)
            except Exception:
                del self._waiting[call]
                self._land()
                raise
        return partial(self._leave, call)

    def offer(self, call: PolicyCall, kept: CachedVerdict) -> None:
        """A stale verdict is at hand."""
        if call not in self._waiting or call in self._stale:
            return
        self._stale.add(call)
        try:
            self._waiting[call][0].fallback(call, kept.verdict, Origin(source=Source.STALE, age=kept.age))
        except Exception:  # noqa: BLE001 - logged; as in ``_end``
            _LOG.exception("telling a stale verdict failed inside the gateway", uid=call.uid)

    def _leave(self, call: PolicyCall) -> None:
        if self._waiting.pop(call, None) is None:
            return
        own = self._own.pop(call, None)
        if own is not None:
            own()
        elif not self._waiting:
            self._abandon()

    def _abandon(self) -> None:
        """Nothing waits any more."""
        self._land()
        cancel, self._cancel = self._cancel, _nothing
        cancel()

    def _land(self) -> None:
        """No call can join any more."""
        if self._store.flights.get(self._question) is self:
            del self._store.flights[self._question]

    # ------------------------------------------------------------------------------------------------- Redis

    def _found(self, entry: Entry | None) -> None:
        """Redis has answered, or its time is over."""
        self._cancel = _nothing
        calls = tuple(self._waiting)
        served: dict[PolicyCall, CachedVerdict] = {}
        for call in calls:
            kept = None if entry is None else self._store.judged(self._question, entry, _cache(call))
            if kept is None:
                continue
            if not kept.fresh:
                self.offer(call, kept)
            elif self._waiting[call][1].settled(call):
                served[call] = kept
        if entry is not None and self._store.judged(self._question, entry, _cache(calls[0])) is not None:
            self._store.remember(self._question, entry)
        unserved = [call for call in self._waiting if call not in served]
        if unserved:
            self._ask_later(unserved)
        else:
            self._land()
        for call, kept in served.items():
            leads = call is calls[0]
            if call in self._waiting:
                self._count(call, LookupResult.REDIS if leads else LookupResult.SHARED)
            self._end(call, kept.verdict, Origin(source=Source.REDIS if leads else Source.SHARED, age=kept.age))
        if not self._waiting:
            # Those that were told may have made the others leave.
            self._abandon()

    def _ask_later(self, calls: Sequence[PolicyCall]) -> None:
        try:
            self._ask(calls[0])
        except Exception as error:  # noqa: BLE001 - logged; the reviews hear of a failure INTERNAL
            self._land()
            for call in calls:
                self._fail(call, error)

    # ------------------------------------------------------------------------------------------------ worker

    def _ask(self, call: PolicyCall) -> None:
        """Call the worker, for all."""
        self._caller = call
        self._workers = workers = self._waiting[call][1]
        self._asked = self._store.now()
        self._cancel = workers.call(call, self)
        self._count_miss(call)

    def _ask_alone(self, call: PolicyCall) -> None:
        """Call the worker for one, after what it shared came to nothing."""
        if call not in self._waiting:
            return
        self._count_miss(call)
        try:
            self._own[call] = self._waiting[call][1].call(call, self)
        except Exception as error:  # noqa: BLE001 - logged; the review hears of a failure INTERNAL
            self._fail(call, error)

    def answered(self, call: PolicyCall, answer: Answer, origin: Origin = CALLED) -> None:
        """See CallWaiter: the worker has answered."""
        if call is not self._caller:
            del self._own[call]
            self._keep(call, self._waiting[call][1], answer)
            self._end(call, answer, origin)
            return
        self._land()
        self._cancel = _nothing
        assert self._workers is not None  # noqa: S101 - _ask has set it
        shared = self._keep(call, self._workers, answer)
        self._asked = self._store.now()
        for each in tuple(self._waiting):
            if each is call:
                self._end(each, answer, origin)
            elif not shared:
                self._ask_alone(each)
            elif each in self._waiting:
                self._count(each, LookupResult.SHARED)
                self._end(each, answer, Origin(source=Source.SHARED))

    def fallback(self, call: PolicyCall, verdict: Verdict, origin: Origin) -> None:
        """See CallWaiter. Workers have none."""

    def _keep(self, call: PolicyCall, workers: CachedWorkers, answer: Answer) -> bool:
        """Keep an answer if it may be kept. Whether others may share it."""
        if isinstance(answer, Failure):
            return False
        if answer.version not in {"", call.version}:
            if call not in self._waiting:
                # Else whoever waits tells it.
                workers.disagreed(call, answer.version)
            return False
        if not reusable(answer) or not workers.settled(call):
            return False
        self._store.keep(self._question, Entry(said=self._asked, verdict=answer), _cache(call))
        return True

    # --------------------------------------------------------------------------------------------------- one

    def _end(self, call: PolicyCall, answer: Answer, origin: Origin) -> None:
        """It has its answer. One waiter that fails must not cost the others theirs."""
        waiting = self._waiting.pop(call, None)
        if waiting is None:
            return
        try:
            waiting[0].answered(call, answer, origin)
        except Exception:  # noqa: BLE001 - logged; the driver answers for what it raises
            _LOG.exception("telling an answer failed inside the gateway", uid=call.uid)

    def _fail(self, call: PolicyCall, error: Exception) -> None:
        """Calling broke."""
        _LOG.error("calling a worker failed inside the gateway", uid=call.uid, exc_info=error)
        message = f"calling worker {call.policy.worker!r}: {type(error).__name__}; see the gateway's log"
        self._end(call, Failure(reason=Reason.INTERNAL, message=message), CALLED)

    def _count_miss(self, call: PolicyCall) -> None:
        """Tell that the worker is called."""
        self._count(call, LookupResult.STALE if call in self._stale else LookupResult.MISS)

    def _count(self, call: PolicyCall, result: LookupResult) -> None:
        self._store.count_lookup(call.policy, result)


def _cache(call: PolicyCall) -> Cache:
    assert call.cache is not None  # noqa: S101 - a call without one goes straight to its worker
    return call.cache
