"""The asks of one review: who asks, who follows, what is asked early, who asks again, what is cancelled.

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

from gateway.deciding.lateness import Budget
from gateway.deciding.origin import ASKED, Origin, Source
from gateway.deciding.plan import Member
from gateway.deciding.questions import Fallback, OpenAsk, Question, Questions, Turn
from gateway.deciding.steps import Ask
from gateway.deciding.verdicts import Answer, Failure, Verdict
from gateway.documents.document import Document
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


class Inquiry:
    """Keeps what is asked.

    Args:
        request: the review's.
        budget: the review's.
        ids: gives the next id.
        traceparent: goes with each ask.
    """

    def __init__(self, request: Request, budget: Budget, ids: Iterator[int], traceparent: str = "") -> None:
        self._traceparent = traceparent
        self._request = request
        self._budget = budget
        self._ids = ids
        self._questions = Questions()
        self._claims: dict[int, OpenAsk] = {}
        self.early_asks = 0
        self._new: list[Ask] = []
        self._cancels: list[int] = []

    # ---------------------------------------------------------------------------------------------- asking

    def ask(self, turn: Turn, document: Document, now: float) -> Heard | None:
        """Put a turn's question; what it has come to, if that is known at once."""
        turn.document, turn.asked = document, now
        turn.deadline = self._budget.deadline(turn.member.policy, now)
        turn.question = self._question(turn.member, document)
        known = self._questions.known(turn.question)
        if known is not None:
            return Heard(turn=turn, answer=known.verdict, origin=known.use(), early=known.early)
        if self._budget.over(now):
            return self._failed(turn, self._budget.before_asked(), NOBODY, now)
        if not self._follow(turn):
            self._open(turn, now)
        self.release(turn.index)
        return None

    def ask_early(self, index: int, member: Member, document: Document, now: float) -> None:
        """Put the question of a policy whose turn is still to come, unless it is open, or has its verdict."""
        question = self._question(member, document)
        if self._questions.known(question) is not None:
            return
        open_ask = self._questions.shared(question)
        if open_ask is None:
            ask = self._ask(member, document, self._budget.deadline(member.policy, now))
            open_ask = OpenAsk(ask=ask, question=question, asked=now, early=True)
            self._questions.open(open_ask)
            self.early_asks += 1
        if open_ask.early:
            open_ask.claims.add(index)
            self._claims[index] = open_ask

    def release(self, index: int) -> None:
        """The turn of this policy has come: it has no other claim on its early ask than by following it."""
        open_ask = self._claims.pop(index, None)
        if open_ask is not None:
            open_ask.claims.discard(index)
            self._drop_unwanted(open_ask)

    def has_side_effects(self, policy: Policy) -> bool:
        """Whether asking would change something in the world, for this request."""
        if policy.side_effects is SideEffects.NONE_ON_DRY_RUN:
            return not self._request.dry_run
        return policy.side_effects is not SideEffects.NONE

    def _follow(self, turn: Turn) -> bool:
        open_ask = self._questions.shared(turn.question)
        if open_ask is None:
            return False
        ask, policy = open_ask.ask, turn.member.policy
        if ask.policy.timeout < policy.timeout and ask.deadline < turn.deadline:
            # Should it end before its answer comes, asking anew would be too late for what comes in the policy's time.
            return False
        open_ask.turns.append(turn)
        return True

    def _open(self, turn: Turn, now: float) -> None:
        assert turn.document is not None  # noqa: S101 - whoever asks has one
        ask = self._ask(turn.member, turn.document, turn.deadline)
        self._questions.open(OpenAsk(ask=ask, question=turn.question, asked=now, turns=[turn]))

    def _ask(self, member: Member, document: Document, deadline: float) -> Ask:
        effects = self.has_side_effects(member.policy)
        ask = Ask(
            id=next(self._ids),
            policy=member.policy,
            document=document,
            deadline=deadline,
            uid=self._request.uid,
            traceparent=self._traceparent,
            cancellable=not effects,
            version=member.version,
            identity=member.identity,
            cache=None if effects else member.policy.cache,
        )
        self._new.append(ask)
        return ask

    def _question(self, member: Member, document: Document) -> Question | None:
        policy = member.policy
        if self.has_side_effects(policy):
            return None
        return policy.worker, policy.policy, policy.settings, policy.cache, document.digest

    # -------------------------------------------------------------------------------------------- answers

    def answered(self, ask_id: int, answer: Answer, origin: Origin, now: float) -> list[Heard]:
        """An ask has its answer: what those who waited for it have come to."""
        open_ask = self._questions.take(ask_id)
        return [] if open_ask is None else self._close(open_ask, answer, origin, now)

    def fallback(self, ask_id: int, verdict: Verdict, origin: Origin, now: float) -> None:
        """A stale verdict is at hand, should the ask fail."""
        self._questions.fall_back(ask_id, Fallback(verdict=verdict, origin=origin, told=now))

    def expired(self, now: float) -> list[Heard]:
        """Time has passed: those whose time is over have come to a failure."""
        return [heard for open_ask in self._questions for heard in self._expire(open_ask, now)]

    def wake_at(self) -> float | None:
        """When the first of the early asks ends. (The others end with the turns that asked.)"""
        return min((open_ask.ask.deadline for open_ask in self._questions if open_ask.early), default=None)

    def taken(self) -> tuple[tuple[Ask, ...], tuple[int, ...]]:
        """What is to be asked and cancelled since the last time: whoever takes it does it."""
        taken = tuple(self._new), tuple(self._cancels)
        self._new, self._cancels = [], []
        return taken

    def give_up(self) -> None:
        """Nobody waits for anything any more; and what was not asked yet need not be."""
        unasked = {ask.id for ask in self._new}
        self._new.clear()
        self._cancels += [ask_id for ask_id in self._questions.give_up() if ask_id not in unasked]
        self._claims.clear()

    def _close(self, open_ask: OpenAsk, answer: Answer, origin: Origin, now: float) -> list[Heard]:
        """An open ask has its answer, or will never have one."""
        if isinstance(answer, Failure):
            return self._close_failed(open_ask, answer, origin, now)
        heard = []
        for turn in open_ask.turns:
            source = origin if turn is open_ask.turns[0] else replace(origin, source=Source.SHARED)
            if now > turn.deadline:
                heard.append(self._failed(turn, self._budget.worker_late(turn), source, now))
            else:
                heard.append(Heard(turn=turn, answer=answer, origin=source, early=open_ask.early))
        # Not before: for those who are late, this is no answer.
        self._questions.keep(open_ask, answer, origin)
        return heard

    def _close_failed(self, open_ask: OpenAsk, failure: Failure, origin: Origin, now: float) -> list[Heard]:
        timed_out = failure.reason is Reason.WORKER_TIMEOUT
        if open_ask.early:
            return self._ask_again(open_ask, None if timed_out else failure, now)
        asker, *followers = open_ask.turns
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

    def _ask_again(self, early: OpenAsk, failure: Failure | None, now: float) -> list[Heard]:
        """An early ask has failed (None: its time ended) while turns followed it."""
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
        known = self._questions.known(turn.question)
        if known is not None:
            return Heard(turn=turn, answer=known.verdict, origin=known.use(), early=known.early)
        fallback = self._questions.fallback(turn.question)
        if fallback is None:
            return Heard(turn=turn, answer=failure, origin=origin)
        return Heard(turn=turn, answer=fallback.verdict, origin=fallback.origin_at(now), instead_of=failure)

    def _expire(self, open_ask: OpenAsk, now: float) -> list[Heard]:
        if open_ask.ask.deadline <= now:
            self._questions.take(open_ask.ask.id)
            if open_ask.ask.cancellable:
                self._cancels.append(open_ask.ask.id)
            if open_ask.early:
                return self._ask_again(open_ask, None, now)
            return self._close_failed(open_ask, self._budget.worker_late(open_ask.turns[0]), ASKED, now)
        late = [turn for turn in open_ask.turns if turn.deadline <= now]
        if not late:
            return []
        for turn in late:
            open_ask.turns.remove(turn)
        self._drop_unwanted(open_ask)
        return [self._failed(turn, self._budget.worker_late(turn), _SHARED, now) for turn in late]

    def _drop_unwanted(self, open_ask: OpenAsk) -> None:
        if not open_ask.wanted and self._questions.take(open_ask.ask.id) is not None:
            self._cancels.append(open_ask.ask.id)
