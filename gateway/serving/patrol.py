"""The idempotence patrol: is a mutation done once it is done?

"An idempotent mutating admission webhook is able to successfully process an object it has already admitted and
potentially modified. The admission can be applied multiple times without changing the result beyond the initial
application." (Kubernetes, dynamic admission control.) One that is not grows objects with every update, or fights with
controllers for ever, and nobody sees who began. So of a sampled share of mutations, after the answer has left:

* Each policy that changed something is put the object as it was right after its own change, alone. If it changes that
  again, it is **unstable**, and named.
* Then all policies of the review but those are put the final object, as one chain. If that comes out changed, they are
  unstable as a set, and those that changed something are named.

    =========  ======================================================================================================
    result     meaning
    =========  ======================================================================================================
    stable     asked again, it changed nothing; or it is not about its own result
    unstable   it changed its own result, or denied it
    failed     nobody can tell: a worker could not judge, or the patrol's time was over
    dropped    (patrols only) too many were under way, or the object is larger than any that is stored
    =========  ======================================================================================================

Who is asked: policies without side effects for the request, and enforced. The workers are asked, never the cache: that
would repeat what was said. An answer is never delayed or changed by it. A gateway that drains does not patrol.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import monotonic
from typing import Any, Final, NamedTuple, Protocol

import structlog

from gateway.deciding.call import Call
from gateway.deciding.decision import Decision, Outcome
from gateway.deciding.heart import Heart
from gateway.deciding.plan import Member, Plan
from gateway.deciding.verdicts import Failure
from gateway.patching.application import apply_json_patch
from gateway.patching.difference import encode_patch
from gateway.patching.errors import PatchError
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.policies.model import Phase, Policy, SideEffects
from gateway.review.errors import ReviewError
from gateway.review.request import Request
from gateway.serving.driver import Driver
from gateway.serving.loaded_configuration import LoadedConfiguration, Target
from gateway.serving.patrol_log import PatrolLog
from gateway.serving.walk import with_object

_LOG: Final = structlog.get_logger(__name__)

STABLE: Final = "stable"
UNSTABLE: Final = "unstable"
FAILED: Final = "failed"
DROPPED: Final = "dropped"

AFTER_SECONDS: Final = 0.05
"""From the decision to the first ask: the answer leaves in the same turn of the loop, which takes a few milliseconds;
a burst of reviews comes first."""

PATROL_SECONDS: Final = 30.0
"""Budget of one patrol, all its asks together: the longest that a webhook may take."""

PATROLS: Final = 8
"""Patrols under way at once. A patrol is a few calls of some milliseconds: at the default share of one in a hundred,
eight at a time keep up with thousands of mutations a second."""

OBJECT_BYTES: Final = 1_600_000
"""The largest object that is patrolled: etcd stores no more than 1.5 MiB (``--max-request-bytes``). Eight of them, each
as text and parsed, before and after: less than 100 MB."""


class PatrolEvents(Protocol):
    """Who counts patrols."""

    def patrolled_policy(self, policy: Policy, result: str) -> None:
        """A policy was put its own result."""

    def patrolled(self, result: str) -> None:
        """A patrol is over: what the policies came to as a set; or it was dropped."""


class _Result(NamedTuple):
    """A policy's call, and the object right after its change."""

    call: Call
    object: Any


