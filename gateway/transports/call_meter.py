"""Measures the calls of one worker, the same for all transports: how many are open, how they end, how long they take.

A call ends with its answer; a failure of the transport is one too. If no review waits any more, the call is cancelled:
at its deadline, then it counts as a failure, which took all of its time, or before, then its duration says nothing.
"""

from collections.abc import Callable
from time import monotonic

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import ANSWER_WORDS, Answer
from gateway.telemetry.events import Events, sampled_trace_id
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
from gateway.transports.descriptions import Description
from gateway.transports.worker_channel import Answered, WorkerChannel


class CallMeter:
    """Calls a worker, and measures the calls.

    Args:
        channel: to the worker.
        transport: that of the channel.
        events: receives what is measured.
        word: the verdict of an answer, for the metric.
    """

    def __init__(
        self,
        channel: WorkerChannel,
        transport: Transport,
        events: Events,
        word: Callable[[Answer], str] = lambda answer: ANSWER_WORDS[type(answer)],
    ) -> None:
        self._channel = channel
        self._events = events
        self._labels = channel.name, transport
        self._word = word
        for result in CALL_RESULTS:
            events.count(WORKER_CALLS, *self._labels, result, amount=0)
        events.count(WORKER_CALLS_IN_FLIGHT, *self._labels, amount=0)

    def call(
        self,
        call: PolicyCall,
        answered: Answered,
        fits: frozenset[Description] | None = None,
        *,
        of_policy: bool = True,
    ) -> Callable[[], object]:
        """See WorkerChannel. ``of_policy``: whether the policy itself is called, and not its shadow."""
        metered = _MeteredCall(self, call, answered, of_policy=of_policy)
        metered.stop = self._channel.call(call, metered.answered, fits)
        self._events.count(WORKER_CALLS_IN_FLIGHT, *self._labels)
        return metered.cancel

    def ended(self, metered: "_MeteredCall", answer: Answer | None) -> None:
        """A call has ended: by an answer, or, without one, because it was cancelled."""
        events, labels, call = self._events, self._labels, metered.call
        now = monotonic()
        unanswered = FAILURE if now >= call.deadline else CANCELED
        result = unanswered if answer is None else self._word(answer)
        events.count(WORKER_CALLS_IN_FLIGHT, *labels, amount=-1)
        events.count(WORKER_CALLS, *labels, result)
        if result == CANCELED:
            return
        seconds = now - metered.started
        trace_id = sampled_trace_id(call.traceparent)
        events.observe(WORKER_CALL_SECONDS, seconds, *labels, trace_id=trace_id)
        if metered.of_policy:
            policy = call.policy
            events.observe(POLICY_CALL_SECONDS, seconds, policy.phase, policy.qualified_name, trace_id=trace_id)


class _MeteredCall:
    """One call that is open; ``stop`` cancels it at the worker."""

    __slots__ = ("_answered", "_is_open", "_meter", "call", "of_policy", "started", "stop")

    stop: Callable[[], object]

    def __init__(self, meter: CallMeter, call: PolicyCall, answered: Answered, *, of_policy: bool) -> None:
        self._meter = meter
        self._answered = answered
        self._is_open = True
        self.call = call
        self.of_policy = of_policy
        self.started = monotonic()

    def answered(self, call: PolicyCall, answer: Answer) -> None:
        """The worker has answered, or the transport has failed."""
        self._end(answer)
        self._answered(call, answer)

    def cancel(self) -> None:
        """No review waits for the answer."""
        self._end(None)
        self.stop()

    def _end(self, answer: Answer | None) -> None:
        if self._is_open:
            self._is_open = False
            self._meter.ended(self, answer)
