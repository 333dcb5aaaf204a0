"""One worker behind a queue: the gateway writes its calls to Redis, bridges read them there and write replies.

* A call waits in Redis until its deadline. If a bridge dies, another one claims its entries. If Redis loses its data,
  the gateway writes calls again that may be repeated. The first reply counts.
* A call is rejected at once if it cannot succeed: no bridge is present, Redis is unavailable, or the queue is full.
  When the last bridge of its lane goes, the call moves to another lane, or fails (``abandoned_streams``).
* A call that Redis has not accepted after ``queue_redis_seconds`` fails, unless Redis has just come back.
* A call with side effects is written once. If it is unknown whether Redis or a bridge has it, it ends at its deadline,
  or earlier if the bridge that had it is gone.

The gateway does not choose the bridge: any bridge of the lane may read the call, and a lane may have several versions
of the worker. They all have the same claims, but may differ in which settings they accept.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

import structlog

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Failure
from gateway.policies.workers.targets import QueueTarget
from gateway.redis.addresses import RedisAddress
from gateway.telemetry.events import Events, NoEvents
from gateway.telemetry.labels import QUEUE_EVENTS, WorkerEvent
from gateway.telemetry.table import QUEUE_LENGTH, QUEUE_OLDEST_SECONDS, WORKER_CONNECTIONS
from gateway.transports.descriptions import Description
from gateway.transports.limits import TransportLimits
from gateway.transports.outcomes import Outcomes
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue.codec import EXPIRED_MS
from gateway.transports.queue.failures import Failures
from gateway.transports.queue.names import Names
from gateway.transports.queue.open_calls import OpenCall, OpenCalls, OpenReview, OpenSettings
from gateway.transports.queue.request_exchange import RequestExchange
from gateway.transports.queue.seals import QueueSeals
from gateway.transports.version_skew import VersionSkew
from gateway.transports.worker_channel import Answered, SettingsValidator, count_worker_event

_LOG: Final = structlog.get_logger(__name__)

LONGEST_SECONDS: Final = EXPIRED_MS / 1000 - 1
"""The longest time that a call is in the queue, whatever its deadline: older entries are trimmed."""


class QueueWorker:
    """Calls one worker.

    Args:
        name: the Worker's name.
        target: its queue.
        limits: see TransportLimits.
        redis: the address of Redis.
        events: counts events.
    """

    def __init__(
        self,
        name: str,
        target: QueueTarget,
        limits: TransportLimits,
        *,
        redis: RedisAddress,
        events: Events | None = None,
    ) -> None:
        self.name = name
        self.target = f"queue {target.stream}"
        self.version_skew = VersionSkew(limits.worker_settle_seconds)
        self.is_doubted = False
        self.never = ""
        self._limits = limits
        self._events = events or NoEvents()
        self._failures = Failures(name, self.target, limits.message_characters)
        self._outcomes = Outcomes(name, limits.message_characters, self._failures.internal)
        self._seals = QueueSeals(target.stream, Path(target.directory) / target.key_file)
        self._listeners: list[Callable[[], object]] = []
        self._unplaced: dict[OpenCall, None] = {}
        self._usable = 0
        self._is_closed = False
        self._events.worker_added(name, QUEUE_EVENTS)
        self._refused = OpenCalls()
        self._report_queue(0, 0.0)
        self._exchange = RequestExchange(
            names=Names(target.stream),
            seals=self._seals,
            address=redis,
            limits=limits,
            failures=self._failures,
            count=self._count,
            changed=self._registry_changed,
            reroute=lambda call: self._place(call, monotonic()),
            report=self._report_queue,
        )

    # ---------------------------------------------------------------------------------------------- for calls

    def call(
        self, call: PolicyCall, answered: Answered, fits: frozenset[Description] | None = None
    ) -> Callable[[], object]:
        """Call the worker. ``answered`` is called once, later, in this loop, unless the call is canceled.

        Args:
            call: the call.
            answered: called with the answer.
            fits: descriptions of which a bridge in the lane must have one; None: any.

        Returns:
            A function that cancels the call. Then ``answered`` is not called.
        """
        now = monotonic()
        open_call = OpenReview(
            call,
            answered,
            outcomes=self._outcomes,
            failures=self._failures,
            fits=fits,
            since=now,
            deadline=min(call.deadline, now + LONGEST_SECONDS),
        )
        self._put(open_call)
        return partial(self._cancel, open_call)

    def _cancel(self, open_call: OpenReview) -> None:
        open_call.is_silenced = True
        if open_call.may_repeat:
            self._give_up(open_call)

    async def validate_settings(
        self, policy: str, settings: bytes, fits: frozenset[Description] | None = None
    ) -> pb.ValidateSettingsResponse:
        """Validate a policy's settings, by any bridge of a lane that fits.

        Raises:
            WorkerError: there is no response.
        """
        now = monotonic()
        deadline = now + self._limits.describe_seconds
        open_call = OpenSettings(policy, settings, failures=self._failures, fits=fits, since=now, deadline=deadline)
        self._put(open_call)
        try:
            return await open_call.result
        finally:
            self._give_up(open_call)

    def _put(self, open_call: OpenCall) -> None:
        exchange = self._exchange
        refusal = self._refusal(open_call)
        calls = exchange.open if refusal is None else self._refused
        calls.add(open_call)
        if refusal is not None:
            self._refuse(open_call, refusal)
        elif not exchange.has_looked:
            self._unplaced[open_call] = None
            exchange.watch()
        else:
            self._place(open_call, open_call.since)

    def _place(self, open_call: OpenCall, now: float) -> None:
        """Write a call to the best lane, or reject it."""
        exchange = self._exchange
        lanes = exchange.registry.lanes(open_call.fits)
        if not lanes:
            self._refuse(open_call, self._no_consumer(open_call.fits))
            return
        known = exchange.outbox.lane
        name = lanes[0] if len(lanes) == 1 else min(lanes, key=lambda each: known(each).load)
        refusal = self._lane_refusal(name, open_call.deadline - now)
        if refusal is None:
            open_call.lane = name
            exchange.put(open_call)
        else:
            self._refuse(open_call, refusal)

    def _refuse(self, open_call: OpenCall, failure: Failure) -> None:
        """Fail a call, but not before ``call`` has returned."""
        asyncio.get_running_loop().call_soon(self._fail, open_call, failure)

    def _fail(self, open_call: OpenCall, failure: Failure) -> None:
        if open_call.is_done:
            return
        self._forget(open_call)
        open_call.failed(failure)

    def _give_up(self, open_call: OpenCall) -> None:
        self._unplaced.pop(open_call, None)
        if open_call.lane:
            self._exchange.give_up(open_call)
        else:
            self._forget(open_call)

    def _forget(self, open_call: OpenCall) -> None:
        """Remove a call that is not in Redis."""
        self._unplaced.pop(open_call, None)
        self._exchange.open.close(open_call)
        self._refused.close(open_call)

    # ---------------------------------------------------------------------------------------------- refusals

    def _refusal(self, open_call: OpenCall) -> Failure | None:
        """Why a call is rejected, whatever its lane."""
        exchange, limits = self._exchange, self._limits
        if self._seals.why:
            return self._failures.misconfigured(self._seals.why)
        if exchange.link.is_away(limits.queue_redis_seconds):
            return self._failures.redis_away(exchange.link.why)
        held, size = exchange.open.bytes, open_call.size
        if held and held + size > limits.queue_open_bytes:
            self._count(WorkerEvent.QUEUE_OPEN_BYTES)
            return self._failures.too_much(held, limits.queue_open_bytes)
        return None

    def _lane_refusal(self, name: str, left: float) -> Failure | None:
        """Why a lane cannot take a call."""
        lane, limits = self._exchange.outbox.lane(name), self._limits
        if lane.waiting >= limits.queue_length:
            self._count(WorkerEvent.QUEUE_LENGTH)
            return self._failures.too_long(lane.waiting, limits.queue_length)
        if lane.bytes > limits.queue_bytes:
            self._count(WorkerEvent.QUEUE_BYTES)
            return self._failures.too_large(lane.bytes, limits.queue_bytes)
        backlog = lane.backlog(left)
        if backlog is not None:
            self._count(WorkerEvent.QUEUE_SLOW)
            return self._failures.too_slow(backlog, left)
        return None

    def _no_consumer(self, fits: frozenset[Description] | None) -> Failure:
        if fits is None or not self.live:
            return self._absence()
        return self._failures.other_version()

    def _absence(self) -> Failure:
        """Why no bridge is present."""
        if self._exchange.has_unknown:
            return self._failures.unknown(self._seals.fingerprints)
        return self._failures.no_consumer()

    # -------------------------------------------------------------------------------------- its availability

    @property
    def live(self) -> tuple[Description, ...]:
        """The descriptions of the present bridges; more than one while the worker is updated."""
        return self._exchange.registry.live

    @property
    def why(self) -> str:
        """Why it cannot be called at all; empty if it can, or if that is not known yet."""
        exchange = self._exchange
        if self._seals.why:
            return self._failures.misconfigured(self._seals.why).message
        if exchange.link.why:
            return self._failures.redis_away(exchange.link.why).message
        return self._absence().message if exchange.has_looked and not exchange.registry.live else ""

    def listen(self, listener: Callable[[], object]) -> None:
        """Call this whenever the present bridges or their descriptions may have changed."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], object]) -> None:
        """Remove a listener."""
        self._listeners.remove(listener)

    def described(self) -> dict[Description, int]:
        """The number of present bridges by description."""
        return self._exchange.registry.described()

    def all_with(self, description: Description) -> tuple[SettingsValidator, ...]:
        """What validates settings for a description: any bridge of its lane."""
        return (_StreamSettingsValidator(self, description),) if description in self.live else ()

    def _registry_changed(self) -> None:
        if self._is_closed:
            return
        usable = len(self._exchange.registry.bridges)
        if usable != self._usable:
            change, self._usable = usable - self._usable, usable
            self._events.count(WORKER_CONNECTIONS, self.name, amount=change)
            self._count(WorkerEvent.CONNECTED if change > 0 else WorkerEvent.DISCONNECTED, abs(change))
            if not usable:
                _LOG.warning(
                    "a worker is lost: no bridge of its queue is present", worker=self.name, target=self.target
                )
        if self._exchange.has_looked:
            now, unplaced = monotonic(), self._unplaced
            self._unplaced = {}
            for open_call in unplaced:
                if not open_call.is_done:
                    self._place(open_call, now)
        for listener in tuple(self._listeners):
            listener()

    def _report_queue(self, length: int, oldest_seconds: float) -> None:
        self._events.set(QUEUE_LENGTH, length, self.name)
        self._events.set(QUEUE_OLDEST_SECONDS, oldest_seconds, self.name)

    def _count(self, event: WorkerEvent, number: int = 1) -> None:
        count_worker_event(self._events, self.name, event, number)

    # --------------------------------------------------------------------------------------------------- end

    async def idle(self) -> None:
        """Return when no call is open, at the latest at the last deadline."""
        while len(self._refused) or len(self._exchange.open):
            await self._refused.idle.wait()
            await self._exchange.open.idle.wait()

    async def close(self) -> None:
        """End all open calls, and close all connections."""
        self._is_closed = True
        for open_call in self._refused:
            self._forget(open_call)
        self._unplaced.clear()
        await self._exchange.close()
        self._events.count(WORKER_CONNECTIONS, self.name, amount=-self._usable)
        self._events.worker_removed(self.name)


class _StreamSettingsValidator:
    """A SettingsValidator that uses the bridges of one description."""

    __slots__ = ("_fits", "_worker")

    def __init__(self, worker: QueueWorker, description: Description) -> None:
        self._worker = worker
        self._fits = frozenset((description,))

    async def validate_settings(self, policy: str, settings: bytes) -> pb.ValidateSettingsResponse:
        """See SettingsValidator."""
        return await self._worker.validate_settings(policy, settings, self._fits)
