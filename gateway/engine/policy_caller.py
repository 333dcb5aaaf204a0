"""How a call is carried out, as the driver sees it: by the workers themselves, or by a cache in front of them."""

from collections.abc import Callable
from typing import Protocol

from gateway.engine.origin import CALLED, Origin
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Verdict


class CallWaiter(Protocol):
    """Waits for the answers to calls."""

    def answered(self, call: PolicyCall, answer: Answer, origin: Origin = CALLED) -> None:
        """The answer. Told once, never inside ``call`` itself, and never after the call was cancelled."""

    def fallback(self, call: PolicyCall, verdict: Verdict, origin: Origin) -> None:
        """A stale verdict is at hand, should the call fail. Told at most once, before ``answered``; never inside
        ``call``.
        """


class PolicyCaller(Protocol):
    """Carries calls out. What it raises is a mistake of our own."""

    def known(self, call: PolicyCall) -> tuple[Verdict, Origin] | None:
        """The verdict, if it is at hand in this process and fresh."""

    def call(self, call: PolicyCall, waiter: CallWaiter) -> Callable[[], object]:
        """Find an answer that is not known; the result cancels."""

    def disagreed(self, call: PolicyCall, version: str) -> None:
        """The waiter was answered in another version than the call's."""
