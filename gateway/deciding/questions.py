"""The questions of one review: which are open, who waits for them, and the memo of those that have their verdict.

A question is (worker, policy, settings, document): equal questions have equal verdicts. The document stands in it by
its digest, so that the memo of a long chain holds no documents. ``cache`` is part of it as well: what another review
was told may be an answer to one policy, and none, or too old, for another that must not have it. None is the question
of a policy with side effects: it is never shared, never kept, never asked early, never cancelled.

Beside the verdicts of the memo stand the fallbacks: verdicts past their time, which count only where asking has failed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from gateway.deciding.origin import Origin, Source
from gateway.deciding.plan import Member
from gateway.deciding.steps import Ask
from gateway.deciding.verdicts import Failure, Verdict
from gateway.documents.document import Document
from gateway.policies.model import Cache

Question = tuple[str, str, bytes, Cache | None, bytes]


@dataclass(slots=True, eq=False)
class Turn:
    """A policy's turn that has begun and is not settled. Times are seconds on the driver's clock.

    ``asked`` is when its question was put, or when it began to follow an ask that was open. ``failure`` is what that
    ask came to, if the turn has asked again since: it counts if nothing better comes until ``deadline``.
    """

    member: Member
    index: int
    round: int
    started: float
    deadline: float
    document: Document | None = None
    question: Question | None = None
    asked: float = 0.0
    failure: Failure | None = None


@dataclass(slots=True, eq=False)
class OpenAsk:
    """An ask without an answer, and the turns that wait for it: first the one that asked, then those that follow it.

    ``early``: nobody's turn had come when it was asked; all of ``turns`` follow. ``claims`` are the places in the plan
    of those for whom it was asked and whose turn is still to come.
    """

    ask: Ask
    question: Question | None
    asked: float
    turns: list[Turn] = field(default_factory=list)
    early: bool = False
    claims: set[int] = field(default_factory=set)

    @property
    def wanted(self) -> bool:
        """Whether anybody waits for it, or still may."""
        return bool(self.turns or self.claims)


@dataclass(slots=True, eq=False)
class Known:
    """A verdict of the memo. ``used``: a turn has had it; what comes after that has it from the memo."""

    verdict: Verdict
    origin: Origin
    early: bool
    used: bool

    def use(self) -> Origin:
        """Where the next turn to use it has it from."""
        origin = replace(self.origin, source=Source.MEMO) if self.used else self.origin
        self.used = True
        return origin


@dataclass(frozen=True, kw_only=True, slots=True)
class Fallback:
    """A stale verdict, and when it was at hand: ``origin.age`` counts until then."""

    verdict: Verdict
    origin: Origin
    told: float

    def origin_at(self, now: float) -> Origin:
        """Where it comes from, as old as it is now."""
        return Origin(source=Source.STALE, age=self.origin.age + max(now - self.told, 0.0))


class Questions:
    """Keeps questions apart, and equal ones together."""

    def __init__(self) -> None:
        self._asks: dict[int, OpenAsk] = {}
        self._shared: dict[Question, OpenAsk] = {}
        self._memo: dict[Question, Known] = {}
        self._fallbacks: dict[Question, Fallback] = {}

    def __iter__(self) -> Iterator[OpenAsk]:
        """The open asks, as they are at this moment."""
        return iter(list(self._asks.values()))

    def known(self, question: Question | None) -> Known | None:
        """The verdict that this question has had in this review."""
        return None if question is None else self._memo.get(question)

    def shared(self, question: Question | None) -> OpenAsk | None:
        """The ask in which the same question is open."""
        return None if question is None else self._shared.get(question)

    def open(self, open_ask: OpenAsk) -> None:
        """Remember an ask."""
        self._asks[open_ask.ask.id] = open_ask
        if open_ask.question is not None:
            self._shared[open_ask.question] = open_ask

    def take(self, ask_id: int) -> OpenAsk | None:
        """The open ask of this id, which is not open any more; None if it was given up before."""
        open_ask = self._asks.pop(ask_id, None)
        question = None if open_ask is None else open_ask.question
        if question is not None and self._shared.get(question) is open_ask:
            del self._shared[question]
        return open_ask

    def keep(self, open_ask: OpenAsk, verdict: Verdict, origin: Origin) -> None:
        """Remember a verdict, which the turns that waited for it have had."""
        if open_ask.question is not None:
            used = bool(open_ask.turns)
            known = Known(verdict=verdict, origin=origin, early=open_ask.early, used=used)
            self._memo[open_ask.question] = known

    def fall_back(self, ask_id: int, fallback: Fallback) -> None:
        """Remember a stale verdict for the question of this ask; an ask that was given up is nobody's."""
        open_ask = self._asks.get(ask_id)
        if open_ask is not None and open_ask.question is not None:
            self._fallbacks[open_ask.question] = fallback

    def fallback(self, question: Question | None) -> Fallback | None:
        """What stands in for the verdict, should asking fail."""
        return None if question is None else self._fallbacks.get(question)

    def give_up(self) -> list[int]:
        """Forget all open asks; the ids of those that can be cancelled."""
        cancellable = [open_ask.ask.id for open_ask in self if open_ask.ask.cancellable]
        self._asks.clear()
        self._shared.clear()
        return cancellable
