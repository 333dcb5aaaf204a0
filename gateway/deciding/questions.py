"""The questions of one review: which are open, who waits for them, and the memo of those that have their verdict.

A question is (worker, policy, settings, document): equal questions have equal verdicts. The document stands in it by
its digest, so that the memo of a long chain holds no documents. None is the question of a policy with side effects: it
is never shared, never kept, never cancelled.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.deciding.plan import Member
from gateway.deciding.steps import Ask
from gateway.deciding.verdicts import Verdict
from gateway.documents import Document

Question = tuple[str, str, bytes, bytes]


@dataclass(slots=True, eq=False)
class Turn:
    """A policy's turn that has begun and is not settled. Times are seconds on the driver's clock."""

    member: Member
    index: int
    round: int
    started: float
    deadline: float
    document: Document | None = None


@dataclass(slots=True, eq=False)
class OpenAsk:
    """An ask without an answer, and the turns that wait for it: first the one that asked, then those that follow it."""

    ask: Ask
    question: Question | None
    turns: list[Turn] = field(default_factory=list)


class Questions:
    """Keeps questions apart, and equal ones together."""

    def __init__(self) -> None:
        self._asks: dict[int, OpenAsk] = {}
        self._shared: dict[Question, OpenAsk] = {}
        self._memo: dict[Question, Verdict] = {}

    def __iter__(self) -> Iterator[OpenAsk]:
        """The open asks, as they are at this moment."""
        return iter(list(self._asks.values()))

    def known(self, question: Question | None) -> Verdict | None:
        """The verdict that this question has had in this review."""
        return None if question is None else self._memo.get(question)

    def follow(self, question: Question | None, turn: Turn) -> bool:
        """Let ``turn`` wait for the same question, if it is open; False if it is not."""
        open_ask = None if question is None else self._shared.get(question)
        if open_ask is None:
            return False
        open_ask.turns.append(turn)
        return True

    def open(self, ask: Ask, question: Question | None, turn: Turn) -> None:
        """Remember that ``turn`` has asked."""
        open_ask = OpenAsk(ask=ask, question=question, turns=[turn])
        self._asks[ask.id] = open_ask
        if question is not None:
            self._shared[question] = open_ask

    def take(self, ask_id: int) -> OpenAsk | None:
        """The open ask of this id, which is not open any more; None if it was given up before."""
        open_ask = self._asks.pop(ask_id, None)
        question = None if open_ask is None else open_ask.question
        if question is not None and self._shared.get(question) is open_ask:
            del self._shared[question]
        return open_ask

    def keep(self, question: Question | None, verdict: Verdict) -> None:
        """Remember a verdict."""
        if question is not None:
            self._memo[question] = verdict

    def give_up(self) -> list[int]:
        """Forget all open asks; the ids of those that can be cancelled."""
        cancellable = [open_ask.ask.id for open_ask in self if open_ask.ask.cancellable]
        self._asks.clear()
        self._shared.clear()
        return cancellable
