"""A gRPC worker as a bridge calls it: calls as they came in, outcomes as the worker gave them.

The worker is called as the gateway itself would call it: round robin over its replicas, by stream, with health, circuit
breakers and retries. What it says is not looked into: whether a change applies, or a verdict means anything, is
for the gateway to judge, which knows the policy. Only a failure is told from a verdict: then another replica may be
called.

Which replicas: those that describe themselves as most do. An outcome that names no version is of "the version described
on this connection", and of those that a bridge has, the gateway knows one: so only those are called; their version is
written into the outcome.
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
from gateway.transports.descriptions import Description
from gateway.transports.grpc.worker import GrpcWorker
from gateway.transports.messages import PHASES, Meaningless
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue.handler import ConsumerDescription, HandlerResult
from gateway.transports.queue.names import lane_of
from gateway.transports.worker_channel import WorkerError

MOST_POLICIES: Final = 1000
"""Policies, each with its settings, that are kept: those of a large configuration. Beyond this all start anew."""

_PHASES: Final[dict[int, Phase]] = {number: phase for phase, number in PHASES.items()}


class _Verdict(Allow, frozen=True, kw_only=True):
    """Anything that a worker said which is no failure. To ``GrpcWorker`` all verdicts are the same."""

    outcome: pb.Outcome


class _NoVerdict(Failure, frozen=True, kw_only=True):
    """A failure that a worker said."""

    outcome: pb.Outcome


def relayed(call: PolicyCall, outcome: pb.Outcome, *, characters: int, meaningless: Meaningless) -> Answer:
    """An outcome as it is: a ``Reading`` for ``GrpcWorker``."""
    del call, characters, meaningless
    if outcome.WhichOneof("verdict") in {None, "failure"}:
        return _NoVerdict(reason=Reason.WORKER_FAILURE, message="", outcome=outcome)
    return _Verdict(outcome=outcome)


class GrpcForwarder:
    """A Judging that calls a gRPC worker.

    Args:
        worker: whose ``reading`` is ``relayed``.
    """

    def __init__(self, worker: GrpcWorker) -> None:
        self._worker = worker
        self._description: Description | None = None
        self._consumer: ConsumerDescription | None = None
        self._listeners: list[Callable[[], object]] = []
        self._policies: dict[tuple[str, int, bytes], Policy] = {}
        self._document = Document(content=b"", digest=b"")
        self._called = 0
        worker.listen(self._look)

    @property
    def consumer_description(self) -> ConsumerDescription | None:
        """See Judging."""
        return self._consumer

    @property
    def why(self) -> str:
        """See Judging."""
        worker = self._worker
        if worker.why or not worker.live:
            return worker.why
        return f"worker {worker.name!r} at {worker.target} says by grpc.health.v1 that it is NOT_SERVING; see its log"

    def listen(self, listener: Callable[[], object]) -> None:
        """See Judging."""
        self._listeners.append(listener)

    def _look(self) -> None:
        counted = self._worker.described()
        # What most connections say; of two that are even, the one of before: nobody gains by going back and forth.
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

    def judge(
        self, call: pb.PolicyCall, answered: Callable[[HandlerResult], None], *, until: float, once: bool
    ) -> None:
        """See Judging."""
        if call.phase not in _PHASES:
            error = q.Error(reason=Reason.WORKER_FAILURE, message=f"the ask is of phase {call.phase}, which is unknown")
            asyncio.get_running_loop().call_soon(answered, error)
            return
        description = self._description
        self._called += 1
        made = PolicyCall(
            id=self._called,
            policy=self._policy(call, until - monotonic()),
            document=self._document_of(call.document),
            deadline=until,
            uid=call.uid,
            cancellable=not once,
            traceparent=call.traceparent,
        )
        # Without a description nobody fits, and the worker says why.
        fits = frozenset(() if description is None else (description,))
        self._worker.call(made, lambda _, answer: answered(self._said(made, answer, description)), fits)

    def _document_of(self, content: bytes) -> Document:
        """Calls of one review come one after another; they go the same way, and there their document travels once."""
        if self._document.content != content:
            # Nobody looks for it in a cache, and its digest would cost more than all else.
            self._document = Document(content=content, digest=b"")
        return self._document

    def _policy(self, call: pb.PolicyCall, left: float) -> Policy:
        """The policy that a call is about. Nobody says its time: the longest that any call had left stands for it."""
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

    def _said(self, call: PolicyCall, answer: Answer, description: Description | None) -> HandlerResult:
        if not isinstance(answer, _Verdict | _NoVerdict):
            assert isinstance(answer, Failure)  # noqa: S101 - every verdict was read by ``relayed``
            return q.Error(reason=answer.reason, message=answer.message)
        outcome = answer.outcome
        described = None if description is None else description.version_of(call.policy.policy)
        if not outcome.version:
            # A copy: the same outcome may be told to others.
            outcome = pb.Outcome()
            outcome.CopyFrom(answer.outcome)
            outcome.version = described or ""
        elif outcome.version != described:
            self._worker.version_skew.disagreed()
        return outcome

    async def validate_settings(self, request: pb.ValidateSettingsRequest) -> HandlerResult:
        """See Judging."""
        why = self._worker.why or "it is not described"
        judges = () if self._description is None else self._worker.all_with(self._description)
        for judge in judges:
            try:
                return await judge.validate_settings(request.policy, request.settings)
            except WorkerError as error:
                why = str(error)
        return q.Error(reason=Reason.WORKER_UNAVAILABLE, message=why)
