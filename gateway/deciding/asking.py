"""How an ask is carried out, as the driver sees it: by the workers themselves, or by a cache in front of them."""

from collections.abc import Callable
from typing import Protocol

from gateway.deciding.origin import ASKED, Origin
from gateway.deciding.steps import Ask
from gateway.deciding.verdicts import Answer, Verdict


class Reply(Protocol):
    """Who waits for the answer to one ask."""

    def answered(self, answer: Answer, origin: Origin = ASKED) -> None:
        """The answer. Called once, never inside ``ask`` itself, and never after the ask was cancelled."""

    def fallback(self, verdict: Verdict, origin: Origin) -> None:
        """A stale verdict is at hand, should the ask fail. At most once, before ``answered``; never inside ``ask``."""


class Asker(Protocol):
    """Carries asks out. What it raises is a mistake of our own."""

    def known(self, ask: Ask) -> tuple[Verdict, Origin] | None:
        """The verdict, if it is at hand in this process and fresh."""

    def ask(self, ask: Ask, reply: Reply) -> Callable[[], object]:
        """Find an answer that is not known; the result cancels."""
