"""One consumer of a queue: takes calls from its lane, has them judged, and answers them.

* It takes from the lane of what its worker claims, as many as it has room for; nothing while nobody can be called.
* What is in hand is renewed each second, and claimed by others if it is not (``heartbeat``). So whatever was taken is
  answered by somebody, or its deadline passes: a call is delivered **at least once**, and put to a worker twice at
  most; one with side effects, once (``sorting``).
* An answer and the end of its entry are one transaction (``answering``).
* While Redis is away the worker goes on, and answers wait until their deadlines are over. What Redis has forgotten,
  groups and presence, is made again.
* Whoever is told to stop takes no more, answers what it has, and leaves nothing of its own behind.
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
from gateway.redis.homes import home_client
from gateway.redis.link import Link
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
"""One reads, one writes, one beats; one is spare."""


class Consumer:
    """Takes work from one queue.

    Args:
        address: of Redis.
        stream: the queue's name.
        seals: of the queue; read again here, when the file changes.
        judging: answers what is taken, and says as whom.
        limits: see ConsumerLimits.
        events: hears of what happens.
    """

    def __init__(
        self,
        address: RedisAddress,
        stream: str,
        *,
        seals: QueueSeals,
        judging: Handler,
        limits: ConsumerLimits | None = None,
        events: Events | None = None,
    ) -> None:
        limits = limits or ConsumerLimits()
        events = events or NoEvents()
        # It says nothing of this machine: it can be read in Redis.
        name = secrets.token_hex(16)
        self._own = ConsumerContext(
            name=name,
            names=Names(stream),
            seals=seals,
            judging=judging,
            limits=limits,
            events=events,
            condition=ConsumerCondition(stream, name, address.shown, events),
            deliveries=PendingDeliveries(limits.in_flight, limits.in_flight_bytes),
        )
        self._sorting = DeliveryDispatcher(self._own)
        self._answering = ReplyWriter(self._own)
        self._heartbeat = Heartbeat(self._own, self._sorting, self._answering)
        self._lane = ""
        seconds = limits.answer_seconds
        self._link = Link(
            connect=partial(home_client, address, self._own.names.workers, seconds=seconds, connections=_CONNECTIONS),
            opened=self._opened,
            work=self._work,
            lost=self._lost,
            seconds=seconds,
        )
        judging.listen(self._changed)

    @property
    def name(self) -> str:
        """Under which it stands in the group."""
        return self._own.name

    @property
    def why(self) -> str:
        """Why it takes no work from the queue; empty if it does."""
        return self._own.condition.why

    @property
    def in_hand(self) -> int:
        """Questions that the worker is called now, and answers that wait to be written."""
        return self._own.deliveries.in_hand

    def stop(self) -> None:
        """Take no more. ``run`` returns when what is in hand is answered; each call has its deadline, so that ends."""
        self._heartbeat.is_stopping = True
        self._changed()
        self._own.emptied.set()

    async def run(self) -> None:
        """Take work until told to stop. Whatever happens to Redis, it goes on."""
        try:
            await self._link.run()
        finally:
            await self._sorting.close()

    def _changed(self) -> None:
        """As whom it takes work may have changed."""
        self._own.monitor.set()
        self._own.takeable.set()

    def _lost(self, error: Exception, was_up: bool) -> None:  # noqa: FBT001 - Link's own callback
        del was_up
        self._own.condition.lost(self._link.why)
        ours = error.split(_REDIS)[1] if isinstance(error, ExceptionGroup) else None
        if ours is not None or not isinstance(error, (*_REDIS, ExceptionGroup)):
            _LOG.error("taking work from a queue failed inside the bridge", exc_info=ours or error)
        self._answering.give_up_late()
        if self._heartbeat.is_stopping and not self._own.deliveries.in_hand:
            self._link.end()

    # --------------------------------------------------------------------------------------------- one session

    async def _opened(self, client: Client) -> Commands:
        redis = Commands(client, self._own.names, self._own.name, self._own.limits.answer_seconds)
        await self._heartbeat.begin(redis)
        return redis

    async def _work(self, redis: Commands) -> None:
        await self._serve(redis)
        with suppress(*_REDIS, NoGroupError):  # what stays is removed by others
            await self._leave(redis)

    async def _serve(self, redis: Commands) -> None:
        """Take, answer and beat, until told to stop and nothing is in hand."""
        own = self._own
        own.writable.set()  # what the session before has left
        async with asyncio.TaskGroup() as group:
            others = [group.create_task(each.keep(redis)) for each in (self._heartbeat, self._answering)]
            await self._take(redis)
            while not own.deliveries.is_empty:
                own.emptied.clear()
                await own.emptied.wait()
            for other in others:
                other.cancel()

    async def _take(self, redis: Commands) -> None:
        own, recovered = self._own, ""
        while not self._heartbeat.is_stopping:
            consumer_description, count = (
                self._heartbeat.consumer_description,
                self._sorting.appetite(own.deliveries.room),
            )
            if consumer_description is None or not count:
                own.takeable.clear()
                await own.takeable.wait()
                continue
            self._lane = consumer_description.lane
            try:
                if recovered != self._lane:
                    await self._recover(redis)
                    recovered = self._lane
                await self._sorting.received(redis, self._lane, await redis.read(self._lane, count))
            except NoGroupError:
                await redis.make_group(self._lane)

    async def _recover(self, redis: Commands) -> None:
        """Take up what was delivered to this consumer by a read whose answer was lost on the way: nobody else knows."""
        pending = await redis.pending(self._lane, PART)
        wanted = [each for each in pending if not self._own.deliveries.holds(PendingEntry(self._lane, each.id))]
        await self._sorting.received(redis, self._lane, await redis.claim(self._lane, wanted))

    async def _leave(self, redis: Commands) -> None:
        await redis.run([("HDEL", self._own.names.workers, self._own.name)])
        if self._lane:
            await redis.leave(self._lane)


_REDIS: Final = (exceptions.RedisError, OSError, TimeoutError)
"""What redis-py raises, and what a server that is away is."""
