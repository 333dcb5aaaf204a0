"""One call put to one connection: what a stream or a call has to answer to.

How an attempt can end besides with an answer decides what may be done next:

=======  ==========================================================  ==========================================
ending   what happened                                               the call may be put to another one
=======  ==========================================================  ==========================================
UNSENT   it never left                                               always
LOST     the connection or the stream broke; nobody knows            without side effects
SAID     the worker answered, and it is no verdict                   without side effects, within a budget
LATE     its deadline is over                                        never: no time is left
=======  ==========================================================  ==========================================
"""

from enum import Enum
from typing import Protocol

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Failure


class CallResult(Enum):
    """How an attempt ended that brought no verdict."""

    UNSENT = 0
    LOST = 1
    SAID = 2
    LATE = 3


class CallAttempt(Protocol):
    """Waits for the answer of one connection. One of its methods is called, once, unless it was cancelled before."""

    call: PolicyCall
    number: int
    """Its id on the stream, if it is made on one; the connection writes it down."""

    def answered(self, answer: Answer) -> None:
        """The worker's answer, if only that it failed."""

    def ended(self, failure: Failure, ending: CallResult) -> None:
        """There is no answer."""
