"""How a bridge calls a gRPC worker: it forwards calls and outcomes unchanged.

The bridge calls the worker as the gateway itself would: round robin over its endpoints, by stream, with health checks,
circuit breakers and retries. It does not validate verdicts; the gateway does, which knows the policy. It only
distinguishes a failure, after which it may call another endpoint.

If endpoints have different descriptions, the bridge calls only those with the most frequent one. An outcome without a
version is of "the version described on this connection", but the gateway knows only the description that the bridge
publishes. So the bridge writes that version into the outcome.
"""

import asyncio
import math
from collections.abc import Callable
from time import monotonic
from typing import Final

from gateway.documents.documents import Document
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Allow, Answer, Failure
from gateway.policies.model import Phase, Policy
from gateway.reasons import Reason
from gateway.telemetry.events import Events, NoEvents
from gateway.telemetry.labels import Transport
from gateway.telemetry.traces.consumer_tracer import ConsumerTracer
from gateway.transports.call_meter import CallMeter
from gateway.transports.descriptions import Description
from gateway.transports.grpc.worker import GrpcWorker
from gateway.transports.limits import TransportLimits
from gateway.transports.messages import PHASES, InvalidHint
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue.handler import ConsumerDescription, HandlerResult
from gateway.transports.queue.names import lane_of
from gateway.transports.worker_channel import WorkerError

MOST_POLICIES: Final = 1000
"""Policies with their settings that are cached: those of a large configuration. Beyond this the cache is cleared."""

_PHASES: Final[dict[int, Phase]] = {number: phase for phase, number in PHASES.items()}


class _Verdict(Allow, frozen=True, kw_only=True):
    """An outcome with a verdict. ``GrpcWorker`` does not distinguish verdicts, so it is always an Allow."""

    outcome: pb.Outcome


class _NoVerdict(Failure, frozen=True, kw_only=True):
    """An outcome with a failure, or empty."""

    outcome: pb.Outcome


def unchanged(call: PolicyCall, outcome: pb.Outcome, *, characters: int, invalid_hint: InvalidHint) -> Answer:
    """An outcome unchanged: a ``OutcomeReader`` for ``GrpcWorker``."""
    del call, characters, invalid_hint
    if outcome.WhichOneof("verdict") in {None, "failure"}:
        return _NoVerdict(reason=Reason.WORKER_FAILURE, message="", outcome=outcome)
    return _Verdict(outcome=outcome)


def _word(answer: Answer) -> str:
    """The verdict that the worker gave."""
    verdict = answer.outcome.WhichOneof("verdict") if isinstance(answer, _Verdict) else None
    return verdict or "failure"


def _traced(
    tracer: ConsumerTracer, call: PolicyCall, answered: Callable[[HandlerResult], None]
) -> Callable[[HandlerResult], None]:
    """Give the call a span of its own, which ends when it is answered."""
    trace, started = tracer.begin(call.traceparent, call.tracestate), monotonic()
    call.traceparent, call.tracestate = trace.traceparent, trace.tracestate

    def answer(result: HandlerResult) -> None:
        if isinstance(result, pb.Outcome):
            verdict = result.WhichOneof("verdict") or Reason.INVALID_RESPONSE.value
            verdict = Reason.WORKER_FAILURE.value if verdict == "failure" else verdict
        else:
            verdict = getattr(result, "reason", "")
        tracer.ended(trace, call.policy.policy, started, verdict)
        answered(result)

    return answer


