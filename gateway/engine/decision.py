"""The record of a review: what matched, was called, answered and changed, and the response.

Logs, metrics, spans and the command line all read this record. It is complete when its observers get it, and never
changed afterwards. Times are seconds on the driver's clock; only differences between them have a meaning.
"""

from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from gateway.engine.annotations import kubernetes_annotations
from gateway.engine.answer_source import SampledCall
from gateway.engine.field_changes import FieldChange, field_changes
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.object_state import ObjectState
from gateway.engine.plan import Plan
from gateway.engine.trace_context import NO_TRACE, TraceContext
from gateway.enums import StrEnum
from gateway.matching.outcomes import RULES
from gateway.patching.difference import Operation
from gateway.policies.model import Phase
from gateway.reasons import Reason
from gateway.review.request import Request
from gateway.review.response import Response


class Outcome(StrEnum):
    """How the review ended."""

    ALLOWED = "allowed"
    """No policy denied, and none with failurePolicy Fail failed."""

    DENIED = "denied"
    """At least one worker denied."""

    FAILED = "failed"
    """No worker denied, but a policy with failurePolicy Fail failed, or the gateway itself refused."""

    CANCELED = "canceled"
    """The client hung up before there was an answer."""


ANSWERED: Final = (Outcome.ALLOWED, Outcome.DENIED, Outcome.FAILED)
"""The outcomes that a client gets to know."""

NO_RESPONSE: Final = Response(allowed=False)
"""Of a canceled review, which no answer follows."""


class TimeLedger(Struct, eq=False, kw_only=True):
    """When each stage of a review ended, between ``Decision.started`` and the end of its budget.

    The engine has no clock, so it cannot see a stage between two of its events: whoever passes on to the next stage
    writes the time down. What was not reached or is not measured (``review``, replays) is None.

    ``read``: the body is complete (written by the review handler). ``decoded``: the engine starts (by the engine).
    ``dispatched``: the first policy calls are under way (by the driver). Then the decision is made, at ``ended``.
    ``encoded``: the response is encoded (by the review handler).
    """

    read: float | None = None
    decoded: float | None = None
    dispatched: float | None = None
    encoded: float | None = None


class Decision(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """A decided review, or one that ended without an answer of the policies.

    ``response`` is the response to the API server. ``patch`` is the difference between the original object and
    ``object``, empty unless the request is allowed. ``changed_object`` is None if no policy changed the object;
    ``object_state`` has which policy changed what. ``calls`` are the turns of the policies that have a rule about the
    request. ``is_traced``: the gateway exports the review's spans, because it is sampled, slow, denied or failed,
    failures ignored included. (A client that hangs up soon is nothing to look into.) ``prefetches`` counts the calls
    made before a policy's turn. ``started`` is when the request was received, ``ended`` when it was decided, ``ends``
    the end of the budget; ``ledger`` has the time of each stage. ``entry`` is the registered entry that was called,
    None for the path of a whole phase; ``trace`` is the trace context of which each call had a part. ``sampled_calls``
    has all calls, if the trace is sampled: also those that no turn used.

    ``reason`` is why the gateway itself refused the review, whatever the policies said (INTERNAL, REQUEST_TOO_LARGE);
    else None. Then, and of a canceled review, ``calls`` are the turns as far as they got, mostly none: a policy that
    matched and has no answer was judging when the review ended.
    """

    phase: Phase
    entry: str | None = None
    trace: TraceContext = NO_TRACE
    plan: Plan
    request: Request
    outcome: Outcome
    reason: Reason | None = None
    response: Response
    patch: tuple[Operation, ...]
    changed_object: Any
    calls: tuple[InvocationRecord, ...]
    is_traced: bool = False
    object_state: ObjectState | None = None
    prefetches: int = 0
    sampled_calls: tuple[SampledCall, ...] = ()
    started: float
    ended: float
    ends: float
    ledger: TimeLedger

    @property
    def trace_id(self) -> str:
        """The trace in which it is found: of the gateway's spans, or without tracing the API server's; "" if none."""
        return "" if self.trace.has_span and not self.is_traced else self.trace.trace_id

    @cached_property
    def all_calls(self) -> tuple[InvocationRecord, ...]:
        """``calls`` and, in chain order, a record for each policy without a rule about the request; made when read."""
        calls = self.calls
        if not calls and not self.response.allowed:
            # The review ended before any turn.
            return ()
        members = self.plan.members
        stopped = self.phase is Phase.MUTATING and not self.response.allowed and calls[-1].round == 0
        known = {call.index for call in calls}
        others = (
            InvocationRecord(
                round=0, index=index, label=member.label, policy=member.policy, matched=False, why=RULES.why
            )
            for index, member in enumerate(members[: calls[-1].index] if stopped else members)
            if index not in known
        )
        return tuple(sorted((*calls, *others), key=lambda call: (call.round, call.index)))

    @property
    def object(self) -> Any:
        """The object after all changes; None if the request has no object."""
        return self.request.object if self.changed_object is None else self.changed_object

    @cached_property
    def field_changes(self) -> tuple[FieldChange, ...]:
        """One FieldChange for each field that ``patch`` changes, in the patch's order; computed on first access."""
        fields = self.object_state.fields() if self.patch and self.object_state is not None else ()
        return field_changes(self.request, self.calls, fields)

    def kubernetes_annotations(self) -> dict[str, str]:
        """The audit annotations that kube-apiserver would write if each policy were a webhook of its own."""
        return kubernetes_annotations(self.phase, self.calls)
