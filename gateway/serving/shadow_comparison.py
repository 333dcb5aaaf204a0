"""The shadow comparison: compares a policy's verdict with that of its shadow, after the answer was sent.

A policy with ``shadow`` names another worker: a next version of its own, or the same rule on another transport. After
each verdict of the policy, from its worker or from a cache, the gateway sends the shadow a document of the object as it
was when the policy was called, with those of the policy's inputs that the shadow claims. The limits of the policy's
patches apply to the shadow's. A shadow's verdict never affects a request.

    =========  ======================================================================================================
    result     meaning
    =========  ======================================================================================================
    same       both allow, and leave equal objects; or both deny, with the same code
    different  anything else: one denies, the codes differ, or the objects that they leave
    failed     the shadow has no verdict: it is unavailable or late, or its patch was refused
    dropped    too many comparisons were in progress: see ``replay``
    =========  ======================================================================================================

Only the effect on the request is compared. Different messages, warnings and audit annotations are no difference, nor is
the form of a patch; the log has the messages and warnings.

Only verdicts are compared, not failures of the policy. The shadow of a policy with side effects for the request is not
called: the side effects would happen twice.
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
"""Policies whose shadow's last failure is remembered, so that it is logged once. Beyond it, it is logged again."""


class ShadowComparison:
    """Calls the shadows. A DecisionObserver.

    Args:
        replays: runs the comparisons.
        events: counts the results.
        share: of the reviews that are compared: from 0, none, to 1, all.
        lines: formats patches for the log.
        draw: returns a random number from 0 up to 1, 1 excluded.
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
        """Compare the verdicts of policies that have a shadow, later."""
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
        # A failure after this is logged again.
        self._failing.pop(_name(call.policy), None)
        if _differs(replay, turn, again):
            self._log_difference(request, call, shadow)
            return DIFFERENT
        return SAME

    # ------------------------------------------------------------------------------------------------- the log

    def _log_difference(self, request: Request, call: InvocationRecord, shadow: InvocationRecord) -> None:
        """Log both verdicts, each with its changes, message and warnings."""
        _LOG.warning(
            "a shadow's verdict differs from that of its policy",
            source=call.source.value,
            version=call.version,
            verdict=self._verdict(request, call),
            shadow_version=shadow.version,
            shadow_verdict=self._verdict(request, shadow),
            **_who(call.policy, shadow.policy),
            **about(request),
        )

    def _log_failure(self, request: Request, policy: Policy, shadow: Policy, failure: Failure) -> None:
        """Log the first failure of a kind: an unavailable worker would fill the log."""
        if self._failing.get(_name(policy)) == failure.reason.value:
            return
        if len(self._failing) >= FAILING_KEPT:
            self._failing.clear()
        self._failing[_name(policy)] = failure.reason.value
        _LOG.warning(
            "a shadow failed where its policy did not; logged again when it fails for another reason",
            reason=failure.reason.value,
            why=cut(failure.message),
            **_who(policy, shadow),
            **about(request),
        )

    def _verdict(self, request: Request, call: InvocationRecord) -> list[str]:
        answer = call.answer
        assert answer is not None  # noqa: S101 - only verdicts are compared
        verdict = f"denies ({denial_code(answer.code)}): {answer.message}" if isinstance(answer, Deny) else "allows"
        changes = self._lines.reported(request, [call], call.changes or call.would_change)
        warnings = [cut(f"warns: {text}") for text in answer.warnings[:LOGGED_OPERATIONS]]
        return [cut(verdict), *changes, *warnings]


def _is_compared(call: InvocationRecord, request: Request) -> bool:
    """Whether the policy has a shadow and a verdict, and no side effects."""
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
    # A policy that is not enforced has not changed the object: apply what it would have changed.
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
