"""The calls of one review: which are open, shared, prefetched, retried and cancelled.

* The memo comes first: a verdict in the memo counts, even after the end of the budget.
* If a call with the same key is open, the turn waits for that call (it *follows* it) instead of making its own. The
  exception: the open call has less time than the turn's policy allows; then the turn makes its own call. If the shared
  call fails, each follower makes its own.
* A prefetched call belongs to no turn. Its verdict goes to the memo, and the first turn that uses it records it like a
  call of its own. Its failure is dropped. It is cancelled as soon as no turn waits for it and no later turn can use it.
* A turn that follows a prefetched call has its own deadline, counted from the turn's start. If the prefetched call
  fails, the turn calls again, but **only for as long as the serial chain would have waited for that failure**: called
  at the turn's start, the worker would have failed as long after it as it failed after the prefetched call. Then the
  failure counts. So a worker that fails again in the same way costs no more time than without prefetch, and a worker
  that failed because of the prefetch gets a second call.
* Where a turn would end with a failed call, a verdict that another call with the same key has returned meanwhile
  counts instead; else the fallback for its key, if there is one.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from gateway.documents.documents import Document
from gateway.engine.answer_source import CALLED, CallRecord, Origin, SampledCall, Source
from gateway.engine.deadlines import Budget
from gateway.engine.memo import Fallback, Memo, MemoEntry
from gateway.engine.plan import Member
from gateway.engine.policy_call import CacheKey, PolicyCall, PolicyInvocation
from gateway.engine.trace_context import NO_TRACE, TraceContext
from gateway.engine.verdicts import Answer, Failure, Verdict
from gateway.policies.model import Policy, SideEffects
from gateway.reasons import Reason
from gateway.review.request import Request

NO_CALL: Final = Origin(source=Source.NONE)
"""The origin of an answer that needed no call."""

_SHARED: Final = Origin(source=Source.SHARED)


class InvocationResult(Struct, frozen=True, kw_only=True):
    """The answer for a turn, before any change is applied.

    ``call`` is the call behind it, None if none was made. ``instead_of`` is the failure that a stale verdict replaces;
    ``prefetched``: the call was made before the turn.
    """

    invocation: PolicyInvocation
    answer: Answer
    origin: Origin
    call: CallRecord | None = None
    instead_of: Failure | None = None
    prefetched: bool = False


class CallTracker(Struct, eq=False):
    """Keeps the open calls of one review and their verdicts.

    ``request`` and ``budget`` are the review's, ``ids`` gives the next id, ``trace`` goes with each call. ``sampled``
    has all calls, if their spans are exported. ``prefetches`` counts the prefetched calls; ``claims`` holds those that
    a later turn may still use, by the policy's index. The driver has to carry out ``new`` and ``cancels``.
    """

    request: Request
    budget: Budget
    ids: Iterator[int]
    trace: TraceContext = NO_TRACE
    memo: Memo = field(default_factory=Memo)
    prefetches: int = 0
    sampled: list[PolicyCall] = []
    claims: dict[int, PolicyCall] = {}
    new: list[PolicyCall] = []
    cancels: list[PolicyCall] = []

    # --------------------------------------------------------------------------------------------- calling

    def invoke(self, invocation: PolicyInvocation, document: Document, now: float) -> InvocationResult | None:
        """Call the policy for a turn. Returns the result if it is known without a call, else None."""
        invocation.document, invocation.called_at = document, now
        invocation.deadline = self.budget.deadline(invocation.member.policy, now)
        effects = has_side_effects(invocation.member.policy, self.request)
        key = invocation.key = None if effects else _key(invocation.member, document)
        known = self.memo.entries.get(key)
        if known is not None:
            return _known(invocation, known)
        if now >= self.budget.ends:
            return self._failed(invocation, self.budget.before_call(), NO_CALL, None, now)
        same = self.memo.shared.get(key)
        if same is None or not _follow(same, invocation):
            self._made(invocation.member, document, invocation.deadline, key, now).invocations.append(invocation)
        if self.claims:
            self.release(invocation.index)
        return None

    def prefetch(self, index: int, member: Member, document: Document, now: float) -> None:
        """Call a policy before its turn, unless a call with the same key is open or has its verdict."""
        key = _key(member, document)
        if key in self.memo.entries:
            return
        call = self.memo.shared.get(key)
        if call is None:
            call = self._made(member, document, self.budget.deadline(member.policy, now), key, now)
            call.prefetched = True
            self.prefetches += 1
        if call.prefetched:
            call.claims.add(index)
            self.claims[index] = call

    def release(self, index: int) -> None:
        """The turn of this policy has come: give up its claim on its prefetched call, unless it follows the call."""
        call = self.claims.pop(index, None)
        if call is not None:
            call.claims.discard(index)
            self._drop_unwanted(call)

    def _open(self, invocation: PolicyInvocation, now: float) -> None:
        assert invocation.document is not None  # noqa: S101 - set before the first call
        self._made(invocation.member, invocation.document, invocation.deadline, invocation.key, now).invocations.append(
            invocation
        )

    def _made(
        self, member: Member, document: Document, deadline: float, key: CacheKey | None, now: float
    ) -> PolicyCall:
        """A new call. ``key`` is None for a call with side effects."""
        policy = member.policy
        number, trace = next(self.ids), self.trace
        call = PolicyCall(
            id=number,
            policy=policy,
            document=document,
            deadline=deadline,
            uid=self.request.uid,
            traceparent=trace.of_call(number) if trace.sampled else trace.traceparent,
            tracestate=trace.tracestate,
            cancellable=key is not None,
            version=member.version,
            key_prefix=member.key_prefix,
            cache=None if key is None else policy.cache,
            key=key,
            called_at=now,
            namespace=self.request.namespace,
        )
        if trace.sampled:
            self.sampled.append(call)
        self.new.append(call)
        self.memo.open(call)
        return call

    # -------------------------------------------------------------------------------------------- answers

    def answered(self, call: PolicyCall, answer: Answer, origin: Origin, now: float) -> list[InvocationResult]:
        """A call has its answer: the results of the turns that waited for it."""
        if not self.memo.take(call):
            return []
        if isinstance(answer, Failure):
            return self._close_failed(call, answer, origin, now, now)
        results = []
        record = call.record(now)
        for invocation in call.invocations:
            source = origin if invocation is call.invocations[0] else replace(origin, source=Source.SHARED)
            if now > invocation.deadline:
                results.append(self._failed(invocation, self.budget.worker_timeout(invocation), source, record, now))
            else:
                results.append(
                    InvocationResult(
                        invocation=invocation, answer=answer, origin=source, call=record, prefetched=call.prefetched
                    )
                )
        # Only now: the memo must not have the verdict while ``_failed`` runs for turns past their deadline.
        self.memo.keep(call, answer, origin, record)
        return results

    def fallback(self, call: PolicyCall, verdict: Verdict, origin: Origin, now: float) -> None:
        """Keep a stale verdict to use if the call fails."""
        self.memo.fall_back(call, Fallback(verdict=verdict, origin=origin, received_at=now))

    def expired(self, now: float) -> list[InvocationResult]:
        """Time has passed: the failures of the turns whose deadline has passed."""
        return [result for call in tuple(self.memo.calls) for result in self._expire(call, now)]

    def wake_at(self) -> float | None:
        """The earliest deadline of the prefetched calls. (The deadlines of the others are those of their turns.)"""
        return min((call.deadline for call in self.memo.calls if call.prefetched), default=None)

    def sampled_calls(self) -> tuple[SampledCall, ...]:
        """All calls of this review, if their spans are exported. Without their documents, which are large."""
        return tuple(
            SampledCall(policy=call.policy, prefetched=call.prefetched, record=call.record(call.answered_at))
            for call in self.sampled
        )

    def take_new(self) -> tuple[tuple[PolicyCall, ...], tuple[PolicyCall, ...]]:
        """The new calls and cancellations since the last time. The receiver must carry them out."""
        taken = tuple(self.new), tuple(self.cancels)
        self.new.clear()
        self.cancels.clear()
        return taken

    def give_up(self) -> None:
        """No turn waits any more: cancel the open calls and drop those not yet made."""
        new = self.new
        if self.memo.calls:
            self.cancels += [call for call in self.memo.give_up() if call not in new]
        new.clear()
        self.claims.clear()

    def _close_failed(
        self, call: PolicyCall, failure: Failure, origin: Origin, answered_at: float | None, now: float
    ) -> list[InvocationResult]:
        timed_out = failure.reason is Reason.WORKER_TIMEOUT
        if call.prefetched:
            return self._retry(call, None if timed_out else failure, now)
        caller, *followers = call.invocations
        if timed_out:
            # The transport has the same deadline and may notice first. Only the engine knows whether the policy's
            # timeout or the review's budget ended.
            failure = self.budget.worker_timeout(caller, otherwise=failure)
        record = call.record(answered_at)
        result = [self._failed(caller, failure, origin, record, now)]
        for invocation in followers:
            if invocation.deadline <= now:
                result.append(self._failed(invocation, self.budget.worker_timeout(invocation), _SHARED, record, now))
            else:
                self._open(invocation, now)
        return result

    def _retry(self, prefetched: PolicyCall, failure: Failure | None, now: float) -> list[InvocationResult]:
        """A prefetched call has failed (None: its time ended) while turns followed it."""
        result = []
        answered_at = None if failure is None else now
        record = prefetched.record(answered_at)
        for invocation in prefetched.invocations:
            serial = invocation.called_at + (now - prefetched.called_at)
            if failure is not None and serial < invocation.deadline:
                invocation.deadline, invocation.failure = serial, failure
            if invocation.deadline <= now:
                result.append(self._failed(invocation, self.budget.worker_timeout(invocation), CALLED, record, now))
            else:
                self._open(invocation, now)
        return result

    def _failed(
        self,
        invocation: PolicyInvocation,
        failure: Failure,
        origin: Origin,
        call: CallRecord | None,
        now: float,
    ) -> InvocationResult:
        known = self.memo.entries.get(invocation.key)
        if known is not None:
            return _known(invocation, known)
        fallback = self.memo.fallbacks.get(invocation.key)
        if fallback is None:
            return InvocationResult(invocation=invocation, answer=failure, origin=origin, call=call)
        origin = fallback.origin_at(now)
        return InvocationResult(
            invocation=invocation, answer=fallback.verdict, origin=origin, call=call, instead_of=failure
        )

    def _expire(self, call: PolicyCall, now: float) -> list[InvocationResult]:
        if call.deadline <= now:
            self.memo.take(call)
            if call.cancellable:
                self.cancels.append(call)
            if call.prefetched:
                return self._retry(call, None, now)
            return self._close_failed(call, self.budget.worker_timeout(call.invocations[0]), CALLED, None, now)
        late = [invocation for invocation in call.invocations if invocation.deadline <= now]
        if not late:
            return []
        for invocation in late:
            call.invocations.remove(invocation)
        self._drop_unwanted(call)
        record = call.record(None)
        return [
            self._failed(invocation, self.budget.worker_timeout(invocation), _SHARED, record, now)
            for invocation in late
        ]

    def _drop_unwanted(self, call: PolicyCall) -> None:
        if not call.wanted and self.memo.take(call):
            self.cancels.append(call)


def _known(invocation: PolicyInvocation, entry: MemoEntry) -> InvocationResult:
    """The result of a turn whose verdict the memo has."""
    return InvocationResult(
        invocation=invocation,
        answer=entry.verdict,
        origin=entry.use(),
        call=entry.call,
        prefetched=entry.prefetched,
    )


def _follow(call: PolicyCall, invocation: PolicyInvocation) -> bool:
    """Make a turn wait for an open call with the same key. False: the turn has more time than the call."""
    if call.policy.timeout < invocation.member.policy.timeout and call.deadline < invocation.deadline:
        # If the call timed out, a second call would miss an answer that comes within the policy's own timeout.
        return False
    call.invocations.append(invocation)
    return True


def _key(member: Member, document: Document) -> CacheKey:
    policy = member.policy
    return policy.worker, policy.policy, policy.settings, policy.cache, document.digest


def has_side_effects(policy: Policy, request: Request) -> bool:
    """Whether calling the policy has side effects for this request."""
    if policy.side_effects is SideEffects.NONE_ON_DRY_RUN:
        return not request.dry_run
    return policy.side_effects is not SideEffects.NONE
