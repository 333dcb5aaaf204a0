"""Writes a consumer's replies to Redis.

One transaction writes all replies that wait, in one message for each gateway, and acknowledges and deletes the entries
of their calls: either both happen or neither. If Redis' own answer is lost, the writer repeats the transaction: the
gateway ignores replies that it has, and acknowledging an entry twice does nothing.

A reply whose deadline is over is dropped, because the gateway no longer waits for it. A Redis without free memory
rejects replies but allows deletions. So entries without a reply are deleted then, which frees memory for the replies.
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
from gateway.transports.queue.codec import sealed_replies
from gateway.transports.queue.commands import Commands
from gateway.transports.queue.consumer_context import FULL, PART, ConsumerContext
from gateway.transports.queue.pending_deliveries import PendingEntry, PendingReply

_LOG: Final = structlog.get_logger(__name__)

WRITE_BYTES: Final = 8_388_608
"""Size limit of one transaction. It blocks Redis meanwhile: for 8 ms at 1 GB/s."""

REPLIES_BYTES: Final = 1_048_576
"""Size limit of one message to a gateway, which opens and parses it at once."""

GATHER: Final = 8
"""Turns of the event loop that a transaction gathers replies while calls are at the worker: a transaction costs about
200 µs, a turn a tenth of that."""

FULL_SECONDS: Final = 0.25
"""The pause before the same replies are written again to a Redis without free memory."""


class ReplyWriter:
    """Writes the replies of one consumer. ``answered`` counts those that were written.

    Args:
        context: of the consumer.
    """

    def __init__(self, context: ConsumerContext) -> None:
        self._context = context
        self.answered = 0

    async def keep(self, redis: Commands) -> None:
        """Write replies and acknowledgements until canceled. Raises what ``Commands`` raise."""
        context = self._context
        while True:
            await context.may_write.wait()
            context.may_write.clear()
            await self._gather()
            while context.deliveries.dropped(1) or context.deliveries.due(1):
                try:
                    await self._write(redis)
                except exceptions.OutOfMemoryError:
                    await self._make_room(redis)
                context.may_take.set()
            context.emptied.set()

    def give_up_late(self) -> None:
        """Drop the replies whose deadlines are over, without Redis."""
        self._late(self._context.deliveries.late(monotonic()))

    async def _gather(self) -> None:
        for _ in range(GATHER):
            if not self._context.deliveries.in_flight:
                return
            await asyncio.sleep(0)

    async def _write(self, redis: Commands) -> None:
        context = self._context
        dropped, due = context.deliveries.dropped(PART), context.deliveries.due(WRITE_BYTES)
        now = monotonic()
        timely = [answer for answer in due if answer.until > now]
        late = [answer for answer in due if answer.until <= now]
        messages = self._messages(timely)
        # "NOMKSTREAM": a gateway that is gone has no stream, and a new one would not be read.
        writes: list[Any] = [
            ("XADD", context.names.replies(gateway), "NOMKSTREAM", "*", "m", sealed) for gateway, sealed, _ in messages
        ]
        results = await redis.run([*writes, *redis.acknowledgements(chain(dropped, _entries(due)))], transaction=True)
        for (_, _, count), result in zip(messages, results, strict=False):
            self._written(result, count)
        context.deliveries.removed(dropped)
        context.deliveries.done(timely)
        self._late(late)

    def _messages(self, answers: Sequence[PendingReply]) -> list[tuple[str, bytes, int]]:
        """For each message: the gateway, the sealed replies, and their number."""
        of_gateway: dict[str, list[PendingReply]] = {}
        for answer in answers:
            of_gateway.setdefault(answer.key.gateway, []).append(answer)
        seals, now = self._context.seals, self._context.clock.now()
        return [
            (gateway, sealed_replies(seals, gateway, [answer.reply for answer in part], now), len(part))
            for gateway, all_of_it in of_gateway.items()
            for part in _parts(all_of_it)
        ]

    def _written(self, result: Any, count: int) -> None:
        events = self._context.events
        if isinstance(result, Exception):
            events.count(BRIDGE_EVENTS, ConsumerEvent.UNWRITABLE, amount=count)
            _LOG.error("replies cannot be written", why=reason_of(result), replies=count)
        elif result is None:
            events.count(BRIDGE_EVENTS, ConsumerEvent.ORPHANED, amount=count)
        else:
            self.answered += count
            events.count(BRIDGE_EVENTS, ConsumerEvent.ANSWERED, amount=count)

    def _late(self, answers: Sequence[PendingReply]) -> None:
        if answers:
            self._context.events.count(BRIDGE_EVENTS, ConsumerEvent.LATE, amount=len(answers))
            self._context.deliveries.done(answers)

    async def _make_room(self, redis: Commands) -> None:
        context = self._context
        context.condition.become(FULL)
        dropped, late = context.deliveries.dropped(PART), context.deliveries.late(monotonic())
        if dropped or late:
            # Not a transaction: a Redis without free memory rejects the commands of one.
            await redis.run(redis.acknowledgements(chain(dropped, _entries(late))))
            context.deliveries.removed(dropped)
            self._late(late)
        await asyncio.sleep(FULL_SECONDS)


def _entries(answers: Iterable[PendingReply]) -> Iterable[PendingEntry]:
    return chain.from_iterable(answer.entries for answer in answers)


def _parts(answers: Sequence[PendingReply]) -> list[list[PendingReply]]:
    """Split replies into as few messages as ``REPLIES_BYTES`` allows, with at least one reply each."""
    parts: list[list[PendingReply]] = []
    room = 0
    for answer in answers:
        room -= answer.size
        if room < 0:
            parts.append([])
            room = REPLIES_BYTES - answer.size
        parts[-1].append(answer)
    return parts