class Patrol:
    """Asks again. A Consumer of decisions.

    Args:
        configuration: gives the one in force.
        events: counts.
        share: of the mutations that are patrolled: from 0, none, to 1, all.
        patch_limits: of the changes that workers ask for.
        key: with which values that must not be read are hashed in the log.
        draw: a number from 0 up to 1, 1 excluded.
    """

    def __init__(
        self,
        configuration: Callable[[], LoadedConfiguration],
        events: PatrolEvents,
        *,
        share: float,
        patch_limits: PatchLimits = DEFAULT_LIMITS,
        key: bytes,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._configuration = configuration
        self._events = events
        self._share = share
        self._patch_limits = patch_limits
        self._log = PatrolLog(key)
        self._draw = draw
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False

    def decided(self, decision: Decision) -> None:
        """Patrol it later, if it is one of the sample."""
        if self._stopped or decision.phase is not Phase.MUTATING or not decision.response.allowed:
            return
        if not any(call.changes and asks_freely(call.policy, decision.request) for call in decision.calls):
            return
        if self._draw() >= self._share:
            return
        if len(self._tasks) >= PATROLS or len(decision.request.raw("object") or b"") > OBJECT_BYTES:
            self._events.patrolled(DROPPED)
            return
        configuration = self._configuration()
        # At once: a configuration that nobody holds may go.
        configuration.begin()
        task = asyncio.create_task(self._patrol(configuration, decision))
        self._tasks.add(task)
        task.add_done_callback(partial(self._over, configuration))

    def _over(self, configuration: LoadedConfiguration, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        configuration.end()

    def stop(self) -> None:
        """Break off what is under way, and begin nothing more."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()

    async def idle(self) -> None:
        """Wait until nothing is under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # ---------------------------------------------------------------------------------------------- one patrol

    async def _patrol(self, configuration: LoadedConfiguration, decision: Decision) -> None:
        await asyncio.sleep(AFTER_SECONDS)
        try:
            result = await self._outcome(configuration, decision)
        except (PatchError, ReviewError):
            # The changes of one review may together pass the limits that each kept, or somebody may look closer.
            result = FAILED
        except Exception:  # noqa: BLE001 - logged; nobody waits for it
            _LOG.exception("a patrol failed inside the gateway", uid=decision.request.uid)
            result = FAILED
        self._events.patrolled(result)

    async def _outcome(self, configuration: LoadedConfiguration, decision: Decision) -> str:
        ends = monotonic() + PATROL_SECONDS
        members = _members(configuration, decision)
        unstable: set[int] = set()
        for call, result in _results(decision, self._patch_limits):
            member = members.get(call.index)
            if member is None:
                continue
            again = await self._decide(configuration, [member], decision.request, result, ends)
            named = _named(again)
            self._events.patrolled_policy(call.policy, named)
            if named is UNSTABLE:
                unstable.add(call.index)
                self._log.policy(decision, call, again)
        chain = [member for index, member in sorted(members.items()) if index not in unstable]
        again = await self._decide(configuration, chain, decision.request, decision.object, ends)
        named = _named(again)
        if named is UNSTABLE:
            self._log.chain(decision, again)
        return named

    async def _decide(
        self, configuration: LoadedConfiguration, members: Sequence[Member], request: Request, result: Any, ends: float
    ) -> Decision:
        plan = Plan(phase=Phase.MUTATING, members=tuple(members))
        heart = Heart(with_object(request, result), plan, ends=ends, limits=self._patch_limits)
        driver = Driver(request.uid, heart, asker=configuration.workers, namespaces=configuration.namespaces)
        return await driver.decide()


def _members(configuration: LoadedConfiguration, decision: Decision) -> dict[int, Member]:
    """Who may be asked again, by place in the decision's chain.

    The configuration may have changed since: then a policy that is not the same any more is left out.
    """
    plan = configuration.plan(Target(Phase.MUTATING))
    standing = {} if plan is None else {id(member.policy): member for member in plan.members}
    return {
        call.index: standing[id(call.policy)]
        for call in decision.calls
        if call.enforced and id(call.policy) in standing and asks_freely(call.policy, decision.request)
    }


def asks_freely(policy: Policy, request: Request) -> bool:
    """Whether asking changes nothing in the world, for this request."""
    if policy.side_effects is SideEffects.NONE_ON_DRY_RUN:
        return request.dry_run
    return policy.side_effects is SideEffects.NONE


def _results(decision: Decision, limits: PatchLimits) -> Iterator[_Result]:
    """What each policy that changed something left behind, the last time it did."""
    last = {call.index: number for number, call in enumerate(decision.calls) if call.changes}
    current = decision.request.object
    for number, call in enumerate(decision.calls):
        if call.changes:
            current = apply_json_patch(current, encode_patch(call.changes), limits=limits)
            if last[call.index] == number:
                yield _Result(call, current)


def _named(again: Decision) -> str:
    if again.patch or again.outcome is Outcome.DENIED:
        return UNSTABLE
    return FAILED if any(isinstance(call.answer, Failure) for call in again.calls) else STABLE
