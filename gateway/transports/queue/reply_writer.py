"""How a consumer's answers get into Redis.

All that is there to be written at a moment leaves in one transaction: for each gateway a message with its answers, and
with it the entries of their questions are done. Either both happen or neither; where the answer of Redis itself is lost
nobody knows, and all is written again: the gateway drops what it has, and an entry that is done cannot be done again.

An answer whose deadline is over is dropped: nobody waits for it. A Redis that has no memory left takes no answers, but
lets entries be removed; so those without an answer go all the same, which frees memory for those that have one.
"""

import asyncio
from collections.abc import Iterable, Sequence
from itertools import chain
from time import monotonic
from typing import Any, Final

import structlog
from redis import exceptions

from gateway.redis.faults import reason_of
from gateway.telemetry.labels import ConsumerEvent
from gateway.telemetry.table import BRIDGE_EVENTS
from gateway.transports.queue.commands import Commands
from gateway.transports.queue.consumer_context import FULL, PART, ConsumerContext
from gateway.transports.queue.pending_deliveries import PendingEntry, PendingReply
from gateway.transports.queue.wire import sealed_replies

_LOG: Final = structlog.get_logger(__name__)

WRITE_BYTES: Final = 8_388_608
"""Up to which size answers are gathered into one transaction. Redis serves nobody else meanwhile: 8 ms at 1 GB/s."""

REPLIES_BYTES: Final = 1_048_576
"""The same of one message to one gateway, which opens and parses it at one go."""

GATHER: Final = 8
"""Turns of the loop in which a transaction is made up while the worker has more to answer: a transaction costs some 200
µs, a turn a tenth of that."""

FULL_SECONDS: Final = 0.25
"""The pause before a Redis that has no memory left is given the same answers again."""


class ReplyWriter:
    """Writes the answers of one consumer. ``answered`` counts those that a gateway was told.

    Args:
        consuming: the consumer.
    """

    def __init__(self, consuming: ConsumerContext) -> None:
        self._own = consuming
        self.answered = 0

    async def keep(self, redis: Commands) -> None:
        """Write whatever there is to write, until cancelled. Raises what ``Commands`` raise."""
        own = self._own
        while True:
            await own.writable.wait()
            own.writable.clear()
            await self._gather()
            while own.deliveries.dropped(1) or own.deliveries.due(1):
                try:
                    await self._write(redis)
                except exceptions.OutOfMemoryError:
                    await self._make_room(redis)
                own.takeable.set()
            own.emptied.set()

    def give_up_late(self) -> None:
        """Drop the answers whose deadlines are over, without Redis."""
        self._late(self._own.deliveries.late(monotonic()))

    async def _gather(self) -> None:
        for _ in range(GATHER):
            if not self._own.deliveries.in_work:
                return
            await asyncio.sleep(0)

    async def _write(self, redis: Commands) -> None:
        own = self._own
        dropped, due = own.deliveries.dropped(PART), own.deliveries.due(WRITE_BYTES)
        now = monotonic()
        timely = [answer for answer in due if answer.until > now]
        late = [answer for answer in due if answer.until <= now]
        messages = self._messages(timely)
        # "NOMKSTREAM": a gateway that is gone gets no stream, which nobody would read.
        writes: list[Any] = [
            ("XADD", own.names.replies(gateway), "NOMKSTREAM", "*", "m", sealed) for gateway, sealed, _ in messages
        ]
        said = await redis.run([*writes, *redis.dones(chain(dropped, _entries(due)))], transaction=True)
        for (_, _, count), result in zip(messages, said, strict=False):
            self._written(result, count)
        own.deliveries.removed(dropped)
        own.deliveries.done(timely)
        self._late(late)

    def _messages(self, answers: Sequence[PendingReply]) -> list[tuple[str, bytes, int]]:
        """For each message: the gateway, the sealed replies, and their number."""
        of_gateway: dict[str, list[PendingReply]] = {}
        for answer in answers:
            of_gateway.setdefault(answer.key.gateway, []).append(answer)
        seals, now = self._own.seals, self._own.clock.now()
        return [
            (gateway, sealed_replies(seals, gateway, [answer.reply for answer in part], now), len(part))
            for gateway, all_of_it in of_gateway.items()
            for part in _parts(all_of_it)
        ]

    def _written(self, result: Any, count: int) -> None:
        events = self._own.events
        if isinstance(result, Exception):
            events.count(BRIDGE_EVENTS, ConsumerEvent.UNWRITABLE, amount=count)
            _LOG.error("answers cannot be written", why=reason_of(result), answers=count)
        elif result is None:
            events.count(BRIDGE_EVENTS, ConsumerEvent.UNHEARD, amount=count)
        else:
            self.answered += count
            events.count(BRIDGE_EVENTS, ConsumerEvent.ANSWERED, amount=count)

    def _late(self, answers: Sequence[PendingReply]) -> None:
        if answers:
            self._own.events.count(BRIDGE_EVENTS, ConsumerEvent.LATE, amount=len(answers))
            self._own.deliveries.done(answers)

    async def _make_room(self, redis: Commands) -> None:
        own = self._own
        own.condition.become(FULL)
        dropped, late = own.deliveries.dropped(PART), own.deliveries.late(monotonic())
        if dropped or late:
            # No transaction: a Redis without memory queues no commands.
            await redis.run(redis.dones(chain(dropped, _entries(late))))
            own.deliveries.removed(dropped)
            self._late(late)
        await asyncio.sleep(FULL_SECONDS)


def _entries(answers: Iterable[PendingReply]) -> Iterable[PendingEntry]:
    return chain.from_iterable(answer.entries for answer in answers)


def _parts(answers: Sequence[PendingReply]) -> list[list[PendingReply]]:
    """As few messages as their size allows; one answer in any case."""
    parts: list[list[PendingReply]] = []
    room = 0
    for answer in answers:
        room -= answer.size
        if room < 0:
            parts.append([])
            room = REPLIES_BYTES - answer.size
        parts[-1].append(answer)
    return parts
