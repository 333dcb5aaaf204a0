"""Shadows: what would another worker have said? Asked after the answer has left; compared, and never obeyed.

A policy with ``shadow`` names one: a next version of its worker, or the same rule on another transport. Each time that
the policy has come to a verdict (whoever said it: its worker, or a cache), the shadow is put the document that shows
the policy's inputs, as far as the shadow claims them, of the object as it was when the policy was asked. Its change is
held against the same limits as the policy's.

    =========  ======================================================================================================
    result     meaning
    =========  ======================================================================================================
    same       both allow, and leave equal objects; or both deny, with the same code
    different  anything else: one denies, the codes differ, or the objects that they leave
    failed     the shadow could not judge: it is away or late, or its change was refused
    dropped    the comparison found no room: too many were under way
    =========  ======================================================================================================

What counts is what becomes of the request. Messages, warnings and audit annotations are for people, who word things
anew with each version: the log tells them, and they are no difference. Nor is the form of a change.

Only verdicts are compared: where the policy itself failed, there is nothing to hold the shadow's against. A policy with
side effects for the request has no shadow, or it would have them twice. No answer is delayed or changed by any of it;
nothing is cached, nothing is asked early, and a gateway that drains compares nothing.
"""

import asyncio
import random
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Final, Protocol

import structlog

from gateway.deciding.call import Call
from gateway.deciding.decision import Decision
from gateway.deciding.heart import Heart
from gateway.deciding.plan import Plan
from gateway.deciding.verdicts import Deny, Failure
from gateway.patching.application import apply_json_patch
from gateway.patching.difference import encode_patch
from gateway.patching.equality import equal
from gateway.patching.errors import PatchError
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.policies.model import Policy
from gateway.review.errors import ReviewError
from gateway.review.request import Request
from gateway.review.response import denial_code
from gateway.serving.driver import Driver
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.serving.patrol import asks_freely
from gateway.serving.shadow_log import ShadowLog
from gateway.serving.shadow_room import ShadowRoom
from gateway.serving.walk import with_object

_LOG: Final = structlog.get_logger(__name__)

SAME: Final = "same"
DIFFERENT: Final = "different"
FAILED: Final = "failed"
DROPPED: Final = "dropped"

AFTER_SECONDS: Final = 0.02
"""From the decision to the ask: the answer leaves in the same turn of the loop, which takes a few milliseconds."""

COMPARISON_SECONDS: Final = 30.0
"""Budget of one comparison: the longest that a policy may take. Its own timeoutSeconds is the shadow's as well."""


class ShadowEvents(Protocol):
    """Who counts comparisons."""

    def compared(self, policy: Policy, result: str) -> None:
        """A verdict of this policy was compared with its shadow's, or was not."""


class Shadowing:
    """Asks the shadows. A Consumer of decisions.

    Args:
        configuration: gives the one in force.
        events: counts.
        share: of the reviews of which something is compared: from 0, none, to 1, all.
        patch_limits: of the changes that workers ask for.
        key: with which values that must not be read are hashed in the log.
        draw: a number from 0 up to 1, 1 excluded.
    """

    def __init__(
        self,
        configuration: Callable[[], LoadedConfiguration],
        events: ShadowEvents,
        *,
        share: float = 1.0,
        patch_limits: PatchLimits = DEFAULT_LIMITS,
        key: bytes,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._configuration = configuration
        self._events = events
        self._share = share
        self._patch_limits = patch_limits
        self._log = ShadowLog(key)
        self._draw = draw
        self._room = ShadowRoom()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False

    def decided(self, decision: Decision) -> None:
        """Compare later what policies with a shadow have said."""
        if self._stopped:
            return
        compared = [number for number, call in enumerate(decision.calls) if _is_compared(call, decision.request)]
        if not compared or self._draw() >= self._share:
            return
        configuration = self._configuration()
        size = sum(memoryview(raw).nbytes for raw in decision.request.members.values())
        for number in compared:
            self._begin(configuration, decision, number, size)

    def stop(self) -> None:
        """Break off what is under way, and begin nothing more."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()

    async def idle(self) -> None:
        """Wait until nothing is under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # ------------------------------------------------------------------------------------------ one comparison

    def _begin(self, configuration: LoadedConfiguration, decision: Decision, number: int, size: int) -> None:
        policy = decision.calls[number].policy
        plan = configuration.shadow_plan(policy)
        if plan is None:
            return  # the configuration has changed since
        if not self._room.take(policy, size):
            self._events.compared(policy, DROPPED)
            return
        # At once: a configuration that nobody holds may go.
        configuration.begin()
        task = asyncio.create_task(self._compare(configuration, plan, decision, number))
        self._tasks.add(task)
        task.add_done_callback(partial(self._over, configuration, policy, size))

    def _over(self, configuration: LoadedConfiguration, policy: Policy, size: int, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._room.leave(policy, size)
        configuration.end()

    async def _compare(self, configuration: LoadedConfiguration, plan: Plan, decision: Decision, number: int) -> None:
        await asyncio.sleep(AFTER_SECONDS)
        try:
            result = await self._result(configuration, plan, decision, number)
        except (PatchError, ReviewError):
            # The changes of one review may together pass the limits that each kept, or somebody may look closer.
            result = FAILED
        except Exception:  # noqa: BLE001 - logged; nobody waits for it
            _LOG.exception("comparing with a shadow failed inside the gateway", uid=decision.request.uid)
            result = FAILED
        self._events.compared(decision.calls[number].policy, result)

    async def _result(self, configuration: LoadedConfiguration, plan: Plan, decision: Decision, number: int) -> str:
        call = decision.calls[number]
        request = self._as_it_was(decision, number)
        heart = Heart(request, plan, ends=monotonic() + COMPARISON_SECONDS, limits=self._patch_limits)
        driver = Driver(request.uid, heart, asker=configuration.shadows, namespaces=configuration.namespaces)
        told = await driver.decide()
        (shadow,) = told.calls
        if isinstance(shadow.answer, Failure):
            self._log.fails(request, call.policy, shadow.policy, shadow.answer)
            return FAILED
        if self._differs(request, call, told):
            self._log.differs(request, call, shadow)
            return DIFFERENT
        self._log.judges(call.policy)
        return SAME

    def _as_it_was(self, decision: Decision, number: int) -> Request:
        """The request as it was when the policy of this call was asked."""
        before = [call.changes for call in decision.calls[:number] if call.changes]
        if not before:
            return decision.request
        current = decision.request.object
        for changes in before:
            current = apply_json_patch(current, encode_patch(changes), limits=self._patch_limits)
        return with_object(decision.request, current)

    def _differs(self, request: Request, call: Call, told: Decision) -> bool:
        (shadow,) = told.calls
        if isinstance(call.answer, Deny) and isinstance(shadow.answer, Deny):
            return denial_code(call.answer.code) != denial_code(shadow.answer.code)
        if type(call.answer) is not type(shadow.answer):
            return True
        after = request.object
        changes = call.changes or call.would_change
        if changes:
            after = apply_json_patch(after, encode_patch(changes), limits=self._patch_limits)
        return not equal(after, told.object)


def _is_compared(call: Call, request: Request) -> bool:
    """Whether the policy has a shadow, came to a verdict, and may be asked again without changing the world."""
    return (
        call.policy.shadow is not None
        and call.answer is not None
        and not isinstance(call.answer, Failure)
        and asks_freely(call.policy, request)
    )
