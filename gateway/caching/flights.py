"""Single flight: equal calls in progress at the same time, in any number of reviews, are made once.

    the first call  looks in Redis, then calls its worker; the others wait
    a verdict       goes to all: it is the worker's for the first call, and shared for the others
    a failure       goes to the first call only; each of the others calls the worker itself
    not reusable    a verdict that its worker marks as not reusable, or that has another version than the call, goes to
                    the first call only, too; the others call the worker themselves
    leaving         (an API server hangs up, a deadline passes) cancels nothing while others wait; the last call that
                    leaves cancels the lookup or the worker's call

Each call applies its own policy's ttl to an entry from Redis: for some it may be fresh, and the others call the worker.
Each call gets at most one stale verdict, then one answer, and is counted once.
"""

from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Final

import structlog

from gateway.caching.cache import CachedVerdict, CachedWorkers, VerdictCache
from gateway.caching.entries import Entry, reusable
from gateway.engine.answer_source import CALLED, Origin, Source
from gateway.engine.policy_call import PolicyCall
from gateway.engine.policy_caller import CallWaiter
from gateway.engine.verdicts import Answer, Failure, Verdict
from gateway.policies.model import Cache
from gateway.reasons import Reason
from gateway.telemetry.labels import LookupResult

_LOG: Final = structlog.get_logger(__name__)


def _nothing() -> None:
    """The cancellation when no lookup or call is in progress."""


