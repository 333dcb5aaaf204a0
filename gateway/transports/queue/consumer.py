"""One consumer of a queue: it reads calls from its lane, has a handler answer them, and writes the replies.

* It reads the lane of its worker's claims, as many calls as it has room for, and none while the worker is unavailable.
* It renews its pending entries each second; other consumers claim those that are not renewed (``heartbeat``). So a call
  is delivered **at least once** before its deadline, and a worker is called at most twice; with side effects, once
  (``delivery_dispatcher``).
* One transaction writes a reply and acknowledges its entry (``reply_writer``).
* While Redis is unavailable the worker continues, and replies wait until their deadlines. The consumer creates groups
  and presence again if Redis has lost them.
* A consumer that stops reads no more, answers the calls in hand, and removes its own data from Redis.
"""

import asyncio
import secrets
from contextlib import suppress
from functools import partial
from typing import Final

import structlog
from redis import exceptions

from gateway.redis.addresses import RedisAddress
from gateway.redis.clients import Client
from gateway.redis.link import Link
from gateway.redis.slot_clients import home_client
from gateway.telemetry.events import Events, NoEvents
from gateway.transports.limits import ConsumerLimits
from gateway.transports.queue.commands import Commands, NoGroupError
from gateway.transports.queue.consumer_context import PART, ConsumerCondition, ConsumerContext
from gateway.transports.queue.delivery_dispatcher import DeliveryDispatcher
from gateway.transports.queue.handler import Handler
from gateway.transports.queue.heartbeat import Heartbeat
from gateway.transports.queue.names import Names
from gateway.transports.queue.pending_deliveries import PendingDeliveries, PendingEntry
from gateway.transports.queue.reply_writer import ReplyWriter
from gateway.transports.queue.seals import QueueSeals

_LOG: Final = structlog.get_logger(__name__)

_CONNECTIONS: Final = 4
"""For reads, writes and heartbeats, and one spare."""


class Consumer:
    """Reads calls from one queue.

    Args:
        address: of Redis.
        stream: the queue's name.
        seals: of the queue; the consumer reloads the key file when it changes.
        handler: answers calls, and describes the worker.
        limits: see ConsumerLimits.
        events: counts events.
    """

    def __init__(
        self,
        address: RedisAddress,
        stream: str,
        *,
        seals: QueueSeals,
        handler: Handler,
        limits: ConsumerLimits | None = None,
        events: Events | None = None,
    ) -> None:
        limits = limits or ConsumerLimits()
        events = events or NoEvents()
        # Random, because it can be read in Redis: it must not identify this machine.
        name = secrets.token_hex(16)
        self._context = ConsumerContext(
            name=name,
            names=Names(stream),
            seals=seals,
            handler=handler,
            limits=limits,
            events=events,
            condition=ConsumerCondition(stream, name, address.shown, events),
            deliveries=PendingDeliveries(limits.in_flight, limits.in_flight_bytes),
        )
        self._dispatcher = DeliveryDispatcher(self._context)
        self._reply_writer = ReplyWriter(self._context)
        self._heartbeat = Heartbeat(self._context, self._dispatcher, self._reply_writer)
        self._lane = ""
        seconds = limits.answer_seconds
        self._link = Link(
            connect=partial(
                home_client, address, self._context.names.workers, seconds=seconds, connections=_CONNECTIONS
            ),
            opened=self._opened,
            work=self._work,
            lost=self._lost,
            seconds=seconds,
        )
        handler.listen(self._changed)

    @property
    def name(self) -> str:
        """Its name in the consumer group."""
        return self._context.name

    @property
    def why(self) -> str:
        """Why it reads no calls from the queue; empty if it does."""
        return self._context.condition.why

    @property
    def in_hand(self) -> int:
        """Calls at the worker, and answers not yet written."""
        return self._context.deliveries.in_hand

    def stop(self) -> None:
        """Read no more calls. ``run`` returns when those in hand are answered, at the latest at their deadlines."""
        self._heartbeat.is_stopping = True
        self._changed()
        self._context.emptied.set()

    async def run(self) -> None:
        """Read calls until ``stop`` is called. When Redis fails, connect again."""
        try:
            await self._link.run()
        finally:
            await self._dispatcher.close()

    def _changed(self) -> None:
        """The consumer's description, or whether it is stopping, has changed."""
        self._context.heartbeat_due.set()
        self._context.may_take.set()

    def _lost(self, error: Exception, was_up: bool) -> None:  # noqa: FBT001 - Link's own callback
        del was_up
        self._context.condition.lost(self._link.why)
        ours = error.split(_REDIS)[1] if isinstance(error, ExceptionGroup) else None
        if ours is not None or not isinstance(error, (*_REDIS, ExceptionGroup)):
            _LOG.error("reading calls from the queue failed inside the bridge", exc_info=ours or error)
        self._reply_writer.give_up_late()
        if self._heartbeat.is_stopping and not self._context.deliveries.in_hand:
            self._link.end()

    # --------------------------------------------------------------------------------------------- one session

    async def _opened(self, client: Client) -> Commands:
        redis = Commands(client, self._context.names, self._context.name, self._context.limits.answer_seconds)
        await self._heartbeat.begin(redis)
        return redis

    async def _work(self, redis: Commands) -> None:
        await self._serve(redis)
        with suppress(*_REDIS, NoGroupError):  # other consumers remove what remains
            await self._leave(redis)

    async def _serve(self, redis: Commands) -> None:
        """Read, answer and renew, until the consumer stops and nothing is in hand."""
        context = self._context
        context.may_write.set()  # replies that the previous session did not write
        async with asyncio.TaskGroup() as group:
            others = [group.create_task(each.keep(redis)) for each in (self._heartbeat, self._reply_writer)]
            await self._take(redis)
            while not context.deliveries.is_empty:
                context.emptied.clear()
                await context.emptied.wait()
            for other in others:
                other.cancel()

    async def _take(self, redis: Commands) -> None:
        context, recovered = self._context, ""
        while not self._heartbeat.is_stopping:
            consumer_description, count = (
                self._heartbeat.consumer_description,
                self._dispatcher.read_count(context.deliveries.room),
            )
            if consumer_description is None or not count:
                context.may_take.clear()
                await context.may_take.wait()
                continue
            self._lane = consumer_description.lane
            try:
                if recovered != self._lane:
                    await self._recover(redis)
                    recovered = self._lane
                await self._dispatcher.received(redis, self._lane, await redis.read(self._lane, count))
            except NoGroupError:
                await redis.make_group(self._lane)

    async def _recover(self, redis: Commands) -> None:
        """Claim entries that were delivered to this consumer by a read whose answer was lost."""
        pending = await redis.pending(self._lane, PART)
        wanted = [each for each in pending if not self._context.deliveries.holds(PendingEntry(self._lane, each.id))]
        await self._dispatcher.received(redis, self._lane, await redis.claim(self._lane, wanted))

    async def _leave(self, redis: Commands) -> None:
        await redis.run([("HDEL", self._context.names.workers, self._context.name)])
        if self._lane:
            await redis.leave(self._lane)


_REDIS: Final = (exceptions.RedisError, OSError, TimeoutError)
"""What redis-py raises, and what an unreachable server causes."""
