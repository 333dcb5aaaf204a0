"""The interface through which the driver makes calls: to the workers directly, or to a cache in front of them."""

from collections.abc import Callable
from typing import Protocol

from gateway.engine.answer_source import CALLED, Origin
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Verdict


class CallWaiter(Protocol):
    """Receives the answers to calls."""

    def answered(self, call: PolicyCall, answer: Answer, origin: Origin = CALLED) -> None:
        """The answer. Reported once, never inside ``call`` itself, and never after the call was cancelled."""

    def fallback(self, call: PolicyCall, verdict: Verdict, origin: Origin) -> None:
        """A stale verdict to use if the call fails. Reported at most once, before ``answered``, never inside
        ``call``.
        """


class PolicyCaller(Protocol):
    """Makes calls. An exception that it raises is an error of the gateway."""

    def known(self, call: PolicyCall) -> tuple[Verdict, Origin] | None:
        """The verdict, if this process has a fresh one."""

    def call(self, call: PolicyCall, waiter: CallWaiter) -> Callable[[], object]:
        """Start a call whose verdict is not known. The returned function cancels it."""

    def disagreed(self, call: PolicyCall, version: str) -> None:
        """The answer has another version than the call."""
