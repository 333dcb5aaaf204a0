"""What becomes of an entry that was delivered:

=========================================================  =======================================================
an entry                                                   becomes
=========================================================  =======================================================
that comes when the worker is gone, or of another lane     given back, for other consumers
that cannot be opened or read                              dropped, counted, logged once in a while
whose deadline is over, by Redis' clock                    dropped, counted: nobody waits
whose question is in hand, or has been answered lately     answered with that answer, without calling the worker
that was delivered before, to a policy with side effects   answered with an error: it may have had its effect
that was delivered twice before                            answered with an error: it may be what ends consumers
any other                                                  put to the worker
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
from gateway.transports.queue.commands import Commands, Delivered
from gateway.transports.queue.consumer_context import ConsumerContext
from gateway.transports.queue.handler import HandlerResult
from gateway.transports.queue.pending_deliveries import Key, PendingEntry
from gateway.transports.queue.wire import EXPIRED_MS, QueuedRequest, read_question

_LOG: Final = structlog.get_logger(__name__)

DELIVERIES: Final = 2
"""How often a question is put to a worker at most. Of consumers that all die of it, two are enough to know."""

COMPLAIN_SECONDS: Final = 10.0
"""How often entries that are no messages are logged."""

_ERROR_CHARACTERS: Final = 500

_ONCE_TEXT: Final = (
    "it was given to a bridge that has not answered, and may have had its effect: a policy with side effects is not "
    "asked twice; see why that bridge stopped"
)
_POISON_TEXT: Final = (
    f"it was given to {DELIVERIES} bridges, one after another, and neither answered: it may be what ends them; see "
    "the logs of bridges and workers"
)


class DeliveryDispatcher:
    """Sorts what is delivered to one consumer.

    Args:
        consuming: the consumer.
    """

    def __init__(self, consuming: ConsumerContext) -> None:
        self._own = consuming
        self._validating: set[asyncio.Task[None]] = set()
        self._expected = 1_048_576.0
        self._unreadable = 0
        self._complained = monotonic() - COMPLAIN_SECONDS

    def appetite(self, room: int) -> int:
        """How many entries to take: as many as there is ``room`` for, in bytes too, if they are as large as those
        lately; one, if there is room at all.
        """
        deliveries = self._own.deliveries
        left = deliveries.most_bytes - deliveries.bytes
        return min(room, max(1, int(left / self._expected)))

    async def received(self, redis: Commands, lane: str, delivered: Sequence[Delivered]) -> None:
        """These were delivered. If the worker is gone meanwhile, or claims something else, they are for others."""
        consumer_description = self._own.judging.consumer_description
        if consumer_description is None or consumer_description.lane != lane:
            await redis.give_back(delivered)
            return
        largest = 1
        for each in delivered:
            size = len(each.fields.get(b"m", b""))
            largest = max(largest, size)
            if not self._own.deliveries.holds(each.entry):
                self._look_at(each, size)
        if delivered:
            self._expected = max(float(largest), 0.9 * self._expected)

    async def close(self) -> None:
        """Call about no settings any more."""
        for task in self._validating:
            task.cancel()
        await asyncio.gather(*self._validating, return_exceptions=True)

    def _look_at(self, delivered: Delivered, size: int) -> None:
        own, entry = self._own, delivered.entry
        question = read_question(own.seals, entry.lane, delivered.fields)
        if question is None:
            self._drop(entry, ConsumerEvent.UNREADABLE)
            self._complain()
            return
        now = own.clock.now()
        if question.deadline <= now:
            self._drop(entry, ConsumerEvent.EXPIRED)
            return
        key = Key(question.gateway, question.id, question.deadline)
        # No deadline is further away than this: a gateway that says so is not waited for.
        until = own.clock.until(min(question.deadline, now + EXPIRED_MS))
        if own.deliveries.again(key, entry, monotonic()):
            own.events.count(BRIDGE_EVENTS, ConsumerEvent.REPEATED)
            own.writable.set()
        elif delivered.before and question.request.once:
            self._refuse(key, entry, until, ConsumerEvent.ONCE, _ONCE_TEXT)
        elif delivered.before >= DELIVERIES:
            self._refuse(key, entry, until, ConsumerEvent.POISON, _POISON_TEXT)
        else:
            self._begin(question, key, entry, until=until, size=size)

    def _begin(self, question: QueuedRequest, key: Key, entry: PendingEntry, *, until: float, size: int) -> None:
        own, request = self._own, question.request
        own.deliveries.take(key, entry, until=until, size=size)
        own.events.count(BRIDGE_EVENTS, ConsumerEvent.TAKEN)

        def answered(said: HandlerResult) -> None:
            own.deliveries.answer(key, _reply(key, said), monotonic())
            own.writable.set()

        if request.WhichOneof("request") == "call":
            own.judging.judge(request.call, answered, until=until, once=request.once)
        else:
            task = asyncio.create_task(self._validate(request.validate_settings, answered))
            self._validating.add(task)
            task.add_done_callback(self._validating.discard)

    async def _validate(self, request: pb.ValidateSettingsRequest, answered: Callable[[HandlerResult], None]) -> None:
        answered(await self._own.judging.validate_settings(request))

    def _refuse(self, key: Key, entry: PendingEntry, until: float, event: ConsumerEvent, text: str) -> None:
        self._own.events.count(BRIDGE_EVENTS, event)
        _LOG.warning("a question is not put to the worker again", why=text)
        error = q.Error(reason=Reason.WORKER_UNAVAILABLE, message=text)
        self._own.deliveries.put(key, entry, _reply(key, error), until)
        self._own.writable.set()

    def _drop(self, entry: PendingEntry, event: ConsumerEvent) -> None:
        self._own.events.count(BRIDGE_EVENTS, event)
        self._own.deliveries.drop(entry)
        self._own.writable.set()

    def _complain(self) -> None:
        self._unreadable += 1
        now = monotonic()
        if now - self._complained >= COMPLAIN_SECONDS:
            self._complained = now
            _LOG.warning(
                "entries of the queue are no messages of a gateway with this key file, and are dropped; who else "
                "writes there, or has another key file?",
                stream=self._own.names.stream,
                entries=self._unreadable,
            )
            self._unreadable = 0


def _reply(key: Key, said: HandlerResult) -> q.Reply:
    if isinstance(said, pb.Outcome):
        return q.Reply(id=key.id, deadline=key.deadline, verdict=said)
    if isinstance(said, pb.ValidateSettingsResponse):
        return q.Reply(id=key.id, deadline=key.deadline, settings=said)
    error = q.Error(reason=said.reason, message=one_line(said.message, _ERROR_CHARACTERS))
    return q.Reply(id=key.id, deadline=key.deadline, error=error)
