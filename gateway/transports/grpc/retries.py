"""One call to a worker, and its attempts:

* If the call was not sent, it is retried on any endpoint or on a new connection.
* If the connection or stream breaks, the call is retried on another endpoint; if there is none, on the same one,
  because the call of another policy may have broken the stream. The retry is a unary call: if this call broke the
  stream, it must not break another one.
* If the worker returns a failure, the call is retried on another endpoint, within the retry budget: the cause may be
  the replica or the document.

A call is sent twice at most, so that a call that crashes its worker does not crash all replicas. A policy with side
effects is sent once.
"""

import asyncio
from time import monotonic
from typing import Final, Protocol

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
from gateway.transports.in_flight import InFlight
from gateway.transports.loop_lag import LoopLag
from gateway.transports.worker_channel import Answered

MAX_SENT: Final = 2
"""The maximum number of attempts that are sent."""

MAX_UNSENT: Final = 5
"""The maximum number of retries of a call that was not sent, because connections broke before."""

SAME_CONNECTION_SECONDS: Final = 0.05
"""The pause before a lost call is retried on the same connection. The stream may end some milliseconds before gRPC
reports that the whole connection is lost: in one of five kills of a worker, on a busy machine."""

WHOLE_SHARE: Final = 0.9
"""The share of a policy's timeout that an attempt must have had, without delays of the gateway's event loop, for a
timeout to count as the endpoint's failure. An entry is registered with a second more than its policies may take, but
with 30 s at most, which leaves a policy of 30 s some 28.9 s."""


class EndpointPicker(Protocol):
    """The worker, as seen by one of its calls."""

    retries: RetryBudget
    lag: LoopLag

    def pick(self, call: "RetryingCall", *, untried: bool = False) -> tuple[Endpoint, Connection] | None:
        """The endpoint and connection of the next attempt; ``untried``: only endpoints where it has not failed yet."""

    def send_or_wait(self, call: "RetryingCall") -> bool:
        """Send the call, or let it wait for a connection. Returns False if neither is possible."""

    def failure_of(self, call: "RetryingCall") -> Failure:
        """The failure of a call that cannot be sent."""

    def late(self) -> Failure:
        """The failure of a call whose deadline has passed."""

    def finished(self, call: "RetryingCall") -> None:
        """The call has its answer, or is cancelled."""

    def count(self, event: WorkerEvent, number: int = 1) -> None:
        """Count an event of the worker."""


