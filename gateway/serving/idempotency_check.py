"""The idempotency check: would mutating policies change their own result when called again?

"An idempotent mutating admission webhook is able to successfully process an object it has already admitted and
potentially modified. The admission can be applied multiple times without changing the result beyond the initial
application." (Kubernetes, dynamic admission control.) A policy that is not idempotent grows objects with every update,
or reverts a controller's changes for ever, and its cause is hard to find. So for a sample of the mutations, after the
answer was sent:

* The check calls each policy that changed something, alone, with the object as it was after that change. If the policy
  changes the object again, it is **unstable**, and the log names it.
* Then the check calls all other policies of the review, as one chain, with the final object. If they change it, they
  are unstable as a set, and the log names those that changed something.

    =========  ======================================================================================================
    result     meaning
    =========  ======================================================================================================
    stable     called again, the policy changed nothing; or it does not match its own result
    unstable   the policy changed its own result, or denied it
    failed     the check has no result: see ``replay``
    dropped    (whole checks only) too many checks were in progress: see ``replay``
    =========  ======================================================================================================

Only enforced policies without side effects for the request are called.
"""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import structlog

from gateway.engine.call_tracker import has_side_effects
from gateway.engine.decision import Decision, Outcome
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.plan import Member, Plan
from gateway.engine.verdicts import Deny, Failure
from gateway.matching.index import RuleIndex
from gateway.policies.model import Phase
from gateway.serving.patch_lines import PatchLines, about, cut
from gateway.serving.plans import Target
from gateway.serving.replay import FAILED, Replay, Replays
from gateway.telemetry.events import Events
from gateway.telemetry.table import IDEMPOTENCY_CHECKED_POLICIES, IDEMPOTENCY_CHECKS

_LOG: Final = structlog.get_logger(__name__)

STABLE: Final = "stable"
UNSTABLE: Final = "unstable"


class IdempotencyCheck:
    """Calls policies with their own results. A DecisionObserver.

    Args:
        replays: runs the checks.
        events: counts the results.
        share: of the mutations that are checked: from 0, none, to 1, all.
        lines: formats patches for the log.
        draw: returns a random number from 0 up to 1, 1 excluded.
    """

    def __init__(
        self,
        replays: Replays,
        events: Events,
        *,
        share: float,
        lines: PatchLines,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._replays = replays
        self._events = events
        self._share = share
        self._lines = lines
        self._draw = draw

    def decided(self, decision: Decision) -> None:
        """Check the mutation later, if it is one of the sample."""
        if decision.phase is not Phase.MUTATING or not decision.response.allowed:
            return
        if not any(call.changes and not has_side_effects(call.policy, decision.request) for call in decision.calls):
            return
        if self._draw() < self._share:
            self._replays.begin(
                IdempotencyCheck, decision, self._check, partial(self._events.count, IDEMPOTENCY_CHECKS)
            )

    async def _check(self, replay: Replay) -> str:
        members = _members(replay)
        unstable: set[int] = set()
        # A reinvoked policy was called twice: its own result is that of the last call.
        last = {turn.call.index: turn for turn in replay.turns() if turn.call.changes}
        for index, (call, _, after) in last.items():
            if index not in members:
                continue
            again = await _decide(replay, [members[index]], after)
            result = _result(again)
            self._events.count(IDEMPOTENCY_CHECKED_POLICIES, call.policy.phase, call.policy.qualified_name, result)
            if result is UNSTABLE:
                unstable.add(index)
                self._log_policy(replay.decision, call, again)
        chain = [member for index, member in sorted(members.items()) if index not in unstable]
        again = await _decide(replay, chain, replay.decision.object)
        result = _result(again)
        if result is UNSTABLE:
            self._log_chain(replay.decision, again)
        return result

    # ------------------------------------------------------------------------------------------------- the log

    def _log_policy(self, decision: Decision, call: InvocationRecord, again: Decision) -> None:
        """Log that the policy of ``call``, called with its own result, decided ``again``."""
        _LOG.warning(
            "a policy changes its own result when called again: it is not idempotent",
            policy=call.policy.qualified_name,
            worker=call.policy.worker,
            version=call.version,
            first=self._lines.reported(decision.request, [call], call.changes),
            again=self._lines.reported(decision.request, again.calls, again.patch) + _denials(again),
            **about(decision.request),
        )

    def _log_chain(self, decision: Decision, again: Decision) -> None:
        """Log that policies, each of which is stable, decided ``again`` as a set."""
        _LOG.warning(
            "policies that are idempotent one by one change their common result: they are not idempotent as a set",
            policies=list(dict.fromkeys(call.policy.qualified_name for call in again.calls if _disturbs(call))),
            first=self._lines.reported(decision.request, decision.calls, decision.patch),
            again=self._lines.reported(decision.request, again.calls, again.patch) + _denials(again),
            **about(decision.request),
        )


def _members(replay: Replay) -> dict[int, Member]:
    """The policies that may be called again, by index in the decision's chain.

    A policy that a reload has changed since is left out.
    """
    plan = replay.configuration.plan(Target(Phase.MUTATING))
    availability = {} if plan is None else plan.by_policy
    return {
        call.index: availability[id(call.policy)]
        for call in replay.decision.calls
        if call.enforced
        and id(call.policy) in availability
        and not has_side_effects(call.policy, replay.decision.request)
    }


async def _decide(replay: Replay, members: Sequence[Member], current: object) -> Decision:
    index = RuleIndex([member.policy for member in members])
    plan = Plan(phase=Phase.MUTATING, members=tuple(members), index=index)
    return await replay.decide(replay.request(current), plan, replay.configuration.workers)


def _result(again: Decision) -> str:
    if again.patch or again.outcome is Outcome.DENIED:
        return UNSTABLE
    return FAILED if any(isinstance(call.answer, Failure) for call in again.calls) else STABLE


def _disturbs(call: InvocationRecord) -> bool:
    return bool(call.changes) or (call.enforced and isinstance(call.answer, Deny))


def _denials(again: Decision) -> list[str]:
    return [cut(f"denies: {call.answer.message}") for call in again.calls if isinstance(call.answer, Deny)]
