"""Shadows: what would another worker have said? Called after the answer has left; compared, and never obeyed.

A policy with ``shadow`` names one: a next version of its worker, or the same rule on another transport. Each time that
the policy has come to a verdict (whoever said it: its worker, or a cache), the shadow is sent the document that shows
the policy's inputs, as far as the shadow claims them, of the object as it was when the policy was called. Its change is
held against the same limits as the policy's.

    =========  ======================================================================================================
    result     meaning
    =========  ======================================================================================================
    same       both allow, and leave equal objects; or both deny, with the same code
    different  anything else: one denies, the codes differ, or the objects that they leave
    failed     the shadow could not judge: it is away or late, or its change was refused
    dropped    there was no room for the comparison: see ``replay``
    =========  ======================================================================================================

What counts is what becomes of the request. Messages, warnings and audit annotations are for people, who word things
anew with each version: the log tells them, and they are no difference. Nor is the form of a change.

Only verdicts are compared: where the policy itself failed, there is nothing to hold the shadow's against. A policy with
side effects for the request has no shadow, or it would have them twice.
"""

import random
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, Final

import structlog

from gateway.engine.call_tracker import has_side_effects
from gateway.engine.decision import Decision
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.verdicts import Deny, Failure
from gateway.patching.equality import equal
from gateway.policies.model import Phase, Policy
from gateway.review.request import Request
from gateway.review.response import denial_code
from gateway.serving.patch_lines import LOGGED_OPERATIONS, PatchLines, about, cut
from gateway.serving.replay import FAILED, Replay, ReplayedCall, Replays
from gateway.telemetry.events import Events
from gateway.telemetry.table import SHADOW_COMPARISONS

_LOG: Final = structlog.get_logger(__name__)

SAME: Final = "same"
DIFFERENT: Final = "different"

FAILING_KEPT: Final = 1000
"""Policies of which it is known with what their shadows fail. With more of them, what was told is told again."""


class ShadowComparison:
    """Calls the shadows. A Consumer of decisions.

    Args:
        replays: runs the comparisons.
        events: is told the results.
        share: of the reviews of which something is compared: from 0, none, to 1, all.
        lines: tells patches in the log.
        draw: a number from 0 up to 1, 1 excluded.
    """

    def __init__(
        self,
        replays: Replays,
        events: Events,
        *,
        share: float = 1.0,
        lines: PatchLines,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._replays = replays
        self._events = events
        self._share = share
        self._lines = lines
        self._draw = draw
        self._failing: dict[tuple[Phase, str], str] = {}

    def decided(self, decision: Decision) -> None:
        """Compare later what policies with a shadow have said."""
        compared = [number for number, call in enumerate(decision.calls) if _is_compared(call, decision.request)]
        if not compared or self._draw() >= self._share:
            return
        for number in compared:
            policy = decision.calls[number].policy
            report = partial(self._events.count, SHADOW_COMPARISONS, policy.phase, policy.qualified_name)
            self._replays.begin(_name(policy), decision, partial(self._compare, number), report)

    async def _compare(self, number: int, replay: Replay) -> str | None:
        turn = next(islice(replay.turns(), number, None))
        call = turn.call
        plan = replay.configuration.shadow_plan(call.policy)
        if plan is None:
            return None  # the configuration has changed since
        request = replay.request(turn.before)
        again = await replay.decide(request, plan, replay.configuration.shadows)
        (shadow,) = again.calls
        if isinstance(shadow.answer, Failure):
            self._log_failure(request, call.policy, shadow.policy, shadow.answer)
            return FAILED
        # Should it fail after this, that is news again.
        self._failing.pop(_name(call.policy), None)
        if _differs(replay, turn, again):
            self._log_difference(request, call, shadow)
            return DIFFERENT
        return SAME

    # ------------------------------------------------------------------------------------------------- the log

    def _log_difference(self, request: Request, call: InvocationRecord, shadow: InvocationRecord) -> None:
        """Both verdicts, with what each changes and the texts that people would read."""
        _LOG.warning(
            "a shadow judges otherwise than its policy",
            source=call.source.value,
            version=call.version,
            verdict=self._verdict(request, call),
            shadow_version=shadow.version,
            shadow_verdict=self._verdict(request, shadow),
            **_who(call.policy, shadow.policy),
            **about(request),
        )

    def _log_failure(self, request: Request, policy: Policy, shadow: Policy, failure: Failure) -> None:
        """The first of a kind: a worker that is away would fill the log."""
        if self._failing.get(_name(policy)) == failure.reason.value:
            return
        if len(self._failing) >= FAILING_KEPT:
            self._failing.clear()
        self._failing[_name(policy)] = failure.reason.value
        _LOG.warning(
            "a shadow could not judge what its policy judged; told again when it fails for another reason",
            reason=failure.reason.value,
            why=cut(failure.message),
            **_who(policy, shadow),
            **about(request),
        )

    def _verdict(self, request: Request, call: InvocationRecord) -> list[str]:
        answer = call.answer
        assert answer is not None  # noqa: S101 - whoever is compared has judged
        verdict = f"denies ({denial_code(answer.code)}): {answer.message}" if isinstance(answer, Deny) else "allows"
        changes = self._lines.reported(request, [call], call.changes or call.would_change)
        warnings = [cut(f"warns: {text}") for text in answer.warnings[:LOGGED_OPERATIONS]]
        return [cut(verdict), *changes, *warnings]


def _is_compared(call: InvocationRecord, request: Request) -> bool:
    """Whether the policy has a shadow, came to a verdict, and may be called again without changing the world."""
    return (
        call.policy.shadow is not None
        and call.answer is not None
        and not isinstance(call.answer, Failure)
        and not has_side_effects(call.policy, request)
    )


def _differs(replay: Replay, turn: ReplayedCall, again: Decision) -> bool:
    answer = turn.call.answer
    (shadow,) = again.calls
    if isinstance(answer, Deny) and isinstance(shadow.answer, Deny):
        return denial_code(answer.code) != denial_code(shadow.answer.code)
    if type(answer) is not type(shadow.answer):
        return True
    # What is not enforced has not changed the object, and would have.
    return not equal(replay.changed(turn.after, turn.call.would_change), again.object)


def _name(policy: Policy) -> tuple[Phase, str]:
    return policy.phase, policy.qualified_name


def _who(policy: Policy, shadow: Policy) -> dict[str, Any]:
    return {
        "policy": policy.qualified_name,
        "phase": policy.phase.value,
        "worker": policy.worker,
        "shadow_worker": shadow.worker,
        "shadow_policy": shadow.policy,
    }
