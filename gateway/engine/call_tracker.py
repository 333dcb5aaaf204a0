"""The calls of one review: who asks, who follows, what is prefetched, who asks again, what is cancelled.

* The memo comes first, whatever the time: a verdict that is there counts, even after the end of the budget.
* A turn whose question is open follows that ask, unless it was given less time than the turn's policy has: then the
  turn asks for itself. If the ask fails, each follower asks for itself.
* a prefetched call is nobody's turn's. Its verdict goes to the memo, and the first turn to use it has it as if it had
  asked itself; its failure is forgotten. It is cancelled as soon as nobody waits for it and nobody's turn can still
  want it.
* A turn that follows a prefetched call has its own deadline, from its turn. If the prefetched call fails meanwhile, the
  turn asks again, and **only for as long as the serial chain would have waited for that failure**: asked at the turn's
  begin, a worker would have failed as long after it as it failed after the prefetched call. Then the failure counts. So
  a worker that fails in the same way again costs no more time than without prefetched calls, and one that failed
  because it was prefetched has another chance.
* Wherever a turn would end with a failure of its ask, and the same question has had its verdict meanwhile (one that
  others had asked themselves), that counts; else the fallback for its question, if there is one.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.documents.document import Document
from gateway.engine.deadlines import Budget
from gateway.engine.invocation import CacheKey, PolicyInvocation
from gateway.engine.memo import Fallback, Memo
from gateway.engine.origin import CALLED, Origin, Source
from gateway.engine.plan import Member
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Failure, Verdict
from gateway.policies.model import Policy, SideEffects
from gateway.reasons import Reason
from gateway.review.request import Request

NO_CALL: Final = Origin(source=Source.NONE)
"""Of what is known without asking."""

_SHARED: Final = Origin(source=Source.SHARED)


class InvocationResult(Struct, frozen=True, kw_only=True):
    """What a turn has come to, before anything is applied.

    ``instead_of`` is the failure in whose place a stale verdict stands; ``prefetched``: the answer was asked for early.
    """

    invocation: PolicyInvocation
    answer: Answer
    origin: Origin
    instead_of: Failure | None = None
    prefetched: bool = False


class CallTracker:
    """Keeps which calls are open, and what they came to.

    Args:
        request: the review's.
        budget: the review's.
        ids: gives the next id.
        traceparent: goes with each call.
    """

    def __init__(self, request: Request, budget: Budget, ids: Iterator[int], traceparent: str = "") -> None:
        self._traceparent = traceparent
        self._request = request
        self._budget = budget
        self._ids = ids
        self._memo = Memo()
        self._claims: dict[int, PolicyCall] = {}
        self.prefetches = 0
        self._new: list[PolicyCall] = []
        self._cancels: list[PolicyCall] = []

    # ---------------------------------------------------------------------------------------------- asking

    def invoke(self, invocation: PolicyInvocation, document: Document, now: float) -> InvocationResult | None:
        """Put a turn's question; what it has come to, if that is known at once."""
        invocation.document, invocation.called_at = document, now
        invocation.deadline = self._budget.deadline(invocation.member.policy, now)
        effects = has_side_effects(invocation.member.policy, self._request)
        invocation.key = None if effects else _key(invocation.member, document)
        known = self._memo.entry(invocation.key)
        if known is not None:
            return InvocationResult(
                invocation=invocation, answer=known.verdict, origin=known.use(), prefetched=known.prefetched
            )
        if self._budget.over(now):
            return self._failed(invocation, self._budget.before_call(), NO_CALL, now)
        if not self._follow(invocation):
            self._open(invocation, now)
        if self._claims:
            self.release(invocation.index)
        return None

    def prefetch(self, index: int, member: Member, document: Document, now: float) -> None:
        """Put the question of a policy whose turn is still to come, unless it is open, or has its verdict."""
        key = _key(member, document)
        if self._memo.entry(key) is not None:
            return
        call = self._memo.shared(key)
        if call is None:
            call = self._made(member, document, self._budget.deadline(member.policy, now), key, now)
            call.prefetched = True
            self.prefetches += 1
        if call.prefetched:
            call.claims.add(index)
            self._claims[index] = call

    def release(self, index: int) -> None:
        """The turn of this policy has come: it has no other claim on its prefetched call than by following it."""
        call = self._claims.pop(index, None)
        if call is not None:
            call.claims.discard(index)
            self._drop_unwanted(call)

    def _follow(self, invocation: PolicyInvocation) -> bool:
        call = self._memo.shared(invocation.key)
        if call is None:
            return False
        policy = invocation.member.policy
        if call.policy.timeout < policy.timeout and call.deadline < invocation.deadline:
            # Should it end before its answer comes, asking anew would be too late for what comes in the policy's time.
            return False
        call.invocations.append(invocation)
        return True

    def _open(self, invocation: PolicyInvocation, now: float) -> None:
        assert invocation.document is not None  # noqa: S101 - whoever asks has one
        self._made(invocation.member, invocation.document, invocation.deadline, invocation.key, now).invocations.append(
            invocation
        )

    def _made(
        self, member: Member, document: Document, deadline: float, key: CacheKey | None, now: float
    ) -> PolicyCall:
        """A new call. Without a key it has side effects."""
        policy = member.policy
        call = PolicyCall(
            id=next(self._ids),
            policy=policy,
            document=document,
            deadline=deadline,
            uid=self._request.uid,
            traceparent=self._traceparent,
            cancellable=key is not None,
            version=member.version,
            identity=member.identity,
            cache=None if key is None else policy.cache,
            key=key,
            called_at=now,
        )
        self._new.append(call)
        self._memo.open(call)
        return call

    # -------------------------------------------------------------------------------------------- answers

    def answered(self, call: PolicyCall, answer: Answer, origin: Origin, now: float) -> list[InvocationResult]:
        """A call has its answer: what those who waited for it have come to."""
        return self._close(call, answer, origin, now) if self._memo.take(call) else []

    def fallback(self, call: PolicyCall, verdict: Verdict, origin: Origin, now: float) -> None:
        """A stale verdict is at hand, should the call fail."""
        self._memo.fall_back(call, Fallback(verdict=verdict, origin=origin, received_at=now))

    def expired(self, now: float) -> list[InvocationResult]:
        """Time has passed: those whose time is over have come to a failure."""
        return [result for call in self._memo.calls() for result in self._expire(call, now)]

    def wake_at(self) -> float | None:
        """When the first of the early calls ends. (The others end with the turns that asked.)"""
        return min((call.deadline for call in self._memo.calls() if call.prefetched), default=None)

    def take_new(self) -> tuple[tuple[PolicyCall, ...], tuple[PolicyCall, ...]]:
        """What is to be called and cancelled since the last time: whoever takes it does it."""
        take_new = tuple(self._new), tuple(self._cancels)
        self._new.clear()
        self._cancels.clear()
        return take_new

    def give_up(self) -> None:
        """No turn waits for anything any more; and what was not called yet need not be."""
        new = self._new
        self._cancels += [call for call in self._memo.give_up() if call not in new]
        new.clear()
        self._claims.clear()

    def _close(self, call: PolicyCall, answer: Answer, origin: Origin, now: float) -> list[InvocationResult]:
        """An open call has its answer, or will never have one."""
        if isinstance(answer, Failure):
            return self._close_failed(call, answer, origin, now)
        result = []
        for invocation in call.invocations:
            source = origin if invocation is call.invocations[0] else replace(origin, source=Source.SHARED)
            if now > invocation.deadline:
                result.append(self._failed(invocation, self._budget.worker_timeout(invocation), source, now))
            else:
                result.append(
                    InvocationResult(invocation=invocation, answer=answer, origin=source, prefetched=call.prefetched)
                )
        # Not before: for those who are late, this is no answer.
        self._memo.keep(call, answer, origin)
        return result

    def _close_failed(self, call: PolicyCall, failure: Failure, origin: Origin, now: float) -> list[InvocationResult]:
        timed_out = failure.reason is Reason.WORKER_TIMEOUT
        if call.prefetched:
            return self._retry(call, None if timed_out else failure, now)
        caller, *followers = call.invocations
        if timed_out:
            # The transport keeps the same deadline, and may notice first; whose time it was, the engine knows.
            failure = self._budget.worker_timeout(caller, otherwise=failure)
        result = [self._failed(caller, failure, origin, now)]
        for invocation in followers:
            if invocation.deadline <= now:
                result.append(self._failed(invocation, self._budget.worker_timeout(invocation), _SHARED, now))
            else:
                self._open(invocation, now)
        return result

    def _retry(self, prefetched: PolicyCall, failure: Failure | None, now: float) -> list[InvocationResult]:
        """An early call has failed (None: its time ended) while turns followed it."""
        result = []
        for invocation in prefetched.invocations:
            serial = invocation.called_at + (now - prefetched.called_at)
            if failure is not None and serial < invocation.deadline:
                invocation.deadline, invocation.failure = serial, failure
            if invocation.deadline <= now:
                result.append(self._failed(invocation, self._budget.worker_timeout(invocation), CALLED, now))
            else:
                self._open(invocation, now)
        return result

    def _failed(self, invocation: PolicyInvocation, failure: Failure, origin: Origin, now: float) -> InvocationResult:
        known = self._memo.entry(invocation.key)
        if known is not None:
            return InvocationResult(
                invocation=invocation, answer=known.verdict, origin=known.use(), prefetched=known.prefetched
            )
        fallback = self._memo.fallback(invocation.key)
        if fallback is None:
            return InvocationResult(invocation=invocation, answer=failure, origin=origin)
        return InvocationResult(
            invocation=invocation, answer=fallback.verdict, origin=fallback.origin_at(now), instead_of=failure
        )

    def _expire(self, call: PolicyCall, now: float) -> list[InvocationResult]:
        if call.deadline <= now:
            self._memo.take(call)
            if call.cancellable:
                self._cancels.append(call)
            if call.prefetched:
                return self._retry(call, None, now)
            return self._close_failed(call, self._budget.worker_timeout(call.invocations[0]), CALLED, now)
        late = [invocation for invocation in call.invocations if invocation.deadline <= now]
        if not late:
            return []
        for invocation in late:
            call.invocations.remove(invocation)
        self._drop_unwanted(call)
        return [self._failed(invocation, self._budget.worker_timeout(invocation), _SHARED, now) for invocation in late]

    def _drop_unwanted(self, call: PolicyCall) -> None:
        if not call.wanted and self._memo.take(call):
            self._cancels.append(call)


def _key(member: Member, document: Document) -> CacheKey:
    policy = member.policy
    return policy.worker, policy.policy, policy.settings, policy.cache, document.digest


def has_side_effects(policy: Policy, request: Request) -> bool:
    """Whether calling the policy changes something in the world, for this request."""
    if policy.side_effects is SideEffects.NONE_ON_DRY_RUN:
        return not request.dry_run
    return policy.side_effects is not SideEffects.NONE
