"""One ask to a worker: put to one of its replicas, and to another one where that helps.

* An attempt that never left is made again, elsewhere or on a new connection.
* Where a connection breaks, another replica is asked; if there is none, the same one, since it may be only the stream
  that broke, and another policy that broke it. Either way by a call of its own: if it was this ask that broke the
  stream, it breaks nobody else's.
* Where a worker says that it failed, another replica is asked, within a budget: it may be the replica, or the document.
* Where the answer is late, another replica is asked as well, within a budget, and the first verdict counts.

An ask is sent twice at most, so that one that kills its worker does not go on to kill all of them. A policy with side
effects is sent once.
"""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Final

import structlog

from gateway.deciding.steps import Ask
from gateway.deciding.verdicts import Answer, Failure
from gateway.transports.descriptions import Description
from gateway.transports.events import WorkerEvent
from gateway.transports.grpc.attempts import Ending
from gateway.transports.grpc.breaker import Call
from gateway.transports.grpc.connection import Connection
from gateway.transports.grpc.replica import Replica

if TYPE_CHECKING:
    from gateway.transports.grpc.worker import GrpcWorker

_LOG: Final = structlog.get_logger(__name__)

SENT: Final = 2
"""How often an ask is sent at most."""

UNSENT: Final = 5
"""How often one that never left is tried again: connections of a worker that comes and goes."""

FAIR_SHARE: Final = 0.25
"""Of a policy's time: whoever was given less is not to blame for being late. The API server often waits no longer than
a policy may take (10 s both, by default), so to be given somewhat less is the rule."""

_ENDINGS: Final = {Ending.UNSENT: None, Ending.LOST: Call.LOST, Ending.SAID: Call.FAILED, Ending.LATE: None}


class Try:
    """One attempt."""

    __slots__ = ("_asking", "ask", "began", "cancel", "connection", "is_hedge", "replica")

    def __init__(self, asking: "Asking", replica: Replica, connection: Connection, began: float) -> None:
        self._asking = asking
        self.ask = asking.ask
        self.replica = replica
        self.connection = connection
        self.began = began
        self.is_hedge = False
        self.cancel: Callable[[], object] = lambda: None

    def answered(self, answer: Answer) -> None:
        """See Attempt."""
        if isinstance(answer, Failure):
            self._asking.failed(self, answer, Ending.SAID)
        else:
            self._asking.judged(self, answer)

    def ended(self, failure: Failure, ending: Ending) -> None:
        """See Attempt."""
        self._asking.failed(self, failure, ending)


