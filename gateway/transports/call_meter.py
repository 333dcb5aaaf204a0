"""Bounds and measures the calls of one worker, the same for all transports: how many are open, how they end, how long
they take.

A call ends with its answer; a failure of the transport is one too. If no review waits any more, the call is cancelled:
at its deadline, then it counts as a failure, which took all of its time, or before.

    ==========================================================  =================
    a call ends                                                 it has a duration
    ==========================================================  =================
    with what its worker answered, a failure too                yes
    because its time is over                                    yes
    because no worker could be called, or its connection ended  no
    because no review waits any more, before its time is over   no
    ==========================================================  =================

Else a worker that is away would look faster than it ever was: those calls fail within a millisecond.
"""

from collections.abc import Callable
from time import monotonic
from typing import Final

import structlog

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import ANSWER_WORDS, Answer, Failure
from gateway.reasons import Reason
from gateway.telemetry.events import SAMPLED, Events
from gateway.telemetry.labels import Transport
from gateway.telemetry.table import (
    CALL_RESULTS,
    CANCELED,
    FAILURE,
    POLICY_CALL_SECONDS,
    WORKER_CALL_SECONDS,
    WORKER_CALLS,
    WORKER_CALLS_IN_FLIGHT,
)
from gateway.transports.answer_bounds import AnswerBounds
from gateway.transports.call_limit import CallLimit
from gateway.transports.descriptions import Description
from gateway.transports.in_flight import tenant_of
from gateway.transports.limits import TransportLimits
from gateway.transports.worker_channel import Answered, WorkerChannel

_LOG: Final = structlog.get_logger(__name__)

_OF_THE_WORKER: Final = frozenset(
    {Reason.WORKER_TIMEOUT, Reason.WORKER_FAILURE, Reason.INVALID_RESPONSE, Reason.INVALID_SETTINGS}
)
"""The reasons of failures that have a duration. All others are the gateway's, or the transport's."""


def _nothing() -> None:
    """What cancels a call that has ended."""


class CallMeter:
    """Calls a worker, and bounds and measures the calls.

    Args:
        channel: to the worker.
        transport: that of the channel.
        events: receives what is measured.
        word: the verdict of an answer, for the metric.
        bounds: of the answers of all workers; None: answers are passed on as they are.
        limits: how many calls may be open; None: the defaults.
    """

    def __init__(
        self,
        channel: WorkerChannel,
        transport: Transport,
        events: Events,
        word: Callable[[Answer], str] = lambda answer: ANSWER_WORDS[type(answer)],
        bounds: AnswerBounds | None = None,
        limits: TransportLimits | None = None,
    ) -> None:
        self.bounds = bounds
        labels = channel.name, transport
        self._channel = channel
        self._limit = CallLimit(channel.name, limits or TransportLimits(), events)
        self._events = events
        self._word = word
        # Not looked up for each call: that took longer than all else here.
        self._results = {result: events.series(WORKER_CALLS, *labels, result) for result in CALL_RESULTS}
        self._seconds = events.series(WORKER_CALL_SECONDS, *labels)
        self._in_flight = events.series(WORKER_CALLS_IN_FLIGHT, *labels)

    def call(
        self,
        call: PolicyCall,
        answered: Answered,
        fits: frozenset[Description] | None = None,
        *,
        of_policy: bool = True,
    ) -> Callable[[], object]:
        """See WorkerChannel. ``of_policy``: whether the policy itself is called, and not its shadow."""
        metered = _MeteredCall(self, call, answered, of_policy)
        metered.has_place = self._limit.take(metered.tenant)
        if metered.has_place:
            try:
                metered.stop = self._channel.call(call, metered.answered, fits)
            except BaseException:
                self._limit.give_back(metered.tenant)
                raise
        else:
            metered.stop = self._limit.wait(
                call, lambda: self._send(metered, fits), lambda failure: metered.answered(call, failure)
            )
        self._in_flight.value += 1
        return metered.cancel

    def _send(self, metered: "_MeteredCall", fits: frozenset[Description] | None) -> None:
        """Send a call that has waited, and has its place now. Raises nothing: others wait behind it."""
        metered.has_place, call, name = True, metered.call, self._channel.name
        try:
            metered.stop = self._channel.call(call, metered.answered, fits)
        except Exception as error:  # noqa: BLE001 - logged; the call fails
            _LOG.exception("calling a worker failed inside the gateway", worker=name, uid=call.uid)
            message = f"calling worker {name!r}: {type(error).__name__}; see the gateway's log"
            metered.answered(call, Failure(reason=Reason.INTERNAL, message=message))

    def ended(self, metered: "_MeteredCall", answer: Answer | None) -> None:
        """A call has ended: by an answer, or, without one, because it was cancelled."""
        now = monotonic()
        call = metered.call
        self._in_flight.value -= 1
        if metered.has_place:
            goes_on = answer is None and not call.cancellable  # it has side effects
            self._limit.give_back(metered.tenant, call.deadline - now if goes_on else 0.0)
        if answer is not None:
            self._results[self._word(answer)].value += 1
            if isinstance(answer, Failure) and answer.reason not in _OF_THE_WORKER:
                return
        elif now < call.deadline:
            self._results[CANCELED].value += 1
            return
        else:
            self._results[FAILURE].value += 1
        seconds = now - metered.started
        trace_id = call.traceparent[3:35] if call.traceparent.endswith(SAMPLED) else ""
        self._seconds.observe(seconds, trace_id)
        if metered.of_policy:
            policy = call.policy
            self._events.observe(POLICY_CALL_SECONDS, seconds, policy.phase, policy.qualified_name, trace_id=trace_id)


class _MeteredCall:
    """One call. ``stop`` cancels it at the worker, or ends its wait for a place."""

    __slots__ = (
        "__weakref__",
        "_answered",
        "_is_open",
        "_meter",
        "call",
        "has_place",
        "of_policy",
        "started",
        "stop",
        "tenant",
    )

    has_place: bool
    stop: Callable[[], object]

    def __init__(self, meter: CallMeter, call: PolicyCall, answered: Answered, of_policy: bool) -> None:  # noqa: FBT001
        self._meter = meter
        self._answered = answered
        self._is_open = True
        self.call = call
        self.tenant = tenant_of(call)
        self.of_policy = of_policy
        self.started = monotonic()

    def answered(self, call: PolicyCall, answer: Answer) -> None:
        """The worker has answered, or the transport has failed."""
        if self._is_open:
            self._is_open = False
            if self._meter.bounds is not None:
                answer = self._meter.bounds.bounded(call, answer)
            # It leads back here: without this, only the garbage collector would free the call and its document.
            self.stop = _nothing
            self._meter.ended(self, answer)
        try:
            self._answered(call, answer)
        except Exception:  # noqa: BLE001 - logged: an error in one listener must not affect other calls
            _LOG.exception("delivering an answer failed inside the gateway", uid=call.uid)

    def cancel(self) -> None:
        """No review waits for the answer."""
        if self._is_open:
            self._is_open = False
            stop, self.stop = self.stop, _nothing
            self._meter.ended(self, None)
            stop()
