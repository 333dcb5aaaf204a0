"""How a consumer publishes its presence, renews its entries, and claims those of dead consumers.

Each second one pipeline reads Redis' time, writes the presence, and renews all entries in hand. Then the consumer
claims entries that no consumer has renewed for three seconds, even if it has no room for new ones: under load, when no
consumer has room, those entries would otherwise wait until their deadlines. At longer intervals it removes dead
consumers from the group.

When the worker is unavailable or the consumer stops, it removes its presence at once, so that gateways stop counting
on it.
"""

import asyncio
from contextlib import suppress
from time import monotonic
from typing import Any, Final

import structlog
from redis import exceptions

from gateway.telemetry.labels import ConsumerEvent
from gateway.telemetry.table import BRIDGE_EVENTS
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.queue.codec import DEAD_SECONDS, sealed_presence
from gateway.transports.queue.commands import FORGOTTEN_SECONDS, Commands, NoGroupError, is_no_group
from gateway.transports.queue.consumer_context import FULL, PART, ConsumerContext
from gateway.transports.queue.delivery_dispatcher import DeliveryDispatcher
from gateway.transports.queue.handler import ConsumerDescription
from gateway.transports.queue.pending_deliveries import PendingEntry
from gateway.transports.queue.reply_writer import ReplyWriter

_LOG: Final = structlog.get_logger(__name__)

HEARTBEAT_SECONDS: Final = 1.0
"""How often a consumer writes its presence, renews its entries, and looks for entries of dead consumers."""

TIDY_SECONDS: Final = 10.0
"""How often a consumer looks for dead consumers to remove."""

GONE_SECONDS: Final = 60.0
"""How long a consumer without entries must be idle to be removed from the group."""


class Heartbeat:
    """The heartbeat of one consumer.

    Args:
        context: the consumer.
        dispatcher: gets the claimed entries.
        reply_writer: has the number of answered calls.
    """

    def __init__(self, context: ConsumerContext, dispatcher: DeliveryDispatcher, reply_writer: ReplyWriter) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._reply_writer = reply_writer
        self._tidied = monotonic()
        self.is_stopping = False

    @property
    def consumer_description(self) -> ConsumerDescription | None:
        """The worker's description; None: the consumer reads no calls."""
        return None if self.is_stopping else self._context.handler.consumer_description

    async def begin(self, redis: Commands) -> None:
        """Send the first heartbeat. Raises what ``Commands`` raise."""
        context = self._context
        sent = monotonic()
        seconds, microseconds = await redis.time()
        context.clock.sample(sent, monotonic(), seconds, microseconds)
        await self._send(redis)

    async def keep(self, redis: Commands) -> None:
        """Send heartbeats until canceled. Raises what ``Commands`` raise."""
        context = self._context
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await context.heartbeat_due.wait()
            context.heartbeat_due.clear()
            context.seals.refresh()
            await self._send(redis)
            consumer_description = self.consumer_description
            if consumer_description is not None:
                with suppress(NoGroupError):  # the read creates it
                    await self._claim(redis, consumer_description.lane)
                    await self._tidy(redis, consumer_description.lane)

    async def _send(self, redis: Commands) -> None:
        context, consumer_description = self._context, self.consumer_description
        commands: list[Any] = [("TIME",)]
        if consumer_description is None:
            commands.append(("HDEL", context.names.workers, context.name))
        else:
            commands += [
                ("HSET", context.names.workers, context.name, self._presence(consumer_description)),
                ("EXPIRE", context.names.workers, FORGOTTEN_SECONDS),
                ("EXPIRE", context.names.calls(consumer_description.lane), FORGOTTEN_SECONDS),
            ]
        sent = monotonic()
        (time, presence_written, *others) = await redis.run([*commands, *redis.renewals(context.deliveries.entries)])
        received = monotonic()
        for answer in (time, presence_written, *others):
            if isinstance(answer, Exception) and not _is_temporary(answer):
                raise answer
        context.clock.sample(sent, received, int(time[0]), int(time[1]))
        if isinstance(presence_written, Exception):
            context.condition.become(FULL)
        elif consumer_description is not None:
            context.condition.become("")
        elif self.is_stopping:
            context.condition.become("it is stopping", expected=True)
        else:
            context.condition.worker_unavailable(context.handler.why)

    def _presence(self, consumer_description: ConsumerDescription) -> bytes:
        context = self._context
        presence = q.Presence(
            description=consumer_description.description,
            at=context.clock.now(),
            lane=consumer_description.lane,
            in_flight=context.deliveries.in_flight,
            capacity=context.limits.in_flight,
            answered=self._reply_writer.answered,
        )
        return sealed_presence(context.seals, context.name, presence)

    async def _claim(self, redis: Commands, lane: str) -> None:
        context = self._context
        room = self._dispatcher.read_count(context.deliveries.room_for_claimed)
        if not room:
            return
        dead = await redis.pending(lane, PART, idle=DEAD_SECONDS)
        # Also this consumer's own entries, of a read whose answer was lost.
        wanted = [each for each in dead if not context.deliveries.holds(PendingEntry(lane, each.id))][:room]
        claimed = await redis.claim(lane, wanted, idle=DEAD_SECONDS)
        if claimed:
            context.events.count(BRIDGE_EVENTS, ConsumerEvent.CLAIMED, amount=len(claimed))
            _LOG.info("claimed entries of a dead consumer", entries=len(claimed))
        await self._dispatcher.received(redis, lane, claimed)

    async def _tidy(self, redis: Commands, lane: str) -> None:
        if monotonic() - self._tidied >= TIDY_SECONDS:
            self._tidied = monotonic()
            await redis.remove_dead(lane, GONE_SECONDS)


def _is_temporary(answer: Exception) -> bool:
    """Whether the connection can be kept: the group does not exist, and is created again, or Redis has no memory."""
    return is_no_group(answer) or isinstance(answer, exceptions.OutOfMemoryError)