class Asking:
    """One ask.

    Args:
        worker: who is asked.
        ask: the question.
        answered: called once with the answer, unless it is cancelled.
        fits: descriptions of which a connection must have one to be asked; None: any.
    """

    __slots__ = (
        "_alarm",
        "_alone",
        "_answered",
        "_done",
        "_sent",
        "_tries",
        "_unsent",
        "_worker",
        "ask",
        "fits",
        "tried",
    )

    def __init__(
        self,
        worker: "GrpcWorker",
        ask: Ask,
        answered: Callable[[Answer], None],
        fits: frozenset[Description] | None,
    ) -> None:
        self._worker = worker
        self._answered = answered
        self.ask = ask
        self.fits = fits
        self.tried: tuple[Replica, ...] = ()
        self._tries: list[Try] = []
        self._sent = 0
        self._unsent = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._done = False
        self._alone = False

    @property
    def is_done(self) -> bool:
        """Whether it has its answer, or nobody waits for it."""
        return self._done

    def put(self, replica: Replica, connection: Connection, *, hedge: bool = False) -> None:
        """Put it to a connection."""
        now = monotonic()
        attempt = Try(self, replica, connection, now)
        attempt.is_hedge = hedge
        if not replica.is_untroubled:
            replica.entered(self.ask.policy.qualified_name, now)
        self._tries.append(attempt)
        self.tried = (*self.tried, replica)
        self._sent += 1
        attempt.cancel = connection.ask(attempt, alone=self._alone)
        if self._sent == 1 and self.ask.cancellable and self._alarm is None and not self._worker.is_single:
            delay = self._worker.chances.hedge_after(self.ask.policy.qualified_name)
            if delay is not None and now + delay < self.ask.deadline:
                self._alarm = asyncio.get_running_loop().call_later(delay, self._hedge)

    def judged(self, attempt: Try, answer: Answer) -> None:
        """An attempt has brought a verdict."""
        self._tries.remove(attempt)
        now = monotonic()
        slow = self._is_slow(attempt, now)
        if slow or not attempt.replica.is_untroubled:
            self._tell_ended(attempt, Call.SLOW if slow else Call.SUCCEEDED, now)
        if not self._worker.is_single:
            self._worker.chances.took(self.ask.policy.qualified_name, now - attempt.began)
        if attempt.is_hedge:
            self._worker.count(WorkerEvent.HEDGE_WON)
        self._finish(answer)

    def failed(self, attempt: Try, failure: Failure, ending: Ending) -> None:
        """An attempt has brought none."""
        self._tries.remove(attempt)
        now = monotonic()
        call = _ENDINGS[ending]
        if ending is Ending.LATE and self._is_slow(attempt, now):
            call = Call.SLOW
        self._tell_ended(attempt, call, now)
        if ending is Ending.UNSENT:
            self._sent -= 1
            self._unsent += 1
        if self._done or self._tries:
            return  # another attempt may still bring a verdict
        if ending is Ending.UNSENT:
            failure = self._worker.late() if now >= self.ask.deadline else self._worker.why_not(self)
        if now >= self.ask.deadline or not self._again(attempt, ending):
            self.fail(failure)

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        if self._done:
            return
        self._rest()
        self._let_go()
        self._worker.left(self)

    def fail(self, failure: Failure) -> None:
        """There is nobody to ask, or not any more."""
        self._finish(failure)

    # ------------------------------------------------------------------------------------------------- again

    def _again(self, attempt: Try, ending: Ending) -> bool:
        """Ask again, if that may be. Whether it is."""
        worker = self._worker
        if ending is Ending.UNSENT:
            return self._unsent <= UNSENT and worker.put_or_wait(self)
        if ending is Ending.LATE or not self.ask.cancellable or self._sent >= SENT:
            return False
        self._alone = self._alone or ending is Ending.LOST
        place = worker.pick(self, untried=True)
        if ending is Ending.SAID:
            if place is None or not worker.chances.may_retry():
                return False
            self.put(*place)
        elif place is not None:
            self.put(*place)
        elif attempt.connection.can_be_asked:
            self.put(attempt.replica, attempt.connection)
        elif not worker.put_or_wait(self):
            return False
        worker.count(WorkerEvent.RETRY)
        return True

    def _hedge(self) -> None:
        self._alarm = None
        if self._done or self._sent >= SENT or not self._tries:
            return
        place = self._worker.pick(self, untried=True)
        if place is not None and self._worker.chances.may_hedge():
            self._worker.count(WorkerEvent.HEDGE)
            self.put(*place, hedge=True)

    # --------------------------------------------------------------------------------------------------- end

    def _is_slow(self, attempt: Try, now: float) -> bool:
        """Whether it took all of its time. A review that had little time left says nothing of the worker."""
        whole = self.ask.policy.timeout
        given = min(whole, self.ask.deadline - attempt.began)
        return given >= FAIR_SHARE * whole and now - attempt.began >= self._worker.slow_share * given

    def _let_go(self) -> None:
        """Cancel what is still open."""
        now = monotonic()
        for attempt in self._tries:
            attempt.cancel()
            self._tell_ended(attempt, Call.SLOW if self._is_slow(attempt, now) else None, now)
        self._tries.clear()

    def _tell_ended(self, attempt: Try, call: Call | None, now: float) -> None:
        attempt.replica.ended(self.ask.policy.qualified_name, call, now, attempt.began)

    def _finish(self, answer: Answer) -> None:
        if self._done:
            return
        self._rest()
        if self._tries:
            self._let_go()
        self._worker.left(self)
        try:
            self._answered(answer)
        except Exception:  # noqa: BLE001 - logged: one listener's mistake costs nobody else an answer
            _LOG.exception("telling an answer failed inside the gateway", uid=self.ask.uid)

    def _rest(self) -> None:
        self._done = True
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
