"""How a consumer says that it is there, keeps what it has, and takes over what dead ones have left.

Each second: Redis' time, the consumer's presence, and a renewal of all entries in hand, in one pipeline. Then what
nobody has renewed for three seconds is claimed, also by a consumer that has all it wants in hand: else under load, when
nobody ever has room, it would wait until its deadline. And now and then consumers are removed from the group that are
gone for good.

Nobody can be called, or it is stopping: then its presence is removed at once, so that no gateway counts on it.
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
from gateway.transports.queue.commands import FORGOTTEN_SECONDS, Commands, NoGroupError, is_no_group
from gateway.transports.queue.consumer_context import FULL, PART, ConsumerContext
from gateway.transports.queue.delivery_dispatcher import DeliveryDispatcher
from gateway.transports.queue.handler import ConsumerDescription
from gateway.transports.queue.pending_deliveries import PendingEntry
from gateway.transports.queue.reply_writer import ReplyWriter
from gateway.transports.queue.wire import DEAD_SECONDS, sealed_presence

_LOG: Final = structlog.get_logger(__name__)

HEARTBEAT_SECONDS: Final = 1.0
"""How often a consumer says that it is there, renews what it has, and looks for what dead ones have left."""

TIDY_SECONDS: Final = 10.0
"""How often consumers that are gone for good are looked for."""

GONE_SECONDS: Final = 60.0
"""How long a consumer without entries must not have been heard of to be removed from the group."""


class Heartbeat:
    """Of one consumer.

    Args:
        consuming: the consumer.
        sorting: gets what is claimed.
        answering: knows how much was answered.
    """

    def __init__(self, consuming: ConsumerContext, sorting: DeliveryDispatcher, answering: ReplyWriter) -> None:
        self._own = consuming
        self._sorting = sorting
        self._answering = answering
        self._tidied = monotonic()
        self.is_stopping = False

    @property
    def consumer_description(self) -> ConsumerDescription | None:
        """As whom it takes work now; None: it does not."""
        return None if self.is_stopping else self._own.judging.consumer_description

    async def begin(self, redis: Commands) -> None:
        """The first beat. Raises what ``Commands`` raise."""
        own = self._own
        sent = monotonic()
        seconds, microseconds = await redis.time()
        own.clock.sample(sent, monotonic(), seconds, microseconds)
        await self._say(redis)

    async def keep(self, redis: Commands) -> None:
        """Beat until cancelled. Raises what ``Commands`` raise."""
        own = self._own
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await own.monitor.wait()
            own.monitor.clear()
            own.seals.refresh()
            await self._say(redis)
            consumer_description = self.consumer_description
            if consumer_description is not None:
                with suppress(NoGroupError):  # whoever takes makes it
                    await self._claim(redis, consumer_description.lane)
                    await self._tidy(redis, consumer_description.lane)

    async def _say(self, redis: Commands) -> None:
        own, consumer_description = self._own, self.consumer_description
        commands: list[Any] = [("TIME",)]
        if consumer_description is None:
            commands.append(("HDEL", own.names.workers, own.name))
        else:
            commands += [
                ("HSET", own.names.workers, own.name, self._presence(consumer_description)),
                ("EXPIRE", own.names.workers, FORGOTTEN_SECONDS),
                ("EXPIRE", own.names.calls(consumer_description.lane), FORGOTTEN_SECONDS),
            ]
        sent = monotonic()
        (time, said, *others) = await redis.run([*commands, *redis.renewals(own.deliveries.entries)])
        received = monotonic()
        for answer in (time, said, *others):
            if isinstance(answer, Exception) and not _is_passing(answer):
                raise answer
        own.clock.sample(sent, received, int(time[0]), int(time[1]))
        if isinstance(said, Exception):
            own.condition.become(FULL)
        elif consumer_description is not None:
            own.condition.become("")
        elif self.is_stopping:
            own.condition.become("it is stopping", expected=True)
        else:
            own.condition.without_worker(own.judging.why)

    def _presence(self, consumer_description: ConsumerDescription) -> bytes:
        own = self._own
        presence = q.Presence(
            description=consumer_description.description,
            at=own.clock.now(),
            lane=consumer_description.lane,
            in_flight=own.deliveries.in_work,
            capacity=own.limits.in_flight,
            answered=self._answering.answered,
        )
        return sealed_presence(own.seals, own.name, presence)

    async def _claim(self, redis: Commands, lane: str) -> None:
        own = self._own
        room = self._sorting.appetite(own.deliveries.room_for_claimed)
        if not room:
            return
        dead = await redis.pending(lane, PART, idle=DEAD_SECONDS)
        # Its own, too: those of a read whose answer was lost on the way.
        wanted = [each for each in dead if not own.deliveries.holds(PendingEntry(lane, each.id))][:room]
        claimed = await redis.claim(lane, wanted, idle=DEAD_SECONDS)
        if claimed:
            own.events.count(BRIDGE_EVENTS, ConsumerEvent.CLAIMED, amount=len(claimed))
            _LOG.info("entries of a consumer that is gone are taken over", entries=len(claimed))
        await self._sorting.received(redis, lane, claimed)

    async def _tidy(self, redis: Commands, lane: str) -> None:
        if monotonic() - self._tidied >= TIDY_SECONDS:
            self._tidied = monotonic()
            await redis.remove_dead(lane, GONE_SECONDS)


def _is_passing(answer: Exception) -> bool:
    """Whether an error is nothing to connect anew for: there is no group, which is made again, or no memory."""
    return is_no_group(answer) or isinstance(answer, exceptions.OutOfMemoryError)
