"""Calls policies again after an answer has left: what the idempotency check and the shadows have in common.

A replay is a task in the background. It works on a decision and on the configuration that was in force when the
decision was made, and comes to a result:

    =======  =========================================================================================================
    failed   nobody can tell: a worker could not judge, the replay's time was over, or it broke inside the gateway
    dropped  it was not begun: too many are under way, or they hold too much
    (other)  what the consumer makes of it
    =======  =========================================================================================================

All replays of a gateway share one bound on their number and on the bytes of the requests that they hold. What finds no
room is dropped and counted, never kept for later. The workers are called, never the cache; nothing is prefetched, and
no answer is delayed or changed. A gateway that drains replays nothing.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterator
from functools import partial
from time import monotonic
from typing import Any, Final, NamedTuple

import structlog
from msgspec import Struct

from gateway.engine.decision import Decision
from gateway.engine.engine import Engine
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.plan import Plan
from gateway.engine.policy_caller import PolicyCaller
from gateway.patching.application import apply_json_patch
from gateway.patching.difference import Operation, encode_patch
from gateway.patching.errors import PatchError
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.review.request import Request, ReviewError
from gateway.serving.dispatch_simulator import with_object
from gateway.serving.driver import Driver
from gateway.serving.loaded_configuration import LoadedConfiguration

_LOG: Final = structlog.get_logger(__name__)

FAILED: Final = "failed"
DROPPED: Final = "dropped"

AFTER_SECONDS: Final = 0.02
"""From the decision to the first call: the answer leaves in the same turn of the loop, which takes milliseconds."""

REPLAY_SECONDS: Final = 30.0
"""Budget of one replay, all its calls together: the longest that a webhook may take."""

REPLAYS_OF_ONE: Final = 64
"""Replays of one subject at once: of one policy's shadow, or of the idempotency check. One that hangs takes no room of
the others. By Little's law 2,000 a second, as many as a process decides, take 60 of 30 ms each: the pause before it,
and the worker."""

REPLAYS: Final = 256
"""Replays of all subjects together: four that hang, or as many as a process has reviews for."""

HELD_BYTES: Final = 16_000_000
"""Bytes of the requests that are held for replays: five updates of the largest objects that etcd stores (1.5 MiB,
before and after). As text and parsed, with what the policies make of them: less than 100 MB."""


class ReplayedCall(NamedTuple):
    """A policy's call, with the object as the policy saw it and as it left it."""

    call: InvocationRecord
    before: Any
    after: Any


class Replay(Struct, frozen=True, kw_only=True):
    """One replay: of which decision, under which configuration, until when (``time.monotonic``)."""

    decision: Decision
    configuration: LoadedConfiguration
    ends: float
    limits: PatchLimits

    def turns(self) -> Iterator[ReplayedCall]:
        """The decision's calls, in order.

        Raises:
            PatchError: the changes of one review may together pass the limits that each of them kept.
            ReviewError: nobody had looked into the object until now, and it cannot be read.
        """
        current = self.decision.request.object
        for call in self.decision.calls:
            before, current = current, self.changed(current, call.changes)
            yield ReplayedCall(call, before, current)

    def changed(self, before: Any, changes: tuple[Operation, ...]) -> Any:
        """An object with these changes. Raises PatchError."""
        return apply_json_patch(before, encode_patch(changes), limits=self.limits) if changes else before

    def request(self, current: Any) -> Request:
        """The decision's request with an object of one of its turns; unchanged, it has the API server's own bytes."""
        request = self.decision.request
        return request if current is request.object else with_object(request, current)

    async def decide(self, request: Request, plan: Plan, policy_caller: PolicyCaller) -> Decision:
        """What the policies of ``plan`` come to, called through ``policy_caller``. Raises ReviewError."""
        engine = Engine(request, plan, ends=self.ends, namespaces=self.configuration.namespaces, limits=self.limits)
        driver = Driver(request.uid, engine, caller=policy_caller)
        return await driver.decide()


class Replays:
    """The replays of a gateway.

    Args:
        configuration: gives the one in force.
        patch_limits: of the changes that workers ask for.
    """

    def __init__(
        self, configuration: Callable[[], LoadedConfiguration], *, patch_limits: PatchLimits = DEFAULT_LIMITS
    ) -> None:
        self._configuration = configuration
        self._patch_limits = patch_limits
        self._tasks: set[asyncio.Task[None]] = set()
        self._by_subject: Counter[Hashable] = Counter()
        self._bytes = 0
        self._stopped = False

    def begin(
        self,
        subject: Hashable,
        decision: Decision,
        replay: Callable[[Replay], Awaitable[str | None]],
        report: Callable[[str], object],
    ) -> None:
        """Begin a replay, where there is room for it.

        Args:
            subject: what the replay is of; each subject has room of its own.
            decision: what is replayed.
            replay: replays it, and gives the result; None: there is nothing to replay any more.
            report: called once with the result, if there is one, unless the gateway stops.
        """
        if self._stopped:
            return
        size = sum(memoryview(raw).nbytes for raw in decision.request.members.values())
        if (
            len(self._tasks) >= REPLAYS
            or self._by_subject[subject] >= REPLAYS_OF_ONE
            or self._bytes + size > HELD_BYTES
        ):
            report(DROPPED)
            return
        self._by_subject[subject] += 1
        self._bytes += size
        configuration = self._configuration()
        # At once: a configuration that nobody holds may go.
        configuration.begin()
        task = asyncio.create_task(self._run(configuration, decision, replay, report))
        self._tasks.add(task)
        task.add_done_callback(partial(self._over, configuration, subject, size))

    def _over(self, configuration: LoadedConfiguration, subject: Hashable, size: int, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._bytes -= size
        self._by_subject[subject] -= 1
        if not self._by_subject[subject]:
            # Policies come and go with configurations.
            del self._by_subject[subject]
        configuration.end()

    async def _run(
        self,
        configuration: LoadedConfiguration,
        decision: Decision,
        replay: Callable[[Replay], Awaitable[str | None]],
        report: Callable[[str], object],
    ) -> None:
        await asyncio.sleep(AFTER_SECONDS)
        ends = monotonic() + REPLAY_SECONDS
        one = Replay(decision=decision, configuration=configuration, ends=ends, limits=self._patch_limits)
        try:
            result: str | None = await replay(one)
        except (PatchError, ReviewError):
            result = FAILED
        except Exception:  # noqa: BLE001 - logged; nobody waits for it
            _LOG.exception("calling policies again failed inside the gateway", uid=decision.request.uid)
            result = FAILED
        if result is not None:
            report(result)

    def stop(self) -> None:
        """Break off what is under way, and begin nothing more."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()

    async def idle(self) -> None:
        """Wait until nothing is under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
