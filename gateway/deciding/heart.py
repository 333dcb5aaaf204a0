"""The heart: a review in, asks out, answers in, a decision out. It holds no socket and no clock, and waits for nobody.

A policy's **turn** is: match the object as it now is; find a missing fact; ask; settle. Rules of the machine:

* Mutating, one turn at a time, in chain order. Each policy matches and sees the object as the ones before it left it.
  The first refusal (a denial, or a failure under Fail) ends the chain.
* Reinvocation, at most one more round. After a policy changed the object, every IfNeeded policy asked before it is
  marked. If anything changed, the chain is walked again: matching comes first, then the mark; only marked policies
  are asked. Marks made in the second round count for the policies still to come. (kube-apiserver's rule: a policy
  that was not asked in the first round is never asked in the second; one that failed open counts as asked.)
* Validating, all turns at once. All are waited for; all refusals are gathered.
* The memo, for one review: a verdict is a function of (worker, policy, settings, document), so the same question is
  asked once. While it is open, a second turn with the same question follows it; if it fails, each follower asks for
  itself. Failures are never kept. A policy with side effects for this request neither shares nor is shared, and is
  never cancelled.
* Time. A turn's deadline is min(asked + timeoutSeconds, end of the budget). When the budget ends, verdicts that are
  there count; every policy not yet judged is a failure ``BUDGET_EXHAUSTED``, and what that means is its
  failurePolicy's to say. An answer after its deadline is no answer.
  (An end of the API server's own deadline is another matter: ``lateness``.)
* Not knowing is not allowing: a member that cannot be asked fails with its standing, in its turn, if it matches.
* A dry run of a policy that has side effects even then is refused, whatever failurePolicy says, and nobody is asked.
* A policy whose mode is warn or audit is asked like any other. Nothing that it says counts: it refuses nothing, changes
  nothing (what it would change is recorded), marks nobody, ends no chain.
* A policy that has an entry of its own is asked at once: the API server has matched it.

Events come one at a time: ``start``, then ``answered``, ``found``, ``expired``, ``abandoned`` or ``broken`` in any
order. What the diagram can't show: an event about something that the heart has given up is legal and changes nothing,
because the driver cannot always cancel in time.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gateway.deciding.applying import EvolvingObject
from gateway.deciding.call import Call, Source, refuses
from gateway.deciding.composing import compose
from gateway.deciding.decision import Decision
from gateway.deciding.inability import dry_run_unsupported, undecided
from gateway.deciding.lateness import budget_over, lookup_late, wanted, worker_late
from gateway.deciding.lookups import Fact, Lookups
from gateway.deciding.plan import Plan
from gateway.deciding.questions import OpenAsk, Questions, Turn
from gateway.deciding.reinvoking import Reinvocation
from gateway.deciding.steps import Ask, Lookup, Step
from gateway.deciding.verdicts import Allow, Answer, Change, Failure
from gateway.documents import Documents
from gateway.matching import (
    EMPTY,
    Equivalents,
    Matched,
    Matching,
    NeedsAuthorization,
    NeedsNamespace,
    NotMatched,
    Undecidable,
    WrongVersion,
    match,
)
from gateway.patching import DEFAULT_LIMITS, Operation, PatchLimits, encode_patch
from gateway.policies import Mode, Phase, Policy, SideEffects
from gateway.reasons import Reason
from gateway.review import Request

ROUNDS: Final = 2
"""kube-apiserver reinvokes at most once."""

_MATCHED: Final = Matched()


class Heart:
    """Decides one review.

    Args:
        request: what came. A ReviewError that its lazy members raise passes through every event: then there is no
            review to decide, and no further event may follow.
        plan: who judges.
        ends: when the budget ends, on the driver's clock.
        came: when the request came, on the same clock, for the record; the moment of ``start`` if None.
        limits: of the patches that workers send.
        equivalents: which resources are the same in another version or group, as far as anybody knows.
    """

    def __init__(
        self,
        request: Request,
        plan: Plan,
        *,
        ends: float,
        came: float | None = None,
        limits: PatchLimits = DEFAULT_LIMITS,
        equivalents: Equivalents = EMPTY,
    ) -> None:
        self._request = request
        self._plan = plan
        self._parallel = plan.phase is Phase.VALIDATING
        self._ends = ends
        self._came = came
        self._started = 0.0
        self._finished = False
        # The walk.
        self._round = 0
        self._position = 0
        self._stopped = False
        self._active: list[Turn] = []
        self._calls: list[Call] = []
        # The object, its documents, and who must see it again.
        self._object = EvolvingObject(request, limits)
        self._documents = Documents(request)
        self._reinvocation = Reinvocation()
        # What is open, and what is known.
        self._ids = 0
        self._questions = Questions()
        self._lookups = Lookups(request, equivalents)
        # What the Step under way will say.
        self._new_asks: list[Ask] = []
        self._new_lookups: list[Lookup] = []
        self._cancels: list[int] = []

    # ------------------------------------------------------------------------------------------------ events

    def start(self, now: float) -> Step:
        """Begin. The time of the first turns runs from ``now``, not from when the request came: a body may be slow."""
        self._started = now if self._came is None else self._came
        return self._step(now)

    def answered(self, ask_id: int, answer: Answer, now: float) -> Step:
        """A worker answered, or its transport says why it did not."""
        open_ask = self._questions.take(ask_id)
        if open_ask is not None:
            self._close(open_ask, answer, now)
        return self._step(now)

    def found(self, lookup_id: int, fact: Fact, now: float) -> Step:
        """What was looked up: a namespace's labels, None if there is no such namespace; or an Authorization."""
        for turn in self._lookups.found(lookup_id, fact):
            self._match(turn, now)
        return self._step(now)

    def expired(self, now: float) -> Step:
        """Time has passed: ``wake_at`` has come (or nearly: a clock may be coarse, then the next Step says when)."""
        for open_ask in self._questions:
            self._expire_ask(open_ask, now)
        for turn, lookup in self._lookups.late(now):
            self._cannot_tell(turn, self._lookup_late(turn, lookup), now)
        return self._step(now)

    def abandoned(self) -> Step:
        """Nobody waits for the decision any more: the API server has hung up."""
        self._finished = True
        self._cancels += self._questions.give_up()
        self._lookups.give_up()
        return self._flush(None, None)

    def broken(self, message: str, now: float) -> Step:
        """An exception of our own: a failure INTERNAL of each policy not yet judged; what was judged stays judged."""
        failure = Failure(reason=Reason.INTERNAL, message=message)
        self._cancels += self._questions.give_up()
        self._lookups.give_up()
        for turn in list(self._active):
            self._settle(turn, failure, Source.NOBODY, now)
        for turn in self._remaining(now):
            if self._stopped:
                break
            if self._reinvocation.due(turn.index, turn.round):
                self._settle(turn, failure, Source.NOBODY, now)
        return self._flush(self._decide(now), None)

    # -------------------------------------------------------------------------------------------------- walk

    def _step(self, now: float) -> Step:
        if self._finished:
            return self._flush(None, None)
        for turn in self._remaining(now):
            self._active.append(turn)
            self._match(turn, now)
        if self._active:
            return self._flush(None, min(turn.deadline for turn in self._active))
        return self._flush(self._decide(now), None)

    def _flush(self, decision: Decision | None, wake_at: float | None) -> Step:
        step = Step(
            asks=tuple(self._new_asks),
            lookups=tuple(self._new_lookups),
            cancels=tuple(self._cancels),
            wake_at=wake_at,
            decision=decision,
        )
        self._new_asks, self._new_lookups, self._cancels = [], [], []
        return step

    def _remaining(self, now: float) -> Iterator[Turn]:
        """The turns that have not begun; none while one is under way that the others must wait for."""
        members = self._plan.members
        while not self._stopped and (self._parallel or not self._active):
            if self._position == len(members):
                if self._parallel or not self._object.changed or self._round == ROUNDS - 1:
                    return
                self._round, self._position = self._round + 1, 0
            index = self._position
            self._position += 1
            member = members[index]
            deadline = min(now + member.policy.timeout, self._ends)
            yield Turn(member=member, index=index, round=self._round, started=now, deadline=deadline)

    def _match(self, turn: Turn, now: float) -> None:
        matching: Matching = _MATCHED
        if not turn.member.registered:
            matching = match(turn.member.policy, self._request, self._object.now, self._lookups.facts)
        match matching:
            case NotMatched(why=why):
                self._pass_over(turn, why)
            case NeedsNamespace() | NeedsAuthorization() as need:
                self._look_up(turn, need)
            case Undecidable() as undecidable:
                self._cannot_tell(turn, undecided(undecidable), now)
            case _ if not self._reinvocation.due(turn.index, turn.round):
                self._pass_over(turn, "not marked for reinvocation")
            case WrongVersion(message=message):
                self._settle(turn, Failure(reason=Reason.WRONG_VERSION, message=message), Source.NOBODY, now)
            case Matched():
                self._judge(turn, now)

    def _cannot_tell(self, turn: Turn, failure: Failure, now: float) -> None:
        """Whether the policy judges is not known, and will not be."""
        policy = turn.member.policy
        # Who would not be asked anyway has nothing to fail open; what refuses does so as in kube-apiserver.
        refused = policy.mode is Mode.ENFORCE and refuses(failure, policy)
        if refused or self._reinvocation.due(turn.index, turn.round):
            self._settle(turn, failure, Source.NOBODY, now)
        else:
            self._pass_over(turn, "not marked for reinvocation")

    def _judge(self, turn: Turn, now: float) -> None:
        policy = turn.member.policy
        if self._request.dry_run and not policy.side_effects.permits_dry_run:
            self._settle(turn, dry_run_unsupported(policy), Source.NOBODY, now)
        elif turn.member.standing is not None:
            self._settle(turn, turn.member.standing, Source.NOBODY, now)
        elif now >= self._ends:
            self._settle(turn, self._budget_over("before the policy was asked"), Source.NOBODY, now)
        else:
            # What matching had to look up is not the worker's time: timeoutSeconds begins here.
            turn.deadline = min(now + policy.timeout, self._ends)
            turn.document = self._documents.of(self._object.after, changed=bool(self._object.patch))
            self._ask(turn, now)

    # -------------------------------------------------------------------------------------- asks and lookups

    def _ask(self, turn: Turn, now: float, *, share: bool = True) -> None:
        assert turn.document is not None  # noqa: S101 - _judge has made it
        policy = turn.member.policy
        effects = self._has_side_effects(policy)
        question = None if effects else (policy.worker, policy.policy, policy.settings, turn.document.digest)
        if share:
            known = self._questions.known(question)
            if known is not None:
                self._settle(turn, known, Source.MEMO, now)
                return
            if self._questions.follow(question, turn):
                return
        ask = Ask(
            id=self._next_id(),
            policy=policy,
            document=turn.document,
            deadline=turn.deadline,
            uid=self._request.uid,
            cancellable=not effects,
        )
        self._questions.open(ask, question, turn)
        self._new_asks.append(ask)

    def _close(self, open_ask: OpenAsk, answer: Answer, now: float) -> None:
        """An open ask has its answer, or will never have one."""
        asker, *followers = open_ask.turns
        if not isinstance(answer, Failure):
            self._questions.keep(open_ask.question, answer)
            for turn in open_ask.turns:
                source = Source.ASKED if turn is asker else Source.SHARED
                self._settle(turn, self._late(turn) if now > turn.deadline else answer, source, now)
            return
        if answer.reason is Reason.WORKER_TIMEOUT and asker.deadline >= self._ends:
            # The transport keeps the same deadline, and may notice first; whose time it was, the heart knows.
            answer = self._late(asker)
        self._settle(asker, answer, Source.ASKED, now)
        for turn in followers:
            if turn.deadline <= now:
                self._settle(turn, self._late(turn), Source.SHARED, now)
            else:
                self._ask(turn, now, share=False)

    def _expire_ask(self, open_ask: OpenAsk, now: float) -> None:
        asker = open_ask.turns[0]
        if asker.deadline <= now:
            self._questions.take(open_ask.ask.id)
            if open_ask.ask.cancellable:
                self._cancels.append(open_ask.ask.id)
            self._close(open_ask, self._late(asker), now)
            return
        for turn in [turn for turn in open_ask.turns if turn.deadline <= now]:
            open_ask.turns.remove(turn)
            self._settle(turn, self._late(turn), Source.SHARED, now)

    def _look_up(self, turn: Turn, need: NeedsNamespace | NeedsAuthorization) -> None:
        lookup = self._lookups.wait(turn, need, self._next_id())
        if lookup is not None:
            self._new_lookups.append(lookup)

    def _next_id(self) -> int:
        self._ids += 1
        return self._ids

    # ------------------------------------------------------------------------------------------------ settle

    def _pass_over(self, turn: Turn, why: str) -> None:
        self._active.remove(turn)
        if not self._reinvocation.due(turn.index, turn.round):
            # Nobody expected it to be asked again: no news.
            return
        self._calls.append(
            Call(
                round=turn.round,
                index=turn.index,
                label=turn.member.label,
                policy=turn.member.policy,
                matched=False,
                why=why,
            )
        )

    def _settle(self, turn: Turn, answer: Answer, source: Source, now: float) -> None:
        """The turn is over: what it came to, what it changed, what follows from it."""
        changes: tuple[Operation, ...] = ()
        enforced = turn.member.policy.mode is Mode.ENFORCE
        if isinstance(answer, Allow) and answer.change is not None:
            answer, changes = self._change(answer, answer.change, enforced=enforced)
        # Not before: should applying the change break the heart, this turn is one that was not judged.
        if turn in self._active:
            self._active.remove(turn)
        call = Call(
            round=turn.round,
            index=turn.index,
            label=turn.member.label,
            policy=turn.member.policy,
            matched=True,
            source=source,
            document_key=turn.document.digest if turn.document else b"",
            document_size=turn.document.size if turn.document else 0,
            started=turn.started,
            ended=now,
            answer=answer,
            changes=changes if enforced else (),
            would_change=() if enforced else changes,
        )
        self._calls.append(call)
        self._reinvocation.settled(call)
        if call.refuses and not self._parallel:
            self._stopped = True

    def _change(self, answer: Allow, change: Change, *, enforced: bool) -> tuple[Answer, tuple[Operation, ...]]:
        if self._parallel:
            # kube-apiserver: "validating webhook may not return response.patch".
            message = "a change in the validating phase; answer allow without one, or configure the policy as mutating"
            return Failure(reason=Reason.INVALID_RESPONSE, message=message), ()
        changes = self._object.apply(change) if enforced else self._object.try_out(change)
        if isinstance(changes, Failure):
            # It was heard, though nothing came of it: kube-apiserver adds both before it applies the patch.
            return replace(changes, warnings=answer.warnings, audit_annotations=answer.audit_annotations), ()
        return answer, changes

    def _decide(self, now: float) -> Decision:
        self._finished = True
        if self._parallel:
            self._calls.sort(key=lambda call: call.index)
        patch = () if self._stopped else self._object.patch
        outcome, response = compose(
            self._calls,
            alone=len(self._plan.members) == 1,
            patch=encode_patch(patch) if patch else None,
        )
        return Decision(
            phase=self._plan.phase,
            request=self._request,
            outcome=outcome,
            response=response,
            patch=patch,
            changed_object=self._object.after,
            calls=tuple(self._calls),
            started=self._started,
            ended=now,
            ends=self._ends,
        )

    # ------------------------------------------------------------------------------------------------- terms

    def _has_side_effects(self, policy: Policy) -> bool:
        """Whether asking would change something in the world, for this request."""
        if policy.side_effects is SideEffects.NONE_ON_DRY_RUN:
            return not self._request.dry_run
        return policy.side_effects is not SideEffects.NONE

    def _late(self, turn: Turn) -> Failure:
        policy = turn.member.policy
        if turn.deadline >= self._ends:
            return self._budget_over(f"before worker {policy.worker!r} answered")
        return worker_late(policy)

    def _lookup_late(self, turn: Turn, lookup: Lookup) -> Failure:
        if turn.deadline >= self._ends:
            return self._budget_over(f"before it was known {wanted(lookup)}")
        return lookup_late(turn.member.policy, lookup)

    def _budget_over(self, when: str) -> Failure:
        return budget_over(self._ends - self._started, when)
