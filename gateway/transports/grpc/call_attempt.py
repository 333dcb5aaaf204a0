"""One attempt of a call, on one connection.

The result of an attempt without a verdict decides whether the call is retried:

=======  ==========================================================  ==========================================
result   what happened                                               retried
=======  ==========================================================  ==========================================
UNSENT   the call was not sent                                       always
LOST     the connection or the stream broke; the outcome is unknown  without side effects
FAILED   the worker answered without a verdict                       without side effects, within the retry budget
LATE     the deadline has passed                                     never: no time is left
=======  ==========================================================  ==========================================
"""

from enum import Enum
from typing import Protocol

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Failure


class CallResult(Enum):
    """The result of an attempt without a verdict."""

    UNSENT = 0
    LOST = 1
    FAILED = 2
    LATE = 3


class CallAttempt(Protocol):
    """Waits for the answer on one connection. One of its methods is called, once, unless it was cancelled before."""

    call: PolicyCall
    number: int
    """Its id on the stream, if it uses one; set by the connection."""

    def answered(self, answer: Answer) -> None:
        """The worker's answer; it may be a Failure."""

    def ended(self, failure: Failure, result: CallResult) -> None:
        """There is no answer."""
