"""Calls policies again after an answer was sent: what the idempotency check and the shadow comparison share.

A replay is a background task. It has a decision, and the configuration that was in force when the decision was made.
Its results are:

    =======  =========================================================================================================
    failed   there is no result: a worker failed, the replay's time was over, or there was an error inside the gateway
    dropped  it was not begun: too many replays are in progress, or they hold too many bytes
    (other)  the result of the check or comparison
    =======  =========================================================================================================

All replays of a gateway share one bound on their number and on the bytes of the requests that they hold. A replay
beyond it is dropped and counted, never queued. A replay calls the workers, never the cache, prefetches nothing, and
delays or changes no answer. A gateway that drains replays nothing.
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
"""From the decision to the first call: the answer is sent in the same loop iteration, which takes milliseconds."""

REPLAY_SECONDS: Final = 30.0
"""Budget of one replay, all its calls together: the longest that a webhook may take."""

REPLAYS_OF_ONE: Final = 64
"""Concurrent replays of one subject: of one policy's shadow, or of the idempotency check. A subject whose replays hang
does not block the others. By Little's law 2,000 a second, as many as a process decides, are 60 concurrent ones of 30 ms
each: ``AFTER_SECONDS`` and the worker."""

REPLAYS: Final = 256
"""Replays of all subjects together: four subjects whose replays all hang."""

HELD_BYTES: Final = 16_000_000
"""Bytes of the requests that are held for replays: five updates of the largest objects that etcd stores (1.5 MiB,
before and after). As text and parsed, with what the policies make of them: less than 100 MB."""


class ReplayedCall(NamedTuple):
    """A policy's call, with the object before and after it."""

    call: InvocationRecord
    before: Any
    after: Any


class Replay(Struct, frozen=True, kw_only=True):
    """One replay: its decision, its configuration and its deadline (``time.monotonic``)."""

    decision: Decision
    configuration: LoadedConfiguration
    ends: float
    limits: PatchLimits

    def turns(self) -> Iterator[ReplayedCall]:
        """The decision's calls, in order.

        Raises:
            PatchError: the changes of one review together pass the limits, although each of them does not.
            ReviewError: the object cannot be read, and no policy needed it before.
        """
        current = self.decision.request.object
        for call in self.decision.calls:
            before, current = current, self.changed(current, call.changes)
            yield ReplayedCall(call, before, current)

    def changed(self, before: Any, changes: tuple[Operation, ...]) -> Any:
        """An object with these changes. Raises PatchError."""
        return apply_json_patch(before, encode_patch(changes), limits=self.limits) if changes else before

    def request(self, current: Any) -> Request:
        """The decision's request with the object of one of its calls. If unchanged, it has the API server's bytes."""
        request = self.decision.request
        return request if current is request.object else with_object(request, current)

    async def decide(self, request: Request, plan: Plan, caller: PolicyCaller) -> Decision:
        """The decision of the policies of ``plan``, called through ``caller``. Raises ReviewError."""
        engine = Engine(request, plan, ends=self.ends, namespaces=self.configuration.namespaces, limits=self.limits)
        driver = Driver(request.uid, engine, caller=caller, facts=self.configuration.facts)
        return await driver.decide()


class Replays:
    """The replays of a gateway.

    Args:
        configuration: returns the configuration in force.
        patch_limits: of the changes that workers make.
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
        """Begin a replay, unless a limit is reached.

        Args:
            subject: what the replay is of; each subject has a limit of its own.
            decision: the decision to replay.
            replay: replays it, and returns the result; None: there is nothing to replay any more.
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
        # Before any await: a configuration without reviews may be closed.
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
        except Exception:  # noqa: BLE001 - logged; no review waits for it
            _LOG.exception("calling policies again failed inside the gateway", uid=decision.request.uid)
            result = FAILED
        if result is not None:
            report(result)

    def stop(self) -> None:
        """Cancel all replays, and begin no more."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()

    async def idle(self) -> None:
        """Wait until no replay is in progress."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
