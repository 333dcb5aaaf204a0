"""The Redis commands of a consumer, one method for each purpose.

Each answer has a time limit. Errors are redis-py's exceptions or TimeoutError. After one it is unknown which commands
Redis has run, so the caller opens a new connection.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from redis import exceptions

from gateway.redis.clients import Client
from gateway.redis.pipelines import Command, answers_to
from gateway.transports.queue.names import GROUP, Names
from gateway.transports.queue.pending_deliveries import PendingEntry

BLOCK_SECONDS: Final = 0.5
"""How long a read blocks. A consumer that stops waits for its read: a canceled one could leave entries that are
delivered to it and that it does not know of."""

FORGOTTEN_SECONDS: Final = 600
"""How long Redis keeps presences and lanes after the last consumer is gone. Every entry has expired long before."""

NO_CONSUMER: Final = "unassigned"
"""The consumer name of entries that were given back: any consumer may claim them at once."""

_MOST_IDS: Final = 1000
"""Entries in one command. A bridge has a hundred in hand, and reads pending entries in parts."""


class Delivered(Struct, frozen=True, kw_only=True):
    """An entry that was delivered to this consumer. ``before`` counts earlier deliveries after which a worker may have
    been called.
    """

    entry: PendingEntry
    fields: Mapping[bytes, bytes]
    before: int = 0


class Pending(Struct, frozen=True, kw_only=True):
    """A pending entry: delivered and not acknowledged. ``times`` counts its deliveries."""

    id: bytes
    consumer: str
    times: int


class NoGroupError(Exception):
    """The stream or group does not exist: this is the first consumer, or Redis has lost its data."""


class Commands:
    """The commands of one consumer.

    Args:
        client: of the server that holds the queue.
        names: of the queue.
        consumer: the consumer's name.
        seconds: time limit of an answer.
    """

    def __init__(self, client: Client, names: Names, consumer: str, seconds: float) -> None:
        self._client: Any = client
        self._names = names
        self._consumer = consumer
        self._seconds = seconds

    async def run(self, commands: Sequence[Command], *, transaction: bool = False) -> list[Any]:
        """The answers to commands of one pipeline. An exception in place of an answer is that command's error.

        Raises:
            Exception: redis-py's, if there are no answers, or if Redis rejected the transaction.
        """
        async with asyncio.timeout(self._seconds):
            return await answers_to(self._client, commands, transaction=transaction)

    async def time(self) -> tuple[int, int]:
        """Redis' clock: seconds, and microseconds of the next."""
        async with asyncio.timeout(self._seconds):
            seconds, microseconds = await self._client.execute_command("TIME")
        return int(seconds), int(microseconds)

    async def make_group(self, lane: str) -> None:
        """Create a lane's stream and group, unless they exist; the group starts at the first entry."""
        name = self._names.calls(lane)
        made, *_ = await self.run(
            [("XGROUP", "CREATE", name, GROUP, "0", "MKSTREAM"), ("EXPIRE", name, FORGOTTEN_SECONDS)]
        )
        if isinstance(made, Exception) and not str(made).startswith("BUSYGROUP"):
            raise made

    async def read(self, lane: str, count: int) -> list[Delivered]:
        """At most ``count`` new entries; blocks up to ``BLOCK_SECONDS`` for the first.

        Raises:
            NoGroupError: the group does not exist.
        """
        block = int(BLOCK_SECONDS * 1000)
        command = ("XREADGROUP", "GROUP", GROUP, self._consumer, "COUNT", count, "BLOCK", block, "STREAMS")
        try:
            async with asyncio.timeout(BLOCK_SECONDS + self._seconds):
                answer = await self._client.execute_command(*command, self._names.calls(lane), ">")
        except exceptions.ResponseError as error:
            _raise_no_group(error)
            raise
        return [] if answer is None else _entries(lane, answer[0][1])

    async def pending(self, lane: str, count: int, *, idle: float | None = None) -> list[Pending]:
        """The oldest pending entries of a lane: those of any consumer that were not renewed for ``idle`` seconds, or
        this consumer's own if ``idle`` is None.

        Raises:
            NoGroupError: the group does not exist.
        """
        since = () if idle is None else ("IDLE", int(idle * 1000))
        whose = (self._consumer,) if idle is None else ()
        answer = await self._one("XPENDING", self._names.calls(lane), GROUP, *since, "-", "+", count, *whose)
        return [Pending(id=number, consumer=_text(name), times=times) for number, name, _, times in answer]

    async def claim(self, lane: str, pending: Sequence[Pending], *, idle: float = 0.0) -> list[Delivered]:
        """Claim those that were not renewed for ``idle`` seconds.

        Entries that no longer exist, because they were canceled or trimmed, are acknowledged.
        """
        if not pending:
            return []
        name = self._names.calls(lane)
        numbers = [each.id for each in pending]
        answer = await self._one("XCLAIM", name, GROUP, self._consumer, int(idle * 1000), *numbers)
        # A deleted entry is nil in Redis 6.2, and left out in later versions.
        claimed = {number: fields for number, fields in filter(None, answer) if fields is not None}
        missing = [number for number in numbers if number not in claimed]
        if missing:
            await self._forget_deleted(name, missing)
        return [
            Delivered(
                entry=PendingEntry(lane, each.id),
                fields=_fields(claimed[each.id]),
                # Its own pending entry never arrived here (the read's answer was lost), so no worker was called.
                before=max(0, each.times - (each.consumer == self._consumer)),
            )
            for each in pending
            if each.id in claimed
        ]

    async def _forget_deleted(self, name: str, numbers: Sequence[bytes]) -> None:
        """Acknowledge those that do not exist. The others were claimed by another consumer."""
        found = await self.run([("XRANGE", name, number, number) for number in numbers])
        gone = [number for number, there in zip(numbers, found, strict=True) if there == []]
        if gone:
            await self.run([("XACK", name, GROUP, *gone)])

    async def give_back(self, delivered: Iterable[Delivered]) -> None:
        """Let other consumers claim these at once, with the delivery count from before."""
        idle = FORGOTTEN_SECONDS * 1000
        commands = []
        for each in delivered:
            options = ("IDLE", idle, "RETRYCOUNT", each.before, "JUSTID")
            commands.append(
                ("XCLAIM", self._names.calls(each.entry.lane), GROUP, NO_CONSUMER, 0, each.entry.id, *options)
            )
        if commands:
            await self.run(commands)

    def renewals(self, entries: Iterable[PendingEntry]) -> list[Command]:
        """Commands that reset entries' idle times, so that no other consumer claims them. JUSTID counts no delivery."""
        return [
            ("XCLAIM", self._names.calls(lane), GROUP, self._consumer, 0, *numbers[start : start + _MOST_IDS], "JUSTID")
            for lane, numbers in by_lane(entries).items()
            for start in range(0, len(numbers), _MOST_IDS)
        ]

    def acknowledgements(self, entries: Iterable[PendingEntry]) -> list[Command]:
        """Commands that acknowledge and delete entries."""
        return [
            command
            for lane, numbers in by_lane(entries).items()
            for command in (
                ("XACK", self._names.calls(lane), GROUP, *numbers),
                ("XDEL", self._names.calls(lane), *numbers),
            )
        ]

    async def remove_dead(self, lane: str, idle: float) -> None:
        """Remove consumers from the group that have no pending entries and were idle for ``idle`` seconds.

        Check and removal are two commands. A consumer that reads between them loses that entry, which ends at its
        deadline; it has done nothing for a minute before.
        """
        name = self._names.calls(lane)
        answer = await self._one("XINFO", "CONSUMERS", name, GROUP)
        for each in answer:
            seen = dict(zip(each[::2], each[1::2], strict=True))
            # An entry may be given back between these two commands.
            is_other = _text(seen[b"name"]) not in {self._consumer, NO_CONSUMER}
            if is_other and seen[b"pending"] == 0 and seen[b"idle"] > idle * 1000:
                await self.run([("XGROUP", "DELCONSUMER", name, GROUP, seen[b"name"])])

    async def leave(self, lane: str) -> None:
        """Leave the lane's group, unless entries of this consumer are pending: other consumers claim those."""
        if not await self.pending(lane, 1):
            await self.run([("XGROUP", "DELCONSUMER", self._names.calls(lane), GROUP, self._consumer)])

    async def _one(self, *command: Any) -> Any:
        (answer,) = await self.run([command])
        if isinstance(answer, Exception):
            _raise_no_group(answer)
            raise answer
        return answer


def by_lane(entries: Iterable[PendingEntry]) -> dict[str, list[bytes]]:
    """The entries' IDs, by lane."""
    lanes: dict[str, list[bytes]] = {}
    for lane, number in entries:
        lanes.setdefault(lane, []).append(number)
    return lanes


def is_no_group(error: BaseException) -> bool:
    """Whether the stream or its group does not exist; "UNBLOCKED the stream key no longer exists" is the same."""
    return str(error).startswith(("NOGROUP", "UNBLOCKED"))


def _raise_no_group(error: BaseException) -> None:
    if is_no_group(error):
        raise NoGroupError from None


def _entries(lane: str, answer: Any) -> list[Delivered]:
    return [Delivered(entry=PendingEntry(lane, number), fields=_fields(fields)) for number, fields in answer]


def _fields(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")
