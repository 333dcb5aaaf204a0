"""The engine: takes a review and the workers' answers, returns policy calls and a decision. It has no socket and no
clock, and never blocks.

A policy's **turn**: match the current object; look up missing facts; call the policy; record the result. The rules:

* Mutating: one turn at a time, in chain order. Each policy matches and sees the object as the policies before it have
  left it. The first refusal (a denial, or a failure under Fail) ends the chain.
* Reinvocation: at most one more round. When a policy changes the object, every IfNeeded policy called before it is
  marked. If the object has changed, a second round follows: matching comes first, then the mark; only marked policies
  are called. Marks made in the second round count for the policies still to come. (kube-apiserver's rule: a policy that
  was not called in the first round is never called in the second; one that failed open counts as called.)
* Prefetch (mutating only; can be switched off): all policies that match the original object are called in parallel. The
  order of the turns does not change: see ``prefetch``.
* Validating: all turns at once. The engine waits for all of them and collects all refusals.
* The memo lasts for one review. A verdict is a function of (worker, policy, settings, document), so equal calls are
  made once. While a call is open, a second turn with the same key follows it; if the call fails, each follower makes
  its own. Failures are never kept. The call of a policy with side effects for this request is neither shared nor
  cancelled.
* A turn whose call fails takes a stale verdict instead, if the driver has reported one (``fallback``).
* Deadlines: a turn's deadline is min(time of the call + timeoutSeconds, end of the budget). After the end of the
  budget, verdicts in the memo count, also for the turns still to come; every other policy gets a failure
  ``BUDGET_EXHAUSTED``, and its failurePolicy applies. An answer after the turn's deadline is ignored. For the API
  server's own deadline see ``deadlines``.
* A policy that cannot be called, and that matches, fails in its turn.
* A dry run of a policy that has side effects even in a dry run is refused without a call, whatever its failurePolicy.
* A policy in mode warn or audit is called like any other, but its answer has no effect: it refuses nothing, changes
  nothing (what it would change is recorded), marks no policy for reinvocation, and does not end the chain.
* A policy with an entry of its own is called without matching: the API server has matched it.
* A large change is applied in slices: a Step whose ``wake_at`` is now lets the driver serve others before the next one.
  If the budget ends before the last slice, the turn is a failure ``BUDGET_EXHAUSTED``.

* When the client hangs up, nothing is decided: the record has outcome CANCELED, and the turns as far as they got.

Events come one at a time: ``start``, then ``answered``, ``fallback``, ``found``, ``expired``, ``abandoned`` or
``broken`` in any order. An event about a call or lookup that the engine has given up is legal and changes nothing,
because the driver cannot always cancel in time.
"""

from collections.abc import Generator, Mapping
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gateway.cel.program import NeedsAuthorization
from gateway.documents.documents import DocumentBuilder
from gateway.engine.answer_source import CALLED, Origin
from gateway.engine.call_tracker import NO_CALL, CallTracker, InvocationResult
from gateway.engine.chain import PolicyChain
from gateway.engine.deadlines import Budget
from gateway.engine.decision import NO_RESPONSE, Decision, Outcome, TimeLedger
from gateway.engine.field_changes import changed_by
from gateway.engine.lookups import Fact, Lookups
from gateway.engine.match_errors import dry_run_unsupported, undecided, unread
from gateway.engine.open_warnings import FailOpenWarnings
from gateway.engine.plan import Plan
from gateway.engine.policy_call import PolicyCall, PolicyInvocation
from gateway.engine.prefetch import Prefetch
from gateway.engine.response_builder import compose
from gateway.engine.review_state import ReviewState
from gateway.engine.steps import Step
from gateway.engine.trace_context import NO_TRACE, TraceContext
from gateway.engine.verdicts import Answer, Failure, Verdict
from gateway.matching.conditions import AT_ONCE, FINISHED_AT_ONCE, Evaluations
from gateway.matching.outcomes import (
    Matched,
    Matching,
    NeedsEvaluation,
    NeedsNamespace,
    NotMatched,
    Undecidable,
    WrongVersion,
)
from gateway.matching.pipeline import Facts, match
from gateway.matching.selectors import Labels
from gateway.patching.difference import encode_patch
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.policies.model import Phase
from gateway.reasons import Reason
from gateway.review.request import Request, UnreadError

if TYPE_CHECKING:
    from gateway.matching.index import Concerned

