"""A turn ends: what it came to, what it changed, whom it contradicts, and what follows from it.

A change is tried out first, within what the policy was shown and may write; then it is held against what other policies
have changed; only then is it applied. Whatever says no in between makes the turn a failure, and nothing of the change
is applied. Of an answer that was heard, warnings and audit annotations stay: kube-apiserver adds both before it applies
the patch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gateway.engine.applying import EvolvingObject
from gateway.engine.call import Call, refuses
from gateway.engine.call_tracker import Heard
from gateway.engine.conflicts import Conflict, conflict_failure, conflicts_of
from gateway.engine.origin import Source
from gateway.engine.plan import Plan
from gateway.engine.reinvoking import Reinvocation
from gateway.engine.turn import Turn
from gateway.engine.verdicts import Allow, Answer, Failure
from gateway.patching.difference import Operation
from gateway.patching.limits import PatchLimits
from gateway.policies.model import Mode, Phase
from gateway.reasons import Reason
from gateway.review.request import Request

_NO_CHANGE_HERE: Final = Failure(
    reason=Reason.INVALID_RESPONSE,
    # kube-apiserver: "validating webhook may not return response.patch".
    message="a change in the validating phase; answer allow without one, or configure the policy as mutating",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Effect:
    """What an answer came to when its change was applied, or not."""

    answer: Answer
    changes: tuple[Operation, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


class Settling:
    """The turns that are over, in the order in which they ended, and the object as they have left it.

    ``stopped``: a mutating policy has refused, and nobody comes after it.
    """

    def __init__(self, request: Request, plan: Plan, limits: PatchLimits) -> None:
        self._plan = plan
        self._validating = plan.phase is Phase.VALIDATING
        self._reinvocation = Reinvocation()
        self.object = EvolvingObject(request, limits)
        self.calls: list[Call] = []
        self.stopped = False

    def due(self, turn: Turn) -> bool:
        """Whether the policy is to be asked in this round, if it matches."""
        return self._reinvocation.due(turn.index, turn.round)

    def counts(self, failure: Failure, turn: Turn) -> bool:
        """Whether it matters that nobody can tell whether the policy judges."""
        policy = turn.member.policy
        # Who would not be asked anyway has nothing to fail open; what refuses does so as in kube-apiserver.
        return self.due(turn) or (policy.mode is Mode.ENFORCE and refuses(failure, policy))

    def pass_over(self, turn: Turn, why: str) -> None:
        """The policy does not judge."""
        if not self.due(turn):
            # Nobody expected it to be asked again: no news.
            return
        member = turn.member
        call = Call(
            round=turn.round, index=turn.index, label=member.label, policy=member.policy, matched=False, why=why
        )
        self.calls.append(call)

    def settle(self, heard: Heard, now: float) -> None:
        """The policy has judged, or could not."""
        turn, member, source = heard.turn, heard.turn.member, heard.origin.source
        effect = self._effect(turn, heard.answer)
        answer, enforced = effect.answer, member.policy.mode is Mode.ENFORCE
        # What nobody was asked has no document, although one was made to look into the memo.
        document = None if source is Source.NOBODY else turn.document
        said = "" if isinstance(heard.answer, Failure) else heard.answer.version
        call = Call(
            round=turn.round,
            index=turn.index,
            label=member.label,
            policy=member.policy,
            matched=True,
            source=source,
            age=heard.origin.age,
            early=heard.early,
            version=said or member.version,
            inputs=member.inputs,
            document_key=document.digest if document else b"",
            document_size=len(document.content) if document else 0,
            started=turn.started,
            ended=now,
            answer=answer,
            instead_of=heard.instead_of,
            changes=effect.changes if enforced else (),
            would_change=() if enforced else effect.changes,
            conflicts=effect.conflicts,
        )
        self.calls.append(call)
        self._reinvocation.settled(call)
        if call.refuses and not self._validating:
            self.stopped = True

    def in_chain_order(self) -> Sequence[Call]:
        """All calls, round by round."""
        if self._validating:
            self.calls.sort(key=lambda call: call.index)
        return self.calls

    def _effect(self, turn: Turn, answer: Answer) -> _Effect:
        if not isinstance(answer, Allow) or answer.change is None:
            return _Effect(answer=answer)
        if self._validating:
            return _Effect(answer=_NO_CHANGE_HERE)
        applied = self.object.try_out(answer.change, turn.member)
        if isinstance(applied, Failure):
            return _Effect(answer=_with_what_was_said(applied, answer))
        if not applied.operations or turn.member.policy.mode is not Mode.ENFORCE:
            return _Effect(answer=answer, changes=applied.operations)
        overwritten = self.object.overwritten(applied.operations, turn.index)
        conflicts = conflicts_of(turn.index, overwritten, self._plan.members)
        denied = conflict_failure(conflicts)
        if denied is not None:
            return _Effect(answer=_with_what_was_said(denied, answer), conflicts=conflicts)
        self.object.take(applied, author=turn.index, turn=len(self.calls))
        return _Effect(answer=answer, changes=applied.operations, conflicts=conflicts)


def _with_what_was_said(failure: Failure, answer: Allow) -> Failure:
    return replace(failure, warnings=answer.warnings, audit_annotations=answer.audit_annotations)
