"""The calls of one review: who asks, who follows, what is asked early, who asks again, what is cancelled.

* The memo comes first, whatever the time: a verdict that is there counts, even after the end of the budget.
* A turn whose question is open follows that ask, unless it was given less time than the turn's policy has: then the
  turn asks for itself. If the ask fails, each follower asks for itself.
* An early ask is nobody's turn's. Its verdict goes to the memo, and the first turn to use it has it as if it had asked
  itself; its failure is forgotten. It is cancelled as soon as nobody waits for it and nobody's turn can still want it.
* A turn that follows an early ask has its own deadline, from its turn. If the early ask fails meanwhile, the turn asks
  again, and **only for as long as the serial chain would have waited for that failure**: asked at the turn's begin, a
  worker would have failed as long after it as it failed after the early ask. Then the failure counts. So a worker that
  fails in the same way again costs no more time than without early asks, and one that failed because it was asked early
  has another chance.
* Wherever a turn would end with a failure of its ask, and the same question has had its verdict meanwhile (one that
  others had asked themselves), that counts; else the fallback for its question, if there is one.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from msgspec import Struct

from gateway.documents.document import Document
from gateway.engine.lateness import Budget
from gateway.engine.memo import Fallback, Memo
from gateway.engine.origin import ASKED, Origin, Source
from gateway.engine.plan import Member
from gateway.engine.policy_call import PolicyCall
from gateway.engine.turn import CacheKey, Turn
from gateway.engine.verdicts import Answer, Failure, Verdict
from gateway.policies.model import Policy, SideEffects
from gateway.reasons import Reason
from gateway.review.request import Request

NOBODY: Final = Origin(source=Source.NOBODY)
"""Of what is known without asking."""

_SHARED: Final = Origin(source=Source.SHARED)


class Heard(Struct, frozen=True, kw_only=True):
    """What a turn has come to, before anything is applied.

    ``instead_of`` is the failure in whose place a stale verdict stands; ``early``: the answer was asked for early.
    """

    turn: Turn
    answer: Answer
    origin: Origin
    instead_of: Failure | None = None
    early: bool = False


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
        self.early_asks = 0
        self._new: list[PolicyCall] = []
        self._cancels: list[PolicyCall] = []

    # ---------------------------------------------------------------------------------------------- asking

    def ask(self, turn: Turn, document: Document, now: float) -> Heard | None:
        """Put a turn's question; what it has come to, if that is known at once."""
        turn.document, turn.asked = document, now
        turn.deadline = self._budget.deadline(turn.member.policy, now)
        effects = has_side_effects(turn.member.policy, self._request)
        turn.key = None if effects else _key(turn.member, document)
        known = self._memo.entry(turn.key)
        if known is not None:
            return Heard(turn=turn, answer=known.verdict, origin=known.use(), early=known.early)
        if self._budget.over(now):
            return self._failed(turn, self._budget.before_asked(), NOBODY, now)
        if not self._follow(turn):
            self._open(turn, now)
        if self._claims:
            self.release(turn.index)
        return None

    def ask_early(self, index: int, member: Member, document: Document, now: float) -> None:
        """Put the question of a policy whose turn is still to come, unless it is open, or has its verdict."""
        key = _key(member, document)
        if self._memo.entry(key) is not None:
            return
        call = self._memo.shared(key)
        if call is None:
            call = self._made(member, document, self._budget.deadline(member.policy, now), key, now)
            call.early = True
            self.early_asks += 1
        if call.early:
            call.claims.add(index)
            self._claims[index] = call

    def release(self, index: int) -> None:
        """The turn of this policy has come: it has no other claim on its early ask than by following it."""
        call = self._claims.pop(index, None)
        if call is not None:
            call.claims.discard(index)
            self._drop_unwanted(call)

    def _follow(self, turn: Turn) -> bool:
        call = self._memo.shared(turn.key)
        if call is None:
            return False
        policy = turn.member.policy
        if call.policy.timeout < policy.timeout and call.deadline < turn.deadline:
            # Should it end before its answer comes, asking anew would be too late for what comes in the policy's time.
            return False
        call.turns.append(turn)
        return True

    def _open(self, turn: Turn, now: float) -> None:
        assert turn.document is not None  # noqa: S101 - whoever asks has one
        self._made(turn.member, turn.document, turn.deadline, turn.key, now).turns.append(turn)

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
            asked=now,
        )
        self._new.append(call)
        self._memo.open(call)
        return call

    # -------------------------------------------------------------------------------------------- answers

    def answered(self, call: PolicyCall, answer: Answer, origin: Origin, now: float) -> list[Heard]:
        """A call has its answer: what those who waited for it have come to."""
        return self._close(call, answer, origin, now) if self._memo.take(call) else []

    def fallback(self, call: PolicyCall, verdict: Verdict, origin: Origin, now: float) -> None:
        """A stale verdict is at hand, should the call fail."""
        self._memo.fall_back(call, Fallback(verdict=verdict, origin=origin, told=now))

    def expired(self, now: float) -> list[Heard]:
        """Time has passed: those whose time is over have come to a failure."""
        return [heard for call in self._memo.calls() for heard in self._expire(call, now)]

    def wake_at(self) -> float | None:
        """When the first of the early calls ends. (The others end with the turns that asked.)"""
        return min((call.deadline for call in self._memo.calls() if call.early), default=None)

    def taken(self) -> tuple[tuple[PolicyCall, ...], tuple[PolicyCall, ...]]:
        """What is to be called and cancelled since the last time: whoever takes it does it."""
        taken = tuple(self._new), tuple(self._cancels)
        self._new.clear()
        self._cancels.clear()
        return taken

    def give_up(self) -> None:
        """No turn waits for anything any more; and what was not called yet need not be."""
        new = self._new
        self._cancels += [call for call in self._memo.give_up() if call not in new]
        new.clear()
        self._claims.clear()

    def _close(self, call: PolicyCall, answer: Answer, origin: Origin, now: float) -> list[Heard]:
        """An open call has its answer, or will never have one."""
        if isinstance(answer, Failure):
            return self._close_failed(call, answer, origin, now)
        heard = []
        for turn in call.turns:
            source = origin if turn is call.turns[0] else replace(origin, source=Source.SHARED)
            if now > turn.deadline:
                heard.append(self._failed(turn, self._budget.worker_late(turn), source, now))
            else:
                heard.append(Heard(turn=turn, answer=answer, origin=source, early=call.early))
        # Not before: for those who are late, this is no answer.
        self._memo.keep(call, answer, origin)
        return heard

    def _close_failed(self, call: PolicyCall, failure: Failure, origin: Origin, now: float) -> list[Heard]:
        timed_out = failure.reason is Reason.WORKER_TIMEOUT
        if call.early:
            return self._ask_again(call, None if timed_out else failure, now)
        asker, *followers = call.turns
        if timed_out:
            # The transport keeps the same deadline, and may notice first; whose time it was, the heart knows.
            failure = self._budget.worker_late(asker, otherwise=failure)
        heard = [self._failed(asker, failure, origin, now)]
        for turn in followers:
            if turn.deadline <= now:
                heard.append(self._failed(turn, self._budget.worker_late(turn), _SHARED, now))
            else:
                self._open(turn, now)
        return heard

    def _ask_again(self, early: PolicyCall, failure: Failure | None, now: float) -> list[Heard]:
        """An early call has failed (None: its time ended) while turns followed it."""
        heard = []
        for turn in early.turns:
            serial = turn.asked + (now - early.asked)
            if failure is not None and serial < turn.deadline:
                turn.deadline, turn.failure = serial, failure
            if turn.deadline <= now:
                heard.append(self._failed(turn, self._budget.worker_late(turn), ASKED, now))
            else:
                self._open(turn, now)
        return heard

    def _failed(self, turn: Turn, failure: Failure, origin: Origin, now: float) -> Heard:
        known = self._memo.entry(turn.key)
        if known is not None:
            return Heard(turn=turn, answer=known.verdict, origin=known.use(), early=known.early)
        fallback = self._memo.fallback(turn.key)
        if fallback is None:
            return Heard(turn=turn, answer=failure, origin=origin)
        return Heard(turn=turn, answer=fallback.verdict, origin=fallback.origin_at(now), instead_of=failure)

    def _expire(self, call: PolicyCall, now: float) -> list[Heard]:
        if call.deadline <= now:
            self._memo.take(call)
            if call.cancellable:
                self._cancels.append(call)
            if call.early:
                return self._ask_again(call, None, now)
            return self._close_failed(call, self._budget.worker_late(call.turns[0]), ASKED, now)
        late = [turn for turn in call.turns if turn.deadline <= now]
        if not late:
            return []
        for turn in late:
            call.turns.remove(turn)
        self._drop_unwanted(call)
        return [self._failed(turn, self._budget.worker_late(turn), _SHARED, now) for turn in late]

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
