"""One worker behind a queue: its calls go into Redis, bridges read them there, and their answers come back.

* A call waits in Redis until its deadline, whoever dies meanwhile: a bridge, for another one claims what it had; Redis,
  for what may be repeated is put again when it is back. The first answer counts.
* It is refused at once where it could only wait in vain: no bridge is there, Redis is away, too much is in the queue.
  When the last bridge of its lane goes, it goes by another lane, or fails (``desertion``).
* A call that Redis has not taken after ``queue_redis_seconds`` has failed, unless it has just come back.
* A policy with side effects is put once. If nobody knows what became of it, or whether Redis took it, it runs into
  its deadline; it fails earlier if the bridge that had it is known to be gone.

Whom a call is put to, nobody here chooses: any bridge of its lane may take it, and in a lane there may be several
versions. That all of them claim the same is certain; that all of them accept the policy's settings is not.
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
from gateway.transports.queue.failures import Failures
from gateway.transports.queue.names import Names
from gateway.transports.queue.open_calls import OpenCall, OpenCalls, OpenReview, OpenSettings
from gateway.transports.queue.request_exchange import RequestExchange
from gateway.transports.queue.seals import QueueSeals
from gateway.transports.queue.wire import EXPIRED_MS
from gateway.transports.version_skew import VersionSkew
from gateway.transports.worker_channel import Answered, SettingsValidator, count_worker_event

_LOG: Final = structlog.get_logger(__name__)

LONGEST_SECONDS: Final = EXPIRED_MS / 1000 - 1
"""Whatever the deadline of a call is, it is in the queue no longer: what is older is trimmed."""


class QueueWorker:
    """Calls one worker.

    Args:
        name: the Worker's name, for messages.
        target: its queue.
        limits: see TransportLimits.
        redis: where the queue is.
        events: hears of what happens.
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
            changed=self._look,
            homeless=lambda call: self._place(call, monotonic()),
            reported=self._report_queue,
        )

    # ---------------------------------------------------------------------------------------------- for calls

    def call(
        self, call: PolicyCall, answered: Answered, fits: frozenset[Description] | None = None
    ) -> Callable[[], object]:
        """Put ``call`` to the worker; ``answered`` is called once, later, in this loop, unless it is cancelled.

        Args:
            call: the question.
            answered: called with the answer.
            fits: descriptions of which somebody in the lane must have one; None: any.

        Returns:
            What cancels the call. Then ``answered`` is not called any more.
        """
        now = monotonic()
        made = OpenReview(
            call,
            answered,
            outcomes=self._outcomes,
            failures=self._failures,
            fits=fits,
            since=now,
            deadline=min(call.deadline, now + LONGEST_SECONDS),
        )
        self._put(made)
        return partial(self._cancel, made)

    def _cancel(self, made: OpenReview) -> None:
        made.is_silenced = True
        if made.may_repeat:
            self._give_up(made)

    async def validate_settings(
        self, policy: str, settings: bytes, fits: frozenset[Description] | None = None
    ) -> pb.ValidateSettingsResponse:
        """What the worker says of a policy's settings, whoever of it takes the question.

        Raises:
            WorkerError: nobody answers, or with something else.
        """
        now = monotonic()
        deadline = now + self._limits.describe_seconds
        made = OpenSettings(policy, settings, failures=self._failures, fits=fits, since=now, deadline=deadline)
        self._put(made)
        try:
            return await made.result
        finally:
            self._give_up(made)

    def _put(self, made: OpenCall) -> None:
        exchange = self._exchange
        refusal = self._refusal(made.size)
        calls = exchange.open if refusal is None else self._refused
        calls.add(made)
        if refusal is not None:
            self._refuse(made, refusal)
        elif not exchange.has_looked:
            self._unplaced[made] = None
            exchange.watch()
        else:
            self._place(made, made.since)

    def _place(self, made: OpenCall, now: float) -> None:
        """Choose a lane, and put it there, if it may be put there."""
        exchange = self._exchange
        lanes = exchange.registry.lanes(made.fits)
        if not lanes:
            self._refuse(made, self._no_consumer(made.fits))
            return
        known = exchange.outbox.lane
        name = lanes[0] if len(lanes) == 1 else min(lanes, key=lambda each: known(each).load)
        refusal = self._lane_refusal(name, made.deadline - now)
        if refusal is None:
            made.lane = name
            exchange.put(made)
        else:
            self._refuse(made, refusal)

    def _refuse(self, made: OpenCall, failure: Failure) -> None:
        """Never inside the call that calls."""
        asyncio.get_running_loop().call_soon(self._fail, made, failure)

    def _fail(self, made: OpenCall, failure: Failure) -> None:
        if made.is_done:
            return
        self._forget(made)
        made.failed(failure)

    def _give_up(self, made: OpenCall) -> None:
        self._unplaced.pop(made, None)
        if made.lane:
            self._exchange.give_up(made)
        else:
            self._forget(made)

    def _forget(self, made: OpenCall) -> None:
        """One that is not in Redis: it was never put, or has been taken out."""
        self._unplaced.pop(made, None)
        self._exchange.open.close(made)
        self._refused.close(made)

    # ---------------------------------------------------------------------------------------------- refusals

    def _refusal(self, size: int) -> Failure | None:
        """Why a call cannot be taken on, wherever it would go."""
        exchange, limits = self._exchange, self._limits
        if self._seals.why:
            return self._failures.misconfigured(self._seals.why)
        if exchange.link.is_away(limits.queue_redis_seconds):
            return self._failures.redis_away(exchange.link.why)
        if len(exchange.open) >= limits.worker_in_flight:
            self._count(WorkerEvent.IN_FLIGHT)
            return self._failures.too_many(limits.worker_in_flight)
        held = exchange.open.bytes
        if held and held + size > limits.queue_open_bytes:
            self._count(WorkerEvent.QUEUE_OPEN_BYTES)
            return self._failures.too_much(held, limits.queue_open_bytes)
        return None

    def _lane_refusal(self, name: str, left: float) -> Failure | None:
        """Why a call cannot go by a lane."""
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
        """Why nobody is there."""
        if self._exchange.has_unknown:
            return self._failures.unknown(self._seals.fingerprints)
        return self._failures.no_consumer()

    # -------------------------------------------------------------------------------------- its availability

    @property
    def live(self) -> tuple[Description, ...]:
        """What those who are there say of themselves; more than one while the worker is being updated."""
        return self._exchange.registry.live

    @property
    def why(self) -> str:
        """Why it cannot be called at all; empty if it can, or if nobody knows yet."""
        exchange = self._exchange
        if self._seals.why:
            return self._failures.misconfigured(self._seals.why).message
        if exchange.link.why:
            return self._failures.redis_away(exchange.link.why).message
        return self._absence().message if exchange.has_looked and not exchange.registry.live else ""

    def listen(self, listener: Callable[[], object]) -> None:
        """Call this whenever somebody has come, gone, or been described anew."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], object]) -> None:
        """Don't any more."""
        self._listeners.remove(listener)

    def described(self) -> dict[Description, int]:
        """Which descriptions those have who are there, and how many have each."""
        return self._exchange.registry.described()

    def all_with(self, description: Description) -> tuple[SettingsValidator, ...]:
        """Whom to call about settings: whoever in that lane takes the question."""
        return (_StreamSettingsValidator(self, description),) if description in self.live else ()

    def _look(self) -> None:
        if self._is_closed:
            return
        usable = len(self._exchange.registry.bridges)
        if usable != self._usable:
            change, self._usable = usable - self._usable, usable
            self._events.count(WORKER_CONNECTIONS, self.name, amount=change)
            self._count(WorkerEvent.CONNECTED if change > 0 else WorkerEvent.DISCONNECTED, abs(change))
            if not usable:
                _LOG.warning("a worker is lost: no bridge of its queue is there", worker=self.name, target=self.target)
        if self._exchange.has_looked:
            now, unplaced = monotonic(), self._unplaced
            self._unplaced = {}
            for made in unplaced:
                if not made.is_done:
                    self._place(made, now)
        for listener in tuple(self._listeners):
            listener()

    def _report_queue(self, length: int, oldest_seconds: float) -> None:
        self._events.set(QUEUE_LENGTH, length, self.name)
        self._events.set(QUEUE_OLDEST_SECONDS, oldest_seconds, self.name)

    def _count(self, event: WorkerEvent, number: int = 1) -> None:
        count_worker_event(self._events, self.name, event, number)

    # --------------------------------------------------------------------------------------------------- end

    async def idle(self) -> None:
        """Return when nothing is open. Each call has its deadline, so this ends."""
        while len(self._refused) or len(self._exchange.open):
            await self._refused.idle.wait()
            await self._exchange.open.idle.wait()

    async def close(self) -> None:
        """Break off what is open, and all connections."""
        self._is_closed = True
        for made in self._refused:
            self._forget(made)
        self._unplaced.clear()
        await self._exchange.close()
        self._events.count(WORKER_CONNECTIONS, self.name, amount=-self._usable)
        self._events.worker_removed(self.name)


class _StreamSettingsValidator:
    """Calls those who are described so about settings; as a SettingsValidator does."""

    __slots__ = ("_fits", "_worker")

    def __init__(self, worker: QueueWorker, description: Description) -> None:
        self._worker = worker
        self._fits = frozenset((description,))

    async def validate_settings(self, policy: str, settings: bytes) -> pb.ValidateSettingsResponse:
        """See SettingsValidator."""
        return await self._worker.validate_settings(policy, settings, self._fits)
