"""A session of a gateway with the Redis of a queue: two connections.

One is for commands: many are sent in one write, and their answers read in order. The other one waits for news in a
command that blocks, which nobody else's commands may stand behind.

The commands are packed, and their answers read, on redis-py's connections and not by its client: its pipelines cost
three times as much for each command.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Any, Final

from hiredis import pack_command
from redis import exceptions

from gateway.redis.pipelines import Command

CONNECTIONS: Final = 2
"""Of a session."""


class Session:
    """Two connections. Whatever goes wrong with one is an exception, and ends the session.

    Args:
        commands: the connection for commands.
        changes: the connection for what blocks.
        seconds: how long Redis may take to answer.
    """

    __slots__ = ("_changes", "_commands", "_seconds")

    def __init__(self, commands: Any, changes: Any, seconds: float) -> None:
        self._commands = commands
        self._changes = changes
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

    async def wait_for_changes(self, command: Command, seconds: float) -> Any:
        """The answer to a command that blocks for so many seconds.

        Raises:
            Exception: as ``execute``; an error of the command, too.
        """
        async with asyncio.timeout(seconds + self._seconds):
            await self._changes.send_packed_command([pack_command(command)], check_health=False)
            return await self._changes.read_response(timeout=math.inf)


async def open_session(client: Any, seconds: float) -> Session:
    """A session over a client of one server.

    Raises:
        Exception: redis-py's, or TimeoutError: it cannot be reached in so many seconds.
    """
    pool = client.connection_pool
    async with asyncio.timeout(seconds):
        return Session(await pool.get_connection(), await pool.get_connection(), seconds)