class Flight:
    """All equal calls that wait for one answer: see above. It is the CallWaiter of the workers."""

    __slots__ = (
        "_cache_key",
        "_called_at",
        "_caller",
        "_cancel",
        "_single",
        "_stale",
        "_store",
        "_waiting",
        "_workers",
    )

    def __init__(self, store: VerdictCache, cache_key: bytes) -> None:
        self._store = store
        self._cache_key = cache_key
        self._waiting: dict[PolicyCall, tuple[CallWaiter, CachedWorkers]] = {}
        self._stale: set[PolicyCall] = set()
        self._single: dict[PolicyCall, Callable[[], object]] = {}
        # The call that the worker gets for all, when it was made, and what cancels that or the lookup before it.
        self._caller: PolicyCall | None = None
        self._workers: CachedWorkers | None = None
        self._called_at = 0.0
        self._cancel: Callable[[], object] = _nothing

    def join(self, call: PolicyCall, waiter: CallWaiter, workers: CachedWorkers) -> Callable[[], object]:
        """Wait for the result, or be the first call. The returned function leaves.

        Raises:
            Exception: what calling the worker raises, if that happens at once.
        """
        is_first = not self._waiting
        self._waiting[call] = waiter, workers
        if is_first:
            self._store.flights[self._cache_key] = self
            redis = self._store.redis
            try:
                if redis is not None and redis.up:
                    self._cancel = redis.look_up(self._cache_key, self._found)
                else:
                    self._call(call)
            except Exception:
                del self._waiting[call]
                self._land()
                raise
        return partial(self._leave, call)

    def offer(self, call: PolicyCall, kept: CachedVerdict) -> None:
        """Offer a stale verdict to a call, at most once."""
        if call not in self._waiting or call in self._stale:
            return
        self._stale.add(call)
        try:
            self._waiting[call][0].fallback(call, kept.verdict, Origin(source=Source.STALE, age=kept.age))
        except Exception:  # noqa: BLE001 - logged; as in ``_end``
            _LOG.exception("offering a stale verdict failed inside the gateway", uid=call.uid)

    def _leave(self, call: PolicyCall) -> None:
        if self._waiting.pop(call, None) is None:
            return
        cancel_single = self._single.pop(call, None)
        if cancel_single is not None:
            cancel_single()
        elif not self._waiting:
            self._abandon()

    def _abandon(self) -> None:
        """No call waits any more: cancel what is in progress."""
        self._land()
        cancel, self._cancel = self._cancel, _nothing
        cancel()

    def _land(self) -> None:
        """No call can join any more."""
        if self._store.flights.get(self._cache_key) is self:
            del self._store.flights[self._cache_key]

    # ------------------------------------------------------------------------------------------------- Redis

    def _found(self, entry: Entry | None) -> None:
        """Redis has answered, or its time is over."""
        self._cancel = _nothing
        calls = tuple(self._waiting)
        _note_lookup(calls)
        served: dict[PolicyCall, CachedVerdict] = {}
        for call in calls:
            kept = None if entry is None else self._usable(entry, call)
            if kept is None:
                continue
            if not kept.fresh:
                self.offer(call, kept)
            elif self._waiting[call][1].settled(call):
                served[call] = kept
        if entry is not None and self._store.usable(self._cache_key, entry, _cache(calls[0])) is not None:
            self._store.remember(self._cache_key, entry)
        unserved = [call for call in self._waiting if call not in served]
        if unserved:
            self._call_later(unserved)
        else:
            self._land()
        for call, kept in served.items():
            leads = call is calls[0]
            if call in self._waiting:
                self._count(call, LookupResult.REDIS if leads else LookupResult.SHARED)
            self._end(call, kept.verdict, Origin(source=Source.REDIS if leads else Source.SHARED, age=kept.age))
        if not self._waiting:
            # The answers may have made the other calls leave.
            self._abandon()

    def _usable(self, entry: Entry, call: PolicyCall) -> CachedVerdict | None:
        kept = self._store.usable(self._cache_key, entry, _cache(call))
        if kept is None:
            call.lookup = LookupResult.EXPIRED
        return kept

    def _call_later(self, calls: Sequence[PolicyCall]) -> None:
        try:
            self._call(calls[0])
        except Exception as error:  # noqa: BLE001 - logged; the calls fail with INTERNAL
            self._land()
            for call in calls:
                self._fail(call, error)

    # ------------------------------------------------------------------------------------------------ worker

    def _call(self, call: PolicyCall) -> None:
        """Call the worker for all waiting calls."""
        self._caller = call
        self._workers = workers = self._waiting[call][1]
        self._called_at = self._store.now()
        self._cancel = workers.call(call, self)
        self._count_miss(call, LookupResult.EXPIRED if call.lookup else LookupResult.MISS)

    def _call_alone(self, call: PolicyCall) -> None:
        """Call the worker for one call, after the shared call had no reusable verdict."""
        if call not in self._waiting:
            return
        self._count_miss(call, LookupResult.UNSHARED)
        try:
            self._single[call] = self._waiting[call][1].call(call, self)
        except Exception as error:  # noqa: BLE001 - logged; the call fails with INTERNAL
            self._fail(call, error)

    def answered(self, call: PolicyCall, answer: Answer, origin: Origin = CALLED) -> None:
        """See CallWaiter: the worker has answered."""
        if call is not self._caller:
            del self._single[call]
            self._keep(call, self._waiting[call][1], answer)
            self._end(call, answer, origin)
            return
        self._land()
        self._cancel = _nothing
        assert self._workers is not None  # noqa: S101 - _call has set it
        shared = self._keep(call, self._workers, answer)
        self._called_at = self._store.now()
        for each in tuple(self._waiting):
            if each is call:
                self._end(each, answer, origin)
            elif not shared:
                self._call_alone(each)
            elif each in self._waiting:
                self._count(each, LookupResult.SHARED)
                each.shared_with = call.traceparent
                self._end(each, answer, Origin(source=Source.SHARED))

    def fallback(self, call: PolicyCall, verdict: Verdict, origin: Origin) -> None:
        """See CallWaiter. Workers have none."""

    def _keep(self, call: PolicyCall, workers: CachedWorkers, answer: Answer) -> bool:
        """Store an answer if it is reusable. Returns whether other calls may share it."""
        if isinstance(answer, Failure):
            return False
        if answer.version not in {"", call.version}:
            if call not in self._waiting:
                # A call that still waits reports this itself.
                workers.disagreed(call, answer.version)
            return False
        if not reusable(answer) or not workers.settled(call):
            return False
        self._store.keep(self._cache_key, Entry(called_at=self._called_at, verdict=answer), _cache(call))
        return True

    # --------------------------------------------------------------------------------------------------- one

    def _end(self, call: PolicyCall, answer: Answer, origin: Origin) -> None:
        """Answer a call. An exception of one waiter must not prevent the others' answers."""
        waiting = self._waiting.pop(call, None)
        if waiting is None:
            return
        try:
            waiting[0].answered(call, answer, origin)
        except Exception:  # noqa: BLE001 - logged; the driver answers for what it raises
            _LOG.exception("delivering an answer failed inside the gateway", uid=call.uid)

    def _fail(self, call: PolicyCall, error: Exception) -> None:
        """Calling the worker raised: the call fails with INTERNAL."""
        _LOG.error("calling a worker failed inside the gateway", uid=call.uid, exc_info=error)
        message = f"calling worker {call.policy.worker!r}: {type(error).__name__}; see the gateway's log"
        self._end(call, Failure(reason=Reason.INTERNAL, message=message), CALLED)

    def _count_miss(self, call: PolicyCall, why: LookupResult) -> None:
        """Count a call to the worker, and why it is made."""
        self._count(call, LookupResult.STALE if call in self._stale else why)

    def _count(self, call: PolicyCall, result: LookupResult) -> None:
        self._store.count_lookup(call, result)


def _note_lookup(calls: Sequence[PolicyCall]) -> None:
    """Write down in the calls that Redis has answered now."""
    now = monotonic()
    for call in calls:
        call.looked_up_at = now


def _cache(call: PolicyCall) -> Cache:
    assert call.cache is not None  # noqa: S101 - a call without one goes straight to its worker
    return call.cache
