"""The heart: a review in, asks out, answers in, a decision out. It holds no socket and no clock, and waits for nobody.

A policy's **turn** is: match the object as it now is; find a missing fact; ask; settle. Rules of the machine:

* Mutating, one turn at a time, in chain order. Each policy matches and sees the object as the ones before it left it.
  The first refusal (a denial, or a failure under Fail) ends the chain.
* Reinvocation, at most one more round. After a policy changed the object, every IfNeeded policy asked before it is
  marked. If anything changed, the chain is walked again: matching comes first, then the mark; only marked policies
  are asked. Marks made in the second round count for the policies still to come. (kube-apiserver's rule: a policy
  that was not asked in the first round is never asked in the second; one that failed open counts as asked.)
* Early asks (mutating, unless switched off): every policy that matches the object that came is asked at once, and the
  walk stays as it is: see ``early``.
* Validating, all turns at once. All are waited for; all refusals are gathered.
* The memo, for one review: a verdict is a function of (worker, policy, settings, document), so the same question is
  asked once. While it is open, a second turn with the same question follows it; if it fails, each follower asks for
  itself. Failures are never kept. A policy with side effects for this request neither shares nor is shared, and is
  never cancelled.
* A turn that would end with a failure of its ask takes a stale verdict instead, if one is at hand (``fallback``).
* Time. A turn's deadline is min(asked + timeoutSeconds, end of the budget). When the budget ends, verdicts that are
  there count, in the turns still to come as well; every policy not yet judged is a failure ``BUDGET_EXHAUSTED``, and
  what that means is its failurePolicy's to say. An answer after its deadline is no answer.
  (An end of the API server's own deadline is another matter: ``lateness``.)
* Not knowing is not allowing: a member that cannot be asked fails with its standing, in its turn, if it matches.
* A dry run of a policy that has side effects even then is refused, whatever failurePolicy says, and nobody is asked.
* A policy whose mode is warn or audit is asked like any other. Nothing that it says counts: it refuses nothing, changes
  nothing (what it would change is recorded), marks nobody, ends no chain.
* A policy that has an entry of its own is asked at once: the API server has matched it.

Events come one at a time: ``start``, then ``answered``, ``fallback``, ``found``, ``expired``, ``abandoned`` or
``broken`` in any order. What the diagram can't show: an event about something that the heart has given up is legal and
changes nothing, because the driver cannot always cancel in time.
"""

from itertools import count
from typing import Final

from gateway.cel.program import NeedsAuthorization
from gateway.engine.blame import changed_by
from gateway.engine.call_tracker import NOBODY, CallTracker, Heard
from gateway.engine.composing import compose
from gateway.engine.decision import Decision
from gateway.engine.documenting import Documenting
from gateway.engine.early import EarlyAsks
from gateway.engine.inability import dry_run_unsupported, undecided
from gateway.engine.lateness import Budget
from gateway.engine.lookups import Fact, Lookups
from gateway.engine.origin import ASKED, Origin
from gateway.engine.plan import Plan
from gateway.engine.policy_call import PolicyCall
from gateway.engine.settling import Settling
from gateway.engine.steps import Step
from gateway.engine.turn import Turn
from gateway.engine.verdicts import Answer, Failure, Verdict
from gateway.engine.walking import Walk
from gateway.matching.equivalents import EMPTY, Equivalents
from gateway.matching.outcomes import MATCHED, Matched, Matching, NeedsNamespace, NotMatched, Undecidable, WrongVersion
from gateway.matching.pipeline import match
from gateway.patching.difference import encode_patch
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.policies.model import Phase
from gateway.reasons import Reason
from gateway.review.request import Request

