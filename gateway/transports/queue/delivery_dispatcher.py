"""What the consumer does with a delivered entry:

=========================================================  =======================================================
an entry                                                   is
=========================================================  =======================================================
delivered when the worker is gone, or of another lane      given back, for other consumers
that cannot be opened or decoded                           dropped, counted, logged at intervals
whose deadline is over, by Redis' clock                    dropped, counted: the gateway no longer waits
whose call is in hand, or was answered recently            answered with that reply, without calling the worker
delivered before, of a policy with side effects            answered with an error: it may have had its effect
delivered twice before                                     answered with an error: it may crash workers
any other                                                  passed to the handler, which calls the worker
=========================================================  =======================================================
"""

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final

import structlog

from gateway.reasons import Reason
from gateway.telemetry.labels import ConsumerEvent
from gateway.telemetry.table import BRIDGE_EVENTS
from gateway.transports.messages import one_line
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue.codec import EXPIRED_MS, QueuedRequest, read_request
from gateway.transports.queue.commands import Commands, Delivered
from gateway.transports.queue.consumer_context import ConsumerContext
from gateway.transports.queue.handler import HandlerResult
from gateway.transports.queue.pending_deliveries import Key, PendingEntry

_LOG: Final = structlog.get_logger(__name__)

DELIVERIES: Final = 2
"""At most so many times a worker is called for one call. When two consumers die of it, a third probably would too."""

UNREADABLE_LOG_SECONDS: Final = 10.0
"""How often entries that cannot be read are logged."""

_ERROR_CHARACTERS: Final = 500

_ONCE_TEXT: Final = (
    "it was delivered to a bridge that has not answered, and may have had its effect: a policy with side effects is "
    "not called twice; see why that bridge stopped"
)
_POISON_TEXT: Final = (
    f"it was delivered to {DELIVERIES} bridges, one after another, and neither answered: the call may crash them; see "
    "the logs of bridges and workers"
)


class DeliveryDispatcher:
    """Dispatches the deliveries of one consumer.

    Args:
        context: the consumer.
    """

    def __init__(self, context: ConsumerContext) -> None:
        self._context = context
        self._validating: set[asyncio.Task[None]] = set()
        self._expected = 1_048_576.0
        self._unreadable = 0
        self._logged_at = monotonic() - UNREADABLE_LOG_SECONDS

    def read_count(self, room: int) -> int:
        """How many entries to read: as many as there is ``room`` for, in bytes too if they are as large as recent
        ones; at least one, if there is room at all.
        """
        deliveries = self._context.deliveries
        left = deliveries.most_bytes - deliveries.bytes
        return min(room, max(1, int(left / self._expected)))

    async def received(self, redis: Commands, lane: str, delivered: Sequence[Delivered]) -> None:
        """Dispatch entries. If the worker is gone meanwhile, or its claims have changed, give them back."""
        consumer_description = self._context.handler.consumer_description
        if consumer_description is None or consumer_description.lane != lane:
            await redis.give_back(delivered)
            return
        largest = 1
        for each in delivered:
            size = len(each.fields.get(b"m", b""))
            largest = max(largest, size)
            if not self._context.deliveries.holds(each.entry):
                self._dispatch(each, size)
        if delivered:
            self._expected = max(float(largest), 0.9 * self._expected)

    async def close(self) -> None:
        """Cancel the validation of settings."""
        for task in self._validating:
            task.cancel()
        await asyncio.gather(*self._validating, return_exceptions=True)

    def _dispatch(self, delivered: Delivered, size: int) -> None:
        context, entry = self._context, delivered.entry
        queued = read_request(context.seals, entry.lane, delivered.fields)
        if queued is None:
            self._drop(entry, ConsumerEvent.UNREADABLE)
            self._log_unreadable()
            return
        now = context.clock.now()
        if queued.deadline <= now:
            self._drop(entry, ConsumerEvent.EXPIRED)
            return
        key = Key(queued.gateway, queued.id, queued.deadline)
        # No valid deadline is later than this.
        until = context.clock.until(min(queued.deadline, now + EXPIRED_MS))
        if context.deliveries.repeat(key, entry, monotonic()):
            context.events.count(BRIDGE_EVENTS, ConsumerEvent.REPEATED)
            context.may_write.set()
        elif delivered.before and queued.request.once:
            self._refuse(key, entry, until, ConsumerEvent.ONCE, _ONCE_TEXT)
        elif delivered.before >= DELIVERIES:
            self._refuse(key, entry, until, ConsumerEvent.POISON, _POISON_TEXT)
        else:
            self._begin(queued, key, entry, until=until, size=size)

    def _begin(self, queued: QueuedRequest, key: Key, entry: PendingEntry, *, until: float, size: int) -> None:
        context, request = self._context, queued.request
        context.deliveries.take(key, entry, until=until, size=size)
        context.events.count(BRIDGE_EVENTS, ConsumerEvent.TAKEN)

        def answered(result: HandlerResult) -> None:
            context.deliveries.answer(key, _reply(key, result), monotonic())
            context.may_write.set()

        if request.WhichOneof("request") == "call":
            context.handler.handle(request.call, answered, until=until, once=request.once)
        else:
            task = asyncio.create_task(self._validate(request.validate_settings, answered))
            self._validating.add(task)
            task.add_done_callback(self._validating.discard)

    async def _validate(self, request: pb.ValidateSettingsRequest, answered: Callable[[HandlerResult], None]) -> None:
        answered(await self._context.handler.validate_settings(request))

    def _refuse(self, key: Key, entry: PendingEntry, until: float, event: ConsumerEvent, text: str) -> None:
        self._context.events.count(BRIDGE_EVENTS, event)
        _LOG.warning("a call is not sent to a worker again", why=text)
        error = q.Error(reason=Reason.WORKER_UNAVAILABLE, message=text)
        self._context.deliveries.put(key, entry, _reply(key, error), until)
        self._context.may_write.set()

    def _drop(self, entry: PendingEntry, event: ConsumerEvent) -> None:
        self._context.events.count(BRIDGE_EVENTS, event)
        self._context.deliveries.drop(entry)
        self._context.may_write.set()

    def _log_unreadable(self) -> None:
        self._unreadable += 1
        now = monotonic()
        if now - self._logged_at >= UNREADABLE_LOG_SECONDS:
            self._logged_at = now
            _LOG.warning(
                "dropped entries that no gateway with this key file has written; compare the key files, and check what "
                "else writes to the queue",
                stream=self._context.names.stream,
                entries=self._unreadable,
            )
            self._unreadable = 0


def _reply(key: Key, result: HandlerResult) -> q.Reply:
    if isinstance(result, pb.Outcome):
        return q.Reply(id=key.id, deadline=key.deadline, verdict=result)
    if isinstance(result, pb.ValidateSettingsResponse):
        return q.Reply(id=key.id, deadline=key.deadline, settings=result)
    error = q.Error(reason=result.reason, message=one_line(result.message, _ERROR_CHARACTERS))
    return q.Reply(id=key.id, deadline=key.deadline, error=error)
