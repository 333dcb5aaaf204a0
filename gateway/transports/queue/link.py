"""The link of one process to the Redis of a queue: two connections, and what is done over them until one breaks.

    connecting  --both connected-->  up, the session runs
    up          --an error, or no answer in time-->  connecting, at once
    connecting  --it failed-->  a pause, longer each time up to ``PAUSE_SECONDS``; then again

One connection is for commands: many are sent in one write, and their answers read in order. The other one waits for
news in a command that blocks, which nobody else's commands may stand behind. Each attempt begins with a client of its
own, so whatever moved (a name in DNS, the master, slots of a cluster) is found again.

The commands are packed, and their answers read, on redis-py's connections and not by its client: its pipelines cost
three times as much for each command.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final

import structlog
from hiredis import pack_command
from redis import exceptions
from redis.asyncio import Redis

from gateway.redis.addresses import RedisAddress
from gateway.redis.clients import close_client
from gateway.redis.faults import reason_of
from gateway.redis.homes import home_client
from gateway.redis.pipelines import Command

_LOG: Final = structlog.get_logger(__name__)

PAUSE_SECONDS: Final = (0.05, 1.0)
"""First and longest pause between attempts to connect. A restart takes less than a second; a failover a few."""

_CONNECTIONS: Final = 2


class Session:
    """Two connections. Whatever goes wrong with one is an exception, and ends the session.

    Args:
        commands: the connection for commands.
        news: the connection for what blocks.
        seconds: how long Redis may take to answer.
    """

    __slots__ = ("_commands", "_news", "_seconds")

    def __init__(self, commands: Any, news: Any, seconds: float) -> None:
        self._commands = commands
        self._news = news
        self._seconds = seconds

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        """The answers to commands, sent in one write that is no transaction. An exception in the place of an answer is
        an error of that command.

        Raises:
            Exception: redis-py's, or TimeoutError: the connection is lost, and nobody knows what was done.
        """
        connection, answers = self._commands, []
        async with asyncio.timeout(self._seconds):
            await connection.send_packed_command([pack_command(command) for command in commands], check_health=False)
            for _ in commands:
                try:
                    answers.append(await connection.read_response(timeout=math.inf))
                except exceptions.ResponseError as error:
                    answers.append(error)
        return answers

    async def wait_for_news(self, command: Command, seconds: float) -> Any:
        """The answer to a command that blocks for so many seconds.

        Raises:
            Exception: as ``execute``; an error of the command, too.
        """
        async with asyncio.timeout(seconds + self._seconds):
            await self._news.send_packed_command([pack_command(command)], check_health=False)
            return await self._news.read_response(timeout=math.inf)


class Link:
    """Keeps a session with Redis.

    Args:
        address: where it is.
        queue: its name, for the log.
        name: of a key whose slot has all that is asked for, should it be a cluster.
        seconds: for connecting, and for each answer.
        work: what is done in a session; ends by an exception only.
        lost: told, once for each session and each failed attempt to have one, what went wrong.
    """

    def __init__(
        self,
        address: RedisAddress,
        *,
        queue: str,
        name: str,
        seconds: float,
        work: Callable[[Session], Awaitable[object]],
        lost: Callable[[Exception], object],
    ) -> None:
        self._address = address
        self._queue = queue
        self._name = name
        self._seconds = seconds
        self._work = work
        self._lost = lost
        self._disposals: set[asyncio.Task[None]] = set()
        self._is_up = False
        self._is_closed = False
        self._down_since = monotonic()
        self._up_since = 0.0
        self.why = ""
        """Why there is no session, as far as anybody knows; empty if there is one, or an attempt to have the first."""
        self._task = asyncio.create_task(self._keep())

    @property
    def is_up(self) -> bool:
        """Whether there is a session."""
        return self._is_up

    def is_back(self, seconds: float) -> bool:
        """Whether there is a session, for less time than this."""
        return self._is_up and monotonic() - self._up_since < seconds

    def is_away(self, seconds: float) -> bool:
        """Whether there has been no session for so long, although it was tried."""
        return not self._is_up and bool(self.why) and monotonic() - self._down_since > seconds

    async def close(self, leave: Callable[[Session], Awaitable[object]]) -> None:
        """End the session, and all connections.

        Args:
            leave: what is done last, if there is a session. It gets two connections on which nothing else is going on.
        """
        self._is_closed = True
        was_up = self._is_up
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if was_up:
            with suppress(Exception):
                async with asyncio.timeout(self._seconds):
                    await self._once_more(leave)
        await asyncio.gather(*self._disposals)

    async def _once_more(self, work: Callable[[Session], Awaitable[object]]) -> None:
        """A cancelled session leaves its connections in the middle of an answer: new ones."""
        client = await home_client(self._address, self._name, seconds=self._seconds, connections=_CONNECTIONS)
        try:
            await work(await self._session(client))
        finally:
            await close_client(client)

    async def _keep(self) -> None:
        pause = PAUSE_SECONDS[0]
        while not self._is_closed:
            client: Redis | None = None
            was_up = False
            try:
                client = await home_client(self._address, self._name, seconds=self._seconds, connections=_CONNECTIONS)
                async with asyncio.timeout(self._seconds):
                    session = await self._session(client)
                self._is_up = was_up = True
                self._told_up()
                await self._work(session)
            except Exception as error:  # noqa: BLE001 - counted and logged; nobody else would connect again
                self._told_down(error, was_up=was_up)
            finally:
                self._is_up = False
                if client is not None:
                    # In a task of its own: whoever cancels this one must not leave connections behind.
                    disposal = asyncio.create_task(self._dispose(client))
                    self._disposals.add(disposal)
                    disposal.add_done_callback(self._disposals.discard)
            await asyncio.sleep(pause)
            pause = PAUSE_SECONDS[0] if was_up else min(2 * pause, PAUSE_SECONDS[1])

    async def _session(self, client: Redis) -> Session:
        pool: Any = client.connection_pool
        return Session(await pool.get_connection(), await pool.get_connection(), self._seconds)

    def _told_up(self) -> None:
        self._up_since = monotonic()
        if self.why:
            _LOG.info("the Redis of a queue is back", queue=self._queue, scheme=self._address.shown)
        self.why = ""

    def _told_down(self, error: Exception, *, was_up: bool) -> None:
        if was_up:
            self._down_since = monotonic()
        why = reason_of(error, has_worked=self._up_since > 0)
        if not self.why:
            _LOG.warning(
                "the Redis of a queue is lost" if was_up else "the Redis of a queue cannot be reached",
                queue=self._queue,
                scheme=self._address.shown,
                why=why,
            )
        self.why = why
        self._is_up = False
        self._lost(error)

    async def _dispose(self, client: Redis) -> None:
        # Its connections may hang; closing waits for nothing but may itself be interrupted.
        with suppress(Exception):
            async with asyncio.timeout(self._seconds):
                await close_client(client)