class GrpcForwarder:
    """A Handler that calls a gRPC worker.

    Args:
        worker: whose ``read_outcome`` is ``unchanged``.
        events: receives what is measured of the calls.
        limits: how many calls may be open; None: the defaults.
        tracer: makes a span of each call; None: the worker gets the gateway's trace context.
    """

    def __init__(
        self,
        worker: GrpcWorker,
        events: Events | None = None,
        tracer: ConsumerTracer | None = None,
        limits: TransportLimits | None = None,
    ) -> None:
        self._worker = worker
        self._tracer = tracer
        self._meter = CallMeter(worker, Transport.GRPC, events or NoEvents(), _word, limits=limits)
        self._description: Description | None = None
        self._consumer: ConsumerDescription | None = None
        self._listeners: list[Callable[[], object]] = []
        self._policies: dict[tuple[str, int, bytes], Policy] = {}
        self._document = Document(content=b"", digest=b"")
        self._called = 0
        worker.listen(self._description_changed)

    @property
    def consumer_description(self) -> ConsumerDescription | None:
        """See Handler."""
        return self._consumer

    @property
    def why(self) -> str:
        """See Handler."""
        worker = self._worker
        if worker.why or not worker.live:
            return worker.why
        return f"worker {worker.name!r} at {worker.target} reports NOT_SERVING (grpc.health.v1); see its log"

    def listen(self, listener: Callable[[], object]) -> None:
        """See Handler."""
        self._listeners.append(listener)

    def _description_changed(self) -> None:
        counted = self._worker.described()
        # The most frequent one; of two that are equally frequent the current one, so that it does not alternate.
        before = self._description
        chosen = max(counted, key=lambda each: (counted[each], each is before), default=None)
        if chosen is before:
            return
        self._description = chosen
        self._consumer = None
        if chosen is not None:
            content = chosen.message.SerializeToString(deterministic=True)
            self._consumer = ConsumerDescription(description=content, lane=lane_of(chosen.message))
        for listener in self._listeners:
            listener()

    # ------------------------------------------------------------------------------------------------ calling

    def handle(
        self, call: pb.PolicyCall, answered: Callable[[HandlerResult], None], *, until: float, once: bool
    ) -> None:
        """See Handler."""
        if call.phase not in _PHASES:
            error = q.Error(reason=Reason.WORKER_FAILURE, message=f"the call has the unknown phase {call.phase}")
            asyncio.get_running_loop().call_soon(answered, error)
            return
        description = self._description
        self._called += 1
        policy_call = PolicyCall(
            id=self._called,
            policy=self._policy(call, until - monotonic()),
            document=self._document_of(call.document),
            deadline=until,
            uid=call.uid,
            cancellable=not once,
            traceparent=call.traceparent,
            tracestate=call.tracestate,
        )
        if self._tracer is not None and call.traceparent:
            answered = _traced(self._tracer, policy_call, answered)
        # Without a description no endpoint fits, and the GrpcWorker answers why.
        fits = frozenset(() if description is None else (description,))
        self._meter.call(policy_call, lambda _, answer: answered(self._result(policy_call, answer, description)), fits)

    def _document_of(self, content: bytes) -> Document:
        """Calls of one review arrive one after another; with the same Document they share one copy on the stream."""
        if self._document.content != content:
            # No cache is used here, and the digest would cost more than the rest.
            self._document = Document(content=content, digest=b"")
        return self._document

    def _policy(self, call: pb.PolicyCall, left: float) -> Policy:
        """The policy of a call. A call carries no timeout, so the longest time that any call had left replaces it."""
        key = call.policy, call.phase, call.settings
        known = self._policies.get(key)
        if known is None or known.timeout < left:
            if len(self._policies) >= MOST_POLICIES:
                self._policies.clear()
            known = self._policies[key] = Policy(
                phase=_PHASES[call.phase],
                configuration=self._worker.name,
                index=0,
                name=call.policy,
                worker=self._worker.name,
                policy=call.policy,
                rules=(),
                timeout=math.ceil(left * 10) / 10,
                settings=call.settings,
            )
        return known

    def _result(self, call: PolicyCall, answer: Answer, description: Description | None) -> HandlerResult:
        if not isinstance(answer, _Verdict | _NoVerdict):
            assert isinstance(answer, Failure)  # noqa: S101 - ``unchanged`` made every verdict
            return q.Error(reason=answer.reason, message=answer.message)
        outcome = answer.outcome
        described = None if description is None else description.version_of(call.policy.policy)
        if not outcome.version:
            # A copy: other calls may share the outcome.
            outcome = pb.Outcome()
            outcome.CopyFrom(answer.outcome)
            outcome.version = described or ""
        elif outcome.version != described:
            self._worker.version_skew.disagreed()
        return outcome

    async def validate_settings(self, request: pb.ValidateSettingsRequest) -> HandlerResult:
        """See Handler."""
        why = self._worker.why or "it is not described"
        endpoints = () if self._description is None else self._worker.all_with(self._description)
        for endpoint in endpoints:
            try:
                return await endpoint.validate_settings(request.policy, request.settings)
            except WorkerError as error:
                why = str(error)
        return q.Error(reason=Reason.WORKER_UNAVAILABLE, message=why)