NO_NAMESPACES: Final[Mapping[str, Labels]] = MappingProxyType({})

_UNMARKED: Final = "not marked for reinvocation"


class Engine:
    """Decides one review.

    Args:
        request: the request to decide. Its lazy members may raise a ReviewError in any event. Then there is no review
            to decide, and no further event may follow.
        plan: the policies.
        ends: the end of the budget, on the driver's clock.
        received: when the request was received, on the same clock, for the record; None: the time of ``start``.
        read: when its body was complete, for the record.
        namespaces: the labels of the namespaces that need no lookup, by name.
        limits: the limits on workers' patches.
        prefetch: whether mutating policies may be called before their turn.
        trace: the trace context that goes with each call.
        entry: the registered entry that was called, for the record.
        open_warnings: of which ignored failures the user is warned; None: of each policy.
        documents: those of the request that were made in advance; None: none.
    """

    def __init__(  # noqa: PLR0913 - all but the first two by name
        self,
        request: Request,
        plan: Plan,
        *,
        ends: float,
        received: float | None = None,
        read: float | None = None,
        namespaces: Mapping[str, Labels] = NO_NAMESPACES,
        limits: PatchLimits = DEFAULT_LIMITS,
        prefetch: bool = True,
        trace: TraceContext = NO_TRACE,
        entry: str | None = None,
        open_warnings: FailOpenWarnings | None = None,
        documents: DocumentBuilder | None = None,
    ) -> None:
        self._request = request
        self._plan = plan
        self._parallel = plan.phase is Phase.VALIDATING
        self._budget = Budget(ends)
        self._received = received
        self._trace = trace
        self._entry = entry
        self._open_warnings = open_warnings or FailOpenWarnings()
        self.ledger = TimeLedger(read=read)
        """When each stage ended; the driver and its caller write down those that the engine does not see."""
        self._finished = False
        # What is under way in slices, and the turn that it ends; None: the decision.
        self._work: tuple[Generator[None, None, None], PolicyInvocation | None] | None = None
        self._state = ReviewState(request, plan, limits)
        self._object = self._state.object
        self._chain = PolicyChain(plan, self._budget, self._state)
        # Open calls and lookups, and what they have returned.
        ids = count(1)
        known = namespaces.get(request.namespace)
        self._evaluations = Evaluations(AT_ONCE) if plan.has_conditions else FINISHED_AT_ONCE
        facts = Facts(evaluations=self._evaluations)
        if known is not None:
            facts.namespaces[request.namespace] = known
        self._lookups = Lookups(request, ids, facts)
        self._documents = documents or DocumentBuilder(request)
        self._tracker = CallTracker(request, self._budget, ids, trace)
        self._concerned: Concerned = {}
        self._may_prefetch = prefetch and not self._parallel
        self._prefetch: Prefetch | None = None

    # ------------------------------------------------------------------------------------------------ events

    def start(self, now: float) -> Step:
        """Begin. The first turns' deadlines count from ``now``, not from ``received``: a body may arrive slowly."""
        self._budget.started = now if self._received is None else self._received
        self.ledger.decoded = now
        self._concerned = self._plan.index.concerned(self._request)
        self._chain.places = tuple(self._concerned)
        if self._may_prefetch and len(self._concerned) > 1:
            self._prefetch = Prefetch(
                self._request,
                self._plan,
                self._concerned,
                lookups=self._lookups,
                documents=self._documents,
                tracker=self._tracker,
            )
        self._begin_turns(now)
        if self._prefetch is not None and self._chain.active and not self._budget.over(now):
            self._prefetch.start(self._chain.first_to_come, now)
        return self._concluded(now)

    def answered(self, call: PolicyCall, answer: Answer, now: float, origin: Origin = CALLED) -> Step:
        """A call has its answer, or the failure that its transport reports."""
        for result in self._tracker.answered(call, answer, origin, now):
            self._settle(result, now)
        return self._concluded(now)

    def fallback(self, call: PolicyCall, verdict: Verdict, origin: Origin, now: float) -> Step:
        """A stale verdict to use if the call fails; ``origin.age`` is its age now."""
        self._tracker.fallback(call, verdict, origin, now)
        return self._concluded(now)

    def found(self, lookup_id: int, fact: Fact, now: float) -> Step:
        """The result of a lookup: a namespace's labels (None: there is no such namespace), or an Authorization."""
        for invocation in self._lookups.found(lookup_id, fact):
            if self._judges(invocation, self._matching(invocation), now):
                self._invoke(invocation, now)
        self._begin_turns(now)
        if self._prefetch is not None and not self._finished and not self._budget.over(now):
            self._prefetch.resume(self._chain.first_to_come, now)
        return self._concluded(now)

    def expired(self, now: float) -> Step:
        """``wake_at`` has come. If a coarse clock wakes the driver too early, the next Step has a new ``wake_at``."""
        for result in self._tracker.expired(now):
            self._settle(result, now)
        for invocation, lookup in self._lookups.expired(now):
            self._fail_or_skip(invocation, self._budget.lookup_timeout(invocation, lookup), now)
        self._work_on(now)
        return self._concluded(now)

    def abandoned(self, now: float) -> Step:
        """The API server has closed the request: the decision has what was done until now, and no answer."""
        if self._finished:
            return self._flush(None, None)
        if self.ledger.decoded is None:
            # It has waited for its turn to be read.
            self._budget.started = now if self._received is None else self._received
        self._work = None
        open_calls = {id(each): call for call in self._tracker.memo.calls for each in call.invocations}
        for invocation in self._chain.active:
            self._state.give_up(invocation, open_calls.get(id(invocation)), now)
        self._chain.active.clear()
        return self._flush(self._decide(now, canceled=True), None)

    def broken(self, message: str, now: float) -> Step:
        """The gateway raised an unexpected exception: a failure INTERNAL for each policy without a result."""
        if self._finished:
            return self._flush(None, None)
        failure = Failure(reason=Reason.INTERNAL, message=message)
        self._work = None
        self._give_up()
        for invocation in list(self._chain.active):
            self._fail(invocation, failure, now)
        for invocation in self._chain.invocations(now):
            if self._state.due(invocation):
                self._fail(invocation, failure, now)
        return self._flush(self._decide(now), None)

    # ------------------------------------------------------------------------------------------------- turns

    def _concluded(self, now: float) -> Step:
        if not self._parallel:
            self._begin_turns(now)
        if self._finished:
            return self._flush(None, None)
        if not self._chain.active and self._work is None and not self._state.stopped:
            self._begin(self._object.conclude(), None)
        if self._work is not None:
            return self._flush(None, now)
        if not self._chain.active:
            return self._flush(self._decide(now), None)
        prefetched = self._tracker.wake_at() if self._prefetch is not None else None
        return self._flush(None, self._chain.ends if prefetched is None else min(self._chain.ends, prefetched))

    def _flush(self, decision: Decision | None, wake_at: float | None) -> Step:
        if self._evaluations is not FINISHED_AT_ONCE:
            self._evaluations.refill()
        calls, cancels = self._tracker.take_new()
        lookups = self._lookups.take_new() if self._lookups.new else ()
        return Step(calls=calls, lookups=lookups, cancels=cancels, wake_at=wake_at, decision=decision)

    def _begin_turns(self, now: float) -> None:
        if not self._finished:
            for invocation in self._chain.invocations(now):
                self._chain.active.append(invocation)
                if self._judges(invocation, self._matching(invocation), now):
                    self._invoke(invocation, now)

    def _judges(self, invocation: PolicyInvocation, matching: Matching, now: float) -> bool:
        """Whether the policy judges the current object. If not, skip, fail or delay the turn."""
        match matching:
            case NotMatched(why=why):
                self._skip(invocation, why)
            case NeedsNamespace() | NeedsAuthorization() | NeedsEvaluation() as need:
                self._lookups.wait(invocation, need)
            case Undecidable() as undecidable:
                self._fail_or_skip(invocation, undecided(undecidable), now)
            case _ if invocation.round and not self._state.due(invocation):
                self._skip(invocation, _UNMARKED)
            case WrongVersion(message=message):
                self._fail(invocation, Failure(reason=Reason.WRONG_VERSION, message=message), now)
            case Matched():
                return True
        return False

    def _matching(self, invocation: PolicyInvocation) -> Matching:
        index = invocation.index
        if invocation.member.unconditional:
            return self._concerned[index]
        if self._prefetch is not None and self._object.after is None:
            prefetched = self._prefetch.matching(index)
            if prefetched is not None:
                return prefetched
        policy = invocation.member.policy
        try:
            return match(policy, self._concerned[index], self._request, self._object.now, self._lookups.facts)
        except UnreadError as error:
            return unread(error)

    def _fail_or_skip(self, invocation: PolicyInvocation, failure: Failure, now: float) -> None:
        """Matching or the policy's document has failed: record the failure if it counts, else skip the turn."""
        if self._state.counts(failure, invocation):
            self._fail(invocation, failure, now)
        else:
            self._skip(invocation, _UNMARKED)

    def _invoke(self, invocation: PolicyInvocation, now: float) -> None:
        member = invocation.member
        if self._request.dry_run and not member.policy.side_effects.permits_dry_run:
            self._fail(invocation, dry_run_unsupported(member.policy), now)
            return
        unavailable = self._plan.unavailable or member.unavailable
        if unavailable is not None:
            self._fail(invocation, unavailable, now)
            return
        labels = self._lookups.labels(member) if member.inputs.needs_namespace else None
        if isinstance(labels, Failure):
            self._fail(invocation, labels, now)
            return
        if isinstance(labels, NeedsNamespace):
            self._lookups.wait(invocation, labels)
            return
        after = self._object.after
        try:
            document = self._documents.of(member.inputs, after, changed=after is not None, namespace=labels)
        except UnreadError as error:
            self._fail(invocation, Failure(reason=error.reason, message=str(error)), now)
            return
        # timeoutSeconds begins here: the time of lookups does not count against the worker.
        result = self._tracker.invoke(invocation, document, now)
        if result is not None:
            self._settle(result, now)

    # ------------------------------------------------------------------------------------------------ settle

    def _skip(self, invocation: PolicyInvocation, why: str) -> None:
        self._state.skip(invocation, why)
        self._end(invocation)

    def _fail(self, invocation: PolicyInvocation, failure: Failure, now: float) -> None:
        self._settle(InvocationResult(invocation=invocation, answer=failure, origin=NO_CALL), now)

    def _settle(self, result: InvocationResult, now: float) -> None:
        self._begin(self._state.settle(result, now), result.invocation)

    def _begin(self, work: Generator[None, None, None], invocation: PolicyInvocation | None) -> None:
        """Do the first slice of some work, which mostly is all. ``invocation``: the turn that ends with it."""
        self._work = None
        for _ in work:
            self._work = work, invocation
            return
        # Only now: if applying a change raises, ``broken`` must find this turn among the active ones.
        if invocation is not None:
            self._end(invocation)

    def _work_on(self, now: float) -> None:
        """Do the next slice of the work under way."""
        if self._work is None:
            return
        work, invocation = self._work
        if invocation is not None and self._budget.over(now):
            work.close()
            self._fail(invocation, self._budget.before_applied(), now)
        else:
            self._begin(work, invocation)

    def _end(self, invocation: PolicyInvocation) -> None:
        self._chain.end(invocation)
        if self._tracker.claims:
            self._tracker.release(invocation.index)

    def _give_up(self) -> None:
        self._tracker.give_up()
        self._lookups.give_up()

    def _decide(self, now: float, *, canceled: bool = False) -> Decision:
        if self._tracker.memo.calls or self._lookups.open:
            self._give_up()
        state = self._state
        calls = tuple(state.in_chain_order())
        patch = self._object.patch if self._object.changed and not (state.stopped or canceled) else ()
        if canceled:
            outcome, response = Outcome.CANCELED, NO_RESPONSE
        else:
            outcome, response = compose(
                calls,
                alone=len(self._plan.members) == 1,
                uid=self._request.uid,
                patch=encode_patch(patch) if patch else None,
                changed=changed_by(calls, patch, self._object) if patch else {},
                warns_of=lambda policy: self._open_warnings.due(policy, now),
            )
        trace, started = self._trace, self._budget.started
        decision = Decision(
            phase=self._plan.phase,
            entry=self._entry,
            trace=trace,
            plan=self._plan,
            request=self._request,
            outcome=outcome,
            response=response,
            patch=patch,
            changed_object=self._object.after,
            calls=calls,
            is_traced=trace.has_span
            and (
                trace.sampled
                or state.has_failure
                or not (response.allowed or canceled)
                or now - started >= trace.slow_seconds
            ),
            object_state=self._object,
            prefetches=self._tracker.prefetches,
            sampled_calls=self._tracker.sampled_calls(),
            started=started,
            ended=now,
            ends=self._budget.ends,
            ledger=self.ledger,
        )
        # Only now: if building the decision raises, ``broken`` must still be able to decide.
        self._finished = True
        return decision