class RetryingCall(Struct, eq=False):
    """One call, and its current attempt (a CallAttempt).

    ``fits`` are the descriptions of which a connection must have one to be called; None: any. ``tried`` are the
    endpoints at which it has failed. ``number`` is its id on the stream. ``waits_in`` counts it while it is open, if
    it was sent although the circuits of all endpoints were open.
    """

    _endpoints: EndpointPicker
    call: PolicyCall
    _answered: Answered
    fits: frozenset[Description] | None
    tried: tuple[Endpoint, ...] = ()
    number: int = 0
    is_done: bool = False
    waits_in: InFlight | None = None
    _sent: int = 0
    _unsent: int = 0
    _unary: bool = False
    # Of the current attempt; None: there is none.
    _endpoint: Endpoint | None = None
    _connection: Connection | None = None
    _attempt: asyncio.Task[None] | ReviewStream | None = None
    _began: float = 0.0
    _lag: float = 0.0
    # Endpoints that gave no verdict for its document, which another one may give.
    _suspects: tuple[Endpoint, ...] = ()

    @property
    def is_retry(self) -> bool:
        """Whether it has been sent before."""
        return self._sent + self._unsent > 0

    def send(self, endpoint: Endpoint, connection: Connection) -> None:
        """Send it over a connection."""
        self._began, self._lag = monotonic(), self._endpoints.lag.seconds
        self._endpoint, self._connection = endpoint, connection
        self._sent += 1
        self._attempt = connection.call(self, unary=self._unary)

    def answered(self, answer: Answer) -> None:
        """See CallAttempt."""
        if isinstance(answer, Failure):
            self.ended(answer, CallResult.FAILED)
            return
        endpoint = self._end_attempt()
        now, policy = monotonic(), self.call.policy.qualified_name
        endpoint.breaker(policy).answered(now, self._began)
        for suspect in self._suspects:
            if suspect is not endpoint:
                suspect.breaker(policy).failed(now)
        self._close()
        self._answered(self.call, answer)

    def ended(self, failure: Failure, result: CallResult) -> None:
        """See CallAttempt."""
        endpoint = self._end_attempt()
        self.tried = (*self.tried, endpoint)
        now = monotonic()
        self._record_failure(endpoint, result, now)
        if result is CallResult.UNSENT:
            self._sent -= 1
            self._unsent += 1
            failure = self._endpoints.late() if now >= self.call.deadline else self._endpoints.failure_of(self)
        if now >= self.call.deadline or not self._retry(endpoint, result):
            self._close()
            self._answered(self.call, failure)

    def cancel(self) -> None:
        """Stop the call; its answer is not needed any more."""
        if self.is_done:
            return
        self._cancel_attempt()
        self._close()

    def fail(self, failure: Failure) -> None:
        """End the call with a failure, unless it has ended."""
        if not self.is_done:
            self._cancel_attempt()
            self._close()
            self._answered(self.call, failure)

    # ----------------------------------------------------------------------------------------------- retries

    def _retry(self, endpoint: Endpoint, result: CallResult) -> bool:
        """Retry the call, if that is allowed and possible. Returns whether it is retried."""
        endpoints, connection = self._endpoints, self._connection
        if result is CallResult.UNSENT:
            return self._unsent <= MAX_UNSENT and endpoints.send_or_wait(self)
        if result is CallResult.LATE or not self.call.cancellable or self._sent >= MAX_SENT:
            return False
        self._unary = self._unary or result is CallResult.LOST
        picked = endpoints.pick(self, untried=True)
        if result is CallResult.FAILED:
            is_judged_there = picked is not None and self.call.policy.qualified_name not in picked[0].open_circuits
            if picked is None or not is_judged_there or not endpoints.retries.spend():
                return False
            self.send(*picked)
        elif picked is not None:
            self.send(*picked)
        elif connection is not None and connection.can_be_called:
            asyncio.get_running_loop().call_later(SAME_CONNECTION_SECONDS, self._send_again, endpoint, connection)
        elif not endpoints.send_or_wait(self):
            return False
        endpoints.count(WorkerEvent.RETRY)
        return True

    def _send_again(self, endpoint: Endpoint, connection: Connection) -> None:
        """Retry the call on the connection on which it was lost, unless that is lost too."""
        if self.is_done:
            return
        if connection.can_be_called and not connection.find_loss():
            self.send(endpoint, connection)
        elif not self._endpoints.send_or_wait(self):
            self.fail(self._endpoints.failure_of(self))

    def _record_failure(self, endpoint: Endpoint, result: CallResult, now: float) -> None:
        """Report an attempt without a verdict to the circuit breaker.

        A lost attempt and a failure that the worker returns may be caused by the endpoint or by the document. They
        count against the endpoint if another one then judges the same document.
        """
        if result is CallResult.LATE:
            if self._had_whole_time(now):
                endpoint.breaker(self.call.policy.qualified_name).late(now, self._began)
            return
        if result is CallResult.FAILED:
            endpoint.breaker(self.call.policy.qualified_name).responded(now)
        if result is not CallResult.UNSENT:
            self._suspects = (*self._suspects, endpoint)

    def _had_whole_time(self, now: float) -> bool:
        """Whether the endpoint had the policy's whole timeout: the client, the budget and the gateway took none."""
        deadline = self.call.deadline
        if now < deadline - CLOCKS_SECONDS:
            return False
        lag = self._endpoints.lag.seconds - self._lag
        return deadline - self._began - lag >= WHOLE_SHARE * self.call.policy.timeout

    # --------------------------------------------------------------------------------------------------- end

    def _end_attempt(self) -> Endpoint:
        """The attempt is over. Returns its endpoint."""
        endpoint, self._endpoint, self._attempt = self._endpoint, None, None
        assert endpoint is not None  # noqa: S101 - a connection reports only attempts that were sent
        return endpoint

    def _cancel_attempt(self) -> None:
        """Cancel the attempt, if there is one. A review is cancelled at its deadline: then the endpoint was late."""
        attempt = self._attempt
        if attempt is None:
            return
        endpoint = self._end_attempt()
        if isinstance(attempt, ReviewStream):
            attempt.cancel(self.number)
        else:
            attempt.cancel()
        self._record_failure(endpoint, CallResult.LATE, monotonic())

    def _close(self) -> None:
        self.is_done = True
        self._endpoints.finished(self)
