"""One call to a worker: made to one of its endpoints, and again to another one where that helps.

* An attempt that never left is made again, elsewhere or on a new connection.
* Where a connection breaks, another endpoint is called; if there is none, the same one, since it may be only the stream
  that broke, and another policy that broke it. Either way by a call of its own: if it was this call that broke the
  stream, it breaks no other one's.
* Where a worker says that it failed, another endpoint is called, within a budget: it may be the replica, or the
  document.

A call is sent twice at most, so that one that kills its worker does not go on to kill all of them. A policy with side
effects is sent once.
"""

from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol

import structlog
from msgspec import Struct

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Failure
from gateway.telemetry.labels import WorkerEvent
from gateway.transports.descriptions import Description
from gateway.transports.grpc.call_attempt import CallResult
from gateway.transports.grpc.connection import Connection
from gateway.transports.grpc.endpoint import Endpoint
from gateway.transports.grpc.failures import CLOCKS_SECONDS
from gateway.transports.grpc.retry_budget import RetryBudget
from gateway.transports.grpc.stream import ReviewStream
from gateway.transports.worker_channel import Answered

if TYPE_CHECKING:
    import asyncio

_LOG: Final = structlog.get_logger(__name__)

SENT: Final = 2
"""How often a call is sent at most."""

UNSENT: Final = 5
"""How often one that never left is tried again: connections of a worker that comes and goes."""

FAIR_SHARE: Final = 0.25
"""Of a policy's time: an endpoint that was given less is not to blame for being late. The API server often waits no
longer than a policy may take (10 s both, by default), so to be given somewhat less is the rule."""


class EndpointPicker(Protocol):
    """The worker that is called, as one call to it sees it."""

    retries: RetryBudget

    def pick(self, call: "RetryingCall", *, untried: bool = False) -> tuple[Endpoint, Connection] | None:
        """Who is called next; ``untried``: only one at which this call has not failed."""

    def put_or_wait(self, call: "RetryingCall") -> bool:
        """Make the call, or let it wait for a connection. Whether there is hope."""

    def has_other(self, call: "RetryingCall", endpoint: Endpoint) -> bool:
        """Whether another endpoint than this one may be called, and its circuit is closed."""

    def why_not(self, call: "RetryingCall") -> Failure:
        """Why it cannot be made."""

    def late(self) -> Failure:
        """The deadline is over."""

    def left(self, call: "RetryingCall") -> None:
        """It has its answer, or is not waited for any more."""

    def count(self, event: WorkerEvent, number: int = 1) -> None:
        """Something happened."""


