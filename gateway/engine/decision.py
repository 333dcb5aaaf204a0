"""The one record of a review: what was asked, matched, answered, changed, and what went out.

The demonstration prints it, telemetry renders it; nothing else records. It is a value: complete when it is made, and
never changed afterwards. Times are seconds on the driver's clock; only differences mean something.
"""

from functools import cached_property
from typing import Any

from msgspec import Struct

from gateway.engine.annotations import kubernetes_annotations
from gateway.engine.field_changes import FieldChange, field_changes
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.object_state import ObjectState
from gateway.engine.plan import Plan
from gateway.enums import StrEnum
from gateway.matching.outcomes import RULES
from gateway.patching.difference import Operation
from gateway.policies.model import Phase
from gateway.review.request import Request
from gateway.review.response import Response


class Outcome(StrEnum):
    """How the review ended."""

    ALLOWED = "allowed"
    """Nobody said no, and everybody who must be heard could judge."""

    DENIED = "denied"
    """At least one worker said no."""

    FAILED = "failed"
    """No worker said no, but a policy that must be heard (failurePolicy Fail) could not judge."""


class Decision(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """A decided review.

    ``response`` is what goes out. ``patch`` is the difference between the object that came and ``object``, empty
    unless the request is allowed. ``changed_object`` is None where nobody changed anything; ``object_state`` knows who
    did. ``calls`` are the turns of the policies that have a rule about the request. ``prefetches`` is how many calls
    were made before the turn of a policy had come; what became of them, the calls say. ``ends`` is when the budget
    would have ended.
    """

    phase: Phase
    plan: Plan
    request: Request
    outcome: Outcome
    response: Response
    patch: tuple[Operation, ...]
    changed_object: Any
    calls: tuple[InvocationRecord, ...]
    object_state: ObjectState | None = None
    prefetches: int = 0
    started: float
    ended: float
    ends: float

    @cached_property
    def all_calls(self) -> tuple[InvocationRecord, ...]:
        """``calls``, and in their places the policies that no rule of theirs brings to this request: made when read."""
        calls = self.calls
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
        """The object after all changes; None where the request has none."""
        return self.request.object if self.changed_object is None else self.changed_object

    @cached_property
    def field_changes(self) -> tuple[FieldChange, ...]:
        """Who changed what: one for each field that ``patch`` changes, in its order; worked out when first asked."""
        fields = self.object_state.fields() if self.patch and self.object_state is not None else ()
        return field_changes(self.request, self.calls, fields)

    def kubernetes_annotations(self) -> dict[str, str]:
        """The audit annotations that kube-apiserver itself would write, were each policy a webhook of its own."""
        return kubernetes_annotations(self.phase, self.calls)
