"""The end of a turn: applying its change, conflicts with other policies, reinvocation, and the record.

A change is first computed within what the policy's inputs include and what it may write; then it is compared with other
policies' changes; only then is it applied. An error in any step makes the turn a failure, and nothing of the change is
applied. The answer's warnings and audit annotations are kept even then: kube-apiserver adds both before it applies the
patch.
"""

from collections.abc import Generator, Sequence
from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.engine.answer_source import Source
from gateway.engine.call_tracker import InvocationResult
from gateway.engine.conflicts import Conflict, conflict_failure, conflicts_of
from gateway.engine.invocation_record import InvocationRecord, refuses
from gateway.engine.object_state import ObjectState
from gateway.engine.plan import Plan
from gateway.engine.policy_call import PolicyCall, PolicyInvocation
from gateway.engine.verdicts import Allow, Answer, Change, Failure
from gateway.patching.difference import Operation
from gateway.patching.limits import PatchLimits
from gateway.policies.model import Mode, Phase, ReinvocationPolicy
from gateway.reasons import Reason
from gateway.review.request import Request

_NO_CHANGE_HERE: Final = Failure(
    reason=Reason.INVALID_RESPONSE,
    # kube-apiserver: "validating webhook may not return response.patch".
    message="a change in the validating phase; answer allow without one, or configure the policy as mutating",
)


class Reinvocation(Struct, eq=False):
    """Which policies are called again: kube-apiserver's webhookReinvokeContext.

    When a policy changes the object, every IfNeeded policy that was called before it is marked, and stays marked. Marks
    made in the second round count for the policies still to come. A policy that failed open counts as called; one that
    was never called is never marked. ``called`` and ``marked`` are indexes in the plan; in the second round, only
    marked policies are called.
    """

    called: set[int] = set()
    marked: set[int] = set()

    def settled(self, record: InvocationRecord) -> None:
        """A turn has ended."""
        if record.changes:
            self.marked |= self.called
        if record.called and record.policy.reinvocation_policy is ReinvocationPolicy.IF_NEEDED:
            self.called.add(record.index)


class _Effect(Struct, frozen=True, kw_only=True):
    """An answer after its change was applied, or the failure to apply it."""

    answer: Answer
    changes: tuple[Operation, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


class ReviewState:
    """The turns that have ended, in the order in which they ended, and the current object.

    ``stopped``: a mutating policy has refused, so the chain has ended. ``has_failure``: a policy failed, ignored or
    not, or had a stale verdict instead.
    """

    def __init__(self, request: Request, plan: Plan, limits: PatchLimits) -> None:
        self._plan = plan
        self._validating = plan.phase is Phase.VALIDATING
        self._reinvocation = Reinvocation()
        self.object = ObjectState(request, limits)
        self.records: list[InvocationRecord] = []
        self.stopped = False
        self.has_failure = False

    def due(self, invocation: PolicyInvocation) -> bool:
        """Whether the policy is called in this round if it matches."""
        return invocation.round == 0 or invocation.index in self._reinvocation.marked

    def counts(self, failure: Failure, invocation: PolicyInvocation) -> bool:
        """Whether a failure of matching counts in this round."""
        policy = invocation.member.policy
        # A policy that is not due would not be called, so it cannot fail open. A failure that refuses counts in any
        # round, as in kube-apiserver.
        return self.due(invocation) or (policy.mode is Mode.ENFORCE and refuses(failure, policy))

    def skip(self, invocation: PolicyInvocation, why: str) -> None:
        """The policy does not match."""
        if not self.due(invocation):
            # It would not have been called again anyway: no record.
            return
        member = invocation.member
        record = InvocationRecord(
            round=invocation.round,
            index=invocation.index,
            label=member.label,
            policy=member.policy,
            matched=False,
            why=why,
        )
        self.records.append(record)

    def give_up(self, invocation: PolicyInvocation, call: PolicyCall | None, now: float) -> None:
        """The review ends before this turn does: record how far it got. ``call``: the open call that it waits for."""
        member, document = invocation.member, invocation.document if call is not None else None
        record = InvocationRecord(
            round=invocation.round,
            index=invocation.index,
            label=member.label,
            policy=member.policy,
            matched=True,
            source=Source.NONE if call is None else Source.CALLED,
            prefetched=call is not None and call.prefetched,
            version=member.version,
            inputs=member.inputs,
            document_key=document.digest if document else b"",
            document_size=len(document.content) if document else 0,
            call=None if call is None else call.record(None),
            started=invocation.started,
            ended=now,
        )
        self.records.append(record)

    def settle(self, result: InvocationResult, now: float) -> Generator[None, None, None]:
        """The policy has answered or failed: apply its change and record the turn. Yields while it works on a large
        change.
        """
        invocation, member, source = result.invocation, result.invocation.member, result.origin.source
        effect = _Effect(answer=result.answer)
        if isinstance(effect.answer, Allow) and effect.answer.change is not None:
            effect = yield from self._effect(invocation, effect.answer, effect.answer.change)
        answer, enforced = effect.answer, member.policy.mode is Mode.ENFORCE
        # Without a call the record has no document, although one was made as the key of the memo.
        document = None if source is Source.NONE else invocation.document
        version = "" if isinstance(result.answer, Failure) else result.answer.version
        record = InvocationRecord(
            round=invocation.round,
            index=invocation.index,
            label=member.label,
            policy=member.policy,
            matched=True,
            source=source,
            age=result.origin.age,
            prefetched=result.prefetched,
            version=version or member.version,
            inputs=member.inputs,
            document_key=document.digest if document else b"",
            document_size=len(document.content) if document else 0,
            call=result.call,
            started=invocation.started,
            ended=now,
            answer=answer,
            instead_of=result.instead_of,
            changes=effect.changes if enforced else (),
            would_change=() if enforced else effect.changes,
            conflicts=effect.conflicts,
        )
        self.records.append(record)
        if isinstance(answer, Failure) or result.instead_of is not None:
            self.has_failure = True
        if not self._validating:
            self._reinvocation.settled(record)
            self.stopped = record.refuses

    def in_chain_order(self) -> Sequence[InvocationRecord]:
        """All records, in chain order, round by round."""
        if self._validating:
            self.records.sort(key=attrgetter("index"))
        return self.records

    def _effect(self, invocation: PolicyInvocation, answer: Allow, change: Change) -> Generator[None, None, _Effect]:
        if self._validating:
            return _Effect(answer=_NO_CHANGE_HERE)
        applied = yield from self.object.preview(change, invocation.member)
        if isinstance(applied, Failure):
            return _Effect(answer=_with_annotations(applied, answer))
        if not applied.operations or invocation.member.policy.mode is not Mode.ENFORCE:
            return _Effect(answer=answer, changes=applied.operations)
        overwritten = self.object.overwritten(applied.operations, invocation.index)
        if applied.large:
            yield
        conflicts = conflicts_of(invocation.index, overwritten, self._plan.members)
        denied = conflict_failure(conflicts)
        if denied is not None:
            return _Effect(answer=_with_annotations(denied, answer), conflicts=conflicts)
        self.object.commit(applied, author=invocation.index, order=len(self.records))
        return _Effect(answer=answer, changes=applied.operations, conflicts=conflicts)


def _with_annotations(failure: Failure, answer: Allow) -> Failure:
    return replace(failure, warnings=answer.warnings, audit_annotations=answer.audit_annotations)