class RetryingCall(Struct, eq=False):
    """One call, and its present attempt: what the connection answers to (see Attempt).

    ``fits`` are the descriptions of which a connection must have one to be called; None: any. ``tried`` are the
    endpoints at which it has failed. ``number`` is its id on the stream.
    """

    _endpoints: EndpointPicker
    call: PolicyCall
    _answered: Answered
    fits: frozenset[Description] | None
    tried: tuple[Endpoint, ...] = ()
    number: int = 0
    is_done: bool = False
    _sent: int = 0
    _unsent: int = 0
    _alone: bool = False
    # Of the attempt that is under way; None: there is none.
    _replica: Endpoint | None = None
    _connection: Connection | None = None
    _under_way: "asyncio.Task[None] | ReviewStream | None" = None
    _began: float = 0.0

    def put(self, endpoint: Endpoint, connection: Connection) -> None:
        """Make it over a connection."""
        self._began = now = monotonic()
        if endpoint.breakers:
            endpoint.entered(self.call.policy.qualified_name, now)
        self._replica, self._connection = endpoint, connection
        self._sent += 1
        self._under_way = connection.call(self, alone=self._alone)

    def answered(self, answer: Answer) -> None:
        """See Attempt."""
        if isinstance(answer, Failure):
            self.ended(answer, CallResult.SAID)
            return
        endpoint = self._over()
        if endpoint.breakers:
            endpoint.ended(self.call.policy.qualified_name, monotonic(), self._began, failed=False)
        self._finish(answer)

    def ended(self, failure: Failure, ending: CallResult) -> None:
        """See Attempt."""
        endpoint = self._over()
        self.tried = (*self.tried, endpoint)
        now = monotonic()
        self._record_failure(endpoint, ending, now)
        if ending is CallResult.UNSENT:
            self._sent -= 1
            self._unsent += 1
            failure = self._endpoints.late() if now >= self.call.deadline else self._endpoints.why_not(self)
        if now >= self.call.deadline or not self._again(endpoint, ending):
            self._finish(failure)

    def cancel(self) -> None:
        """It is not waited for any more."""
        if self.is_done:
            return
        self._let_go()
        self.is_done = True
        self._endpoints.left(self)

    def fail(self, failure: Failure) -> None:
        """There is no endpoint to call, or not any more."""
        if not self.is_done:
            self._let_go()
            self._finish(failure)

    # ------------------------------------------------------------------------------------------------- again

    def _again(self, endpoint: Endpoint, ending: CallResult) -> bool:
        """Make it again, if that may be. Whether it is."""
        endpoints, connection = self._endpoints, self._connection
        if ending is CallResult.UNSENT:
            return self._unsent <= UNSENT and endpoints.put_or_wait(self)
        if ending is CallResult.LATE or not self.call.cancellable or self._sent >= SENT:
            return False
        self._alone = self._alone or ending is CallResult.LOST
        place = endpoints.pick(self, untried=True)
        if ending is CallResult.SAID:
            if place is None or not endpoints.retries.spend():
                return False
            self.put(*place)
        elif place is not None:
            self.put(*place)
        elif connection is not None and connection.can_be_called:
            self.put(endpoint, connection)
        elif not endpoints.put_or_wait(self):
            return False
        endpoints.count(WorkerEvent.RETRY)
        return True

    def _record_failure(self, endpoint: Endpoint, ending: CallResult, now: float) -> None:
        """Tell the circuit breaker of an attempt that brought no verdict.

        Whether a failure that a worker said is the endpoint's or the document's, nobody can tell. It counts against the
        endpoint where another one may be called instead: so the last endpoint is called on, and it costs nobody time.
        """
        if ending is CallResult.SAID:
            failed = self._endpoints.has_other(self, endpoint)
        else:
            failed = ending is CallResult.LOST or (ending is CallResult.LATE and self._had_time(now))
        endpoint.ended(self.call.policy.qualified_name, now, self._began, failed=failed or None)

    def _had_time(self, now: float) -> bool:
        """Whether an attempt had a fair share of the policy's time, and all that the review had left, and was late."""
        deadline = self.call.deadline
        return now >= deadline - CLOCKS_SECONDS and deadline - self._began >= FAIR_SHARE * self.call.policy.timeout

    # --------------------------------------------------------------------------------------------------- end

    def _over(self) -> Endpoint:
        """The attempt is over; to whom it was made."""
        endpoint, self._replica, self._under_way = self._replica, None, None
        assert endpoint is not None  # noqa: S101 - a connection tells of an attempt that was made
        return endpoint

    def _let_go(self) -> None:
        """Break off the attempt, if there is one. A review gives up at its deadline: then the endpoint was late."""
        under_way = self._under_way
        if under_way is None:
            return
        endpoint = self._over()
        if isinstance(under_way, ReviewStream):
            under_way.cancel(self.number)
        else:
            under_way.cancel()
        self._record_failure(endpoint, CallResult.LATE, monotonic())

    def _finish(self, answer: Answer) -> None:
        self.is_done = True
        self._endpoints.left(self)
        try:
            self._answered(self.call, answer)
        except Exception:  # noqa: BLE001 - logged: one listener's mistake costs nobody else an answer
            _LOG.exception("telling an answer failed inside the gateway", uid=self.call.uid)