_UNMARKED: Final = "not marked for reinvocation"


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
        early_asks: whether mutating policies may be asked before their turn.
        traceparent: of W3C Trace Context; goes with each call.
    """

    def __init__(  # noqa: PLR0913 - all but the first two by name
        self,
        request: Request,
        plan: Plan,
        *,
        ends: float,
        came: float | None = None,
        limits: PatchLimits = DEFAULT_LIMITS,
        equivalents: Equivalents = EMPTY,
        early_asks: bool = True,
        traceparent: str = "",
    ) -> None:
        self._request = request
        self._plan = plan
        self._parallel = plan.phase is Phase.VALIDATING
        self._budget = Budget(ends)
        self._came = came
        self._finished = False
        self._settling = Settling(request, plan, limits)
        self._object = self._settling.object
        self._walk = Walk(plan, self._budget, self._settling)
        # What is open, and what is known.
        ids = count(1)
        self._lookups = Lookups(request, ids, equivalents)
        self._documents = Documenting(request, self._lookups)
        self._tracker = CallTracker(request, self._budget, ids, traceparent)
        self._early: EarlyAsks | None = None
        if early_asks and not self._parallel and len(plan.members) > 1:
            self._early = EarlyAsks(
                request, plan, lookups=self._lookups, documents=self._documents, tracker=self._tracker
            )

    # ------------------------------------------------------------------------------------------------ events

    def start(self, now: float) -> Step:
        """Begin. The time of the first turns runs from ``now``, not from when the request came: a body may be slow."""
        self._budget.started = now if self._came is None else self._came
        self._begin_turns(now)
        if self._early is not None and self._walk.active and not self._budget.over(now):
            self._early.ask(self._walk.first_to_come, now)
        return self._concluded(now)

    def answered(self, call: PolicyCall, answer: Answer, now: float, origin: Origin = ASKED) -> Step:
        """A call has its answer, or its transport says why there is none."""
        for heard in self._tracker.answered(call, answer, origin, now):
            self._settle(heard, now)
        return self._step(now)

    def fallback(self, call: PolicyCall, verdict: Verdict, origin: Origin, now: float) -> Step:
        """A stale verdict is at hand, should the call fail; ``origin.age`` is its age at this moment."""
        self._tracker.fallback(call, verdict, origin, now)
        return self._step(now)

    def found(self, lookup_id: int, fact: Fact, now: float) -> Step:
        """What was looked up: a namespace's labels, None if there is no such namespace; or an Authorization."""
        for turn in self._lookups.found(lookup_id, fact):
            self._match(turn, now)
        self._begin_turns(now)
        if self._early is not None and not self._finished and not self._budget.over(now):
            self._early.ask_again(self._walk.first_to_come, now)
        return self._concluded(now)

    def expired(self, now: float) -> Step:
        """Time has passed: ``wake_at`` has come (or nearly: a clock may be coarse, then the next Step says when)."""
        for heard in self._tracker.expired(now):
            self._settle(heard, now)
        for turn, lookup in self._lookups.late(now):
            self._cannot_tell(turn, self._budget.lookup_late(turn, lookup), now)
        return self._step(now)

    def abandoned(self) -> Step:
        """Nobody waits for the decision any more: the API server has hung up."""
        self._finished = True
        self._give_up()
        return self._flush(None, None)

    def broken(self, message: str, now: float) -> Step:
        """An exception of our own: a failure INTERNAL of each policy not yet judged; what was judged stays judged."""
        if self._finished:
            return self._flush(None, None)
        failure = Failure(reason=Reason.INTERNAL, message=message)
        self._give_up()
        for turn in list(self._walk.active):
            self._fail(turn, failure, now)
        for turn in self._walk.turns(now):
            if self._settling.due(turn):
                self._fail(turn, failure, now)
        return self._flush(self._decide(now), None)

    # ------------------------------------------------------------------------------------------------- turns

    def _step(self, now: float) -> Step:
        self._begin_turns(now)
        return self._concluded(now)

    def _concluded(self, now: float) -> Step:
        if self._finished:
            return self._flush(None, None)
        if not self._walk.active:
            return self._flush(self._decide(now), None)
        early = self._tracker.wake_at() if self._early is not None else None
        return self._flush(None, self._walk.ends if early is None else min(self._walk.ends, early))

    def _flush(self, decision: Decision | None, wake_at: float | None) -> Step:
        calls, cancels = self._tracker.taken()
        return Step(calls=calls, lookups=self._lookups.taken(), cancels=cancels, wake_at=wake_at, decision=decision)

    def _begin_turns(self, now: float) -> None:
        if not self._finished:
            for turn in self._walk.turns(now):
                self._walk.active.append(turn)
                self._match(turn, now)

    def _match(self, turn: Turn, now: float) -> None:
        match self._matching(turn):
            case NotMatched(why=why):
                self._pass_over(turn, why)
            case NeedsNamespace() | NeedsAuthorization() as need:
                self._lookups.wait(turn, need)
            case Undecidable() as undecidable:
                self._cannot_tell(turn, undecided(undecidable), now)
            case _ if not self._settling.due(turn):
                self._pass_over(turn, _UNMARKED)
            case WrongVersion(message=message):
                self._fail(turn, Failure(reason=Reason.WRONG_VERSION, message=message), now)
            case Matched():
                self._judge(turn, now)

    def _matching(self, turn: Turn) -> Matching:
        if turn.member.registered:
            return MATCHED
        early = None if self._early is None or self._object.after is not None else self._early.matching(turn.index)
        if early is not None:
            return early
        return match(turn.member.policy, self._request, self._object.now, self._lookups.facts)

    def _cannot_tell(self, turn: Turn, failure: Failure, now: float) -> None:
        """Whether the policy judges, or what about, is not known, and will not be."""
        if self._settling.counts(failure, turn):
            self._fail(turn, failure, now)
        else:
            self._pass_over(turn, _UNMARKED)

    def _judge(self, turn: Turn, now: float) -> None:
        member = turn.member
        if self._request.dry_run and not member.policy.side_effects.permits_dry_run:
            self._fail(turn, dry_run_unsupported(member.policy), now)
            return
        if member.standing is not None:
            self._fail(turn, member.standing, now)
            return
        match self._documents.of(member, self._object):
            case Failure() as failure:
                self._fail(turn, failure, now)
            case NeedsNamespace() as need:
                self._lookups.wait(turn, need)
            case document:
                # What had to be looked up is not the worker's time: timeoutSeconds begins here.
                heard = self._tracker.ask(turn, document, now)
                if heard is not None:
                    self._settle(heard, now)

    # ------------------------------------------------------------------------------------------------ settle

    def _pass_over(self, turn: Turn, why: str) -> None:
        self._settling.pass_over(turn, why)
        self._end(turn)

    def _fail(self, turn: Turn, failure: Failure, now: float) -> None:
        self._settle(Heard(turn=turn, answer=failure, origin=NOBODY), now)

    def _settle(self, heard: Heard, now: float) -> None:
        self._settling.settle(heard, now)
        # Not before: should applying a change break the heart, this turn is one that was not judged.
        self._end(heard.turn)

    def _end(self, turn: Turn) -> None:
        self._walk.end(turn)
        self._tracker.release(turn.index)

    def _give_up(self) -> None:
        self._tracker.give_up()
        self._lookups.give_up()

    def _decide(self, now: float) -> Decision:
        self._give_up()
        settling = self._settling
        calls = tuple(settling.in_chain_order())
        patch = () if settling.stopped else self._object.patch
        outcome, response = compose(
            calls,
            alone=len(self._plan.members) == 1,
            patch=encode_patch(patch) if patch else None,
            changed=changed_by(calls, patch, self._object) if patch else {},
        )
        decision = Decision(
            phase=self._plan.phase,
            request=self._request,
            outcome=outcome,
            response=response,
            patch=patch,
            changed_object=self._object.after,
            calls=calls,
            evolved=self._object,
            early_asks=self._tracker.early_asks,
            started=self._budget.started,
            ended=now,
            ends=self._budget.ends,
        )
        # Not before: should this break, there still is something to decide.
        self._finished = True
        return decision
