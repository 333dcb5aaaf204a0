"""What a consumer says to Redis: one method for each thing that it wants.

Every answer has a time limit. What goes wrong is raised, redis-py's exceptions or TimeoutError; then nobody knows what
was done, and whoever called connects anew.
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
"""How long a read waits for an entry before it begins anew. Whoever is told to stop waits for it: breaking it off would
leave entries to this consumer that nobody knows of."""

FORGOTTEN_SECONDS: Final = 600
"""How long what consumers write stays in Redis after the last of them is gone: presences and lanes. Every entry has
expired long before."""

NO_CONSUMER: Final = "nobody"
"""The consumer whose entries are anybody's."""

_MOST_IDS: Final = 1000
"""Entries that one command is about: a bridge has a hundred in hand, and what is pending is looked at part by part."""


class Delivered(Struct, frozen=True, kw_only=True):
    """An entry that was delivered to this consumer. ``before``: how often it was delivered to somebody who may have put
    it to the worker.
    """

    entry: PendingEntry
    fields: Mapping[bytes, bytes]
    before: int = 0


class Pending(Struct, frozen=True, kw_only=True):
    """An entry that was delivered and not done. ``times``: how often."""

    id: bytes
    consumer: str
    times: int


class NoGroupError(Exception):
    """There is no such stream or group: this is the first consumer, or Redis has lost its data."""


class Commands:
    """Speaks for one consumer.

    Args:
        client: of the server that holds the queue.
        names: of the queue.
        consumer: its name.
        seconds: how long an answer may take.
    """

    def __init__(self, client: Client, names: Names, consumer: str, seconds: float) -> None:
        self._client: Any = client
        self._names = names
        self._consumer = consumer
        self._seconds = seconds

    async def run(self, commands: Sequence[Command], *, transaction: bool = False) -> list[Any]:
        """The answers to commands that are sent together; an exception in the place of one is its error.

        Raises:
            Exception: redis-py's, if there are no answers, or if a transaction was refused as a whole.
        """
        async with asyncio.timeout(self._seconds):
            return await answers_to(self._client, commands, transaction=transaction)

    async def time(self) -> tuple[int, int]:
        """Redis' clock: seconds, and microseconds of the next."""
        async with asyncio.timeout(self._seconds):
            seconds, microseconds = await self._client.execute_command("TIME")
        return int(seconds), int(microseconds)

    async def make_group(self, lane: str) -> None:
        """Make a lane's stream and group, unless they are there. Entries that are there already are for the group."""
        name = self._names.calls(lane)
        made, *_ = await self.run(
            [("XGROUP", "CREATE", name, GROUP, "0", "MKSTREAM"), ("EXPIRE", name, FORGOTTEN_SECONDS)]
        )
        if isinstance(made, Exception) and not str(made).startswith("BUSYGROUP"):
            raise made

    async def read(self, lane: str, count: int) -> list[Delivered]:
        """So many new entries at most, waiting for one a little while.

        Raises:
            NoGroupError: there is no such group.
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
        """The oldest entries of a lane that are delivered and not done: anybody's that nobody has renewed for ``idle``
        seconds; None: this consumer's own.

        Raises:
            NoGroupError: there is no such group.
        """
        since = () if idle is None else ("IDLE", int(idle * 1000))
        whose = (self._consumer,) if idle is None else ()
        answer = await self._one("XPENDING", self._names.calls(lane), GROUP, *since, "-", "+", count, *whose)
        return [Pending(id=number, consumer=_text(name), times=times) for number, name, _, times in answer]

    async def claim(self, lane: str, pending: Sequence[Pending], *, idle: float = 0.0) -> list[Delivered]:
        """Take these over, as far as nobody has renewed them for ``idle`` seconds.

        Those of them that are not there any more, since they were cancelled or are too old, are done.
        """
        if not pending:
            return []
        name = self._names.calls(lane)
        numbers = [each.id for each in pending]
        answer = await self._one("XCLAIM", name, GROUP, self._consumer, int(idle * 1000), *numbers)
        # A deleted entry is nil in Redis 6.2, and left out later on.
        claimed = {number: fields for number, fields in filter(None, answer) if fields is not None}
        missing = [number for number in numbers if number not in claimed]
        if missing:
            await self._forget_deleted(name, missing)
        return [
            Delivered(
                entry=PendingEntry(lane, each.id),
                fields=_fields(claimed[each.id]),
                # What was delivered to this very consumer, and never came into its hands, nobody has been called.
                before=max(0, each.times - (each.consumer == self._consumer)),
            )
            for each in pending
            if each.id in claimed
        ]

    async def _forget_deleted(self, name: str, numbers: Sequence[bytes]) -> None:
        """Others may have claimed them instead: only what is not there is done."""
        found = await self.run([("XRANGE", name, number, number) for number in numbers])
        gone = [number for number, there in zip(numbers, found, strict=True) if there == []]
        if gone:
            await self.run([("XACK", name, GROUP, *gone)])

    async def give_back(self, delivered: Iterable[Delivered]) -> None:
        """Let others claim these at once, as if they had never been delivered here."""
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
        """Commands that keep entries from being claimed by others. (JUSTID: it is no delivery.)"""
        return [
            ("XCLAIM", self._names.calls(lane), GROUP, self._consumer, 0, *numbers[start : start + _MOST_IDS], "JUSTID")
            for lane, numbers in by_lane(entries).items()
            for start in range(0, len(numbers), _MOST_IDS)
        ]

    def dones(self, entries: Iterable[PendingEntry]) -> list[Command]:
        """Commands after which entries are done, and their bytes are free."""
        return [
            command
            for lane, numbers in by_lane(entries).items()
            for command in (
                ("XACK", self._names.calls(lane), GROUP, *numbers),
                ("XDEL", self._names.calls(lane), *numbers),
            )
        ]

    async def remove_dead(self, lane: str, idle: float) -> None:
        """Remove consumers from the group that have nothing, and have not been heard of for ``idle`` seconds.

        (Redis cannot do both at once: one that comes back at this very moment may lose what it is just being given. It
        has slept for a minute, and whatever it is given runs into its deadline.)
        """
        name = self._names.calls(lane)
        answer = await self._one("XINFO", "CONSUMERS", name, GROUP)
        for each in answer:
            seen = dict(zip(each[::2], each[1::2], strict=True))
            # Entries may be given back to nobody between these two commands.
            is_other = _text(seen[b"name"]) not in {self._consumer, NO_CONSUMER}
            if is_other and seen[b"pending"] == 0 and seen[b"idle"] > idle * 1000:
                await self.run([("XGROUP", "DELCONSUMER", name, GROUP, seen[b"name"])])

    async def leave(self, lane: str) -> None:
        """Be no consumer of the lane any more, unless something of it is still pending: others are to claim that."""
        if not await self.pending(lane, 1):
            await self.run([("XGROUP", "DELCONSUMER", self._names.calls(lane), GROUP, self._consumer)])

    async def _one(self, *command: Any) -> Any:
        (answer,) = await self.run([command])
        if isinstance(answer, Exception):
            _raise_no_group(answer)
            raise answer
        return answer


def by_lane(entries: Iterable[PendingEntry]) -> dict[str, list[bytes]]:
    """The entries' numbers, by lane."""
    lanes: dict[str, list[bytes]] = {}
    for lane, number in entries:
        lanes.setdefault(lane, []).append(number)
    return lanes


def is_no_group(error: BaseException) -> bool:
    """Whether it says that the stream or its group is not there; "UNBLOCKED the stream key no longer exists" too."""
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
