"""A session of a gateway with the Redis of a queue: two connections.

One is for commands: many are sent in one write, and their answers are read in order. The other one is for a blocking
read, which would delay other commands on its connection.

The session uses redis-py's connections directly, not its client, whose pipelines cost three times as much per command.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Any, Final

from hiredis import pack_command
from redis import exceptions

from gateway.redis.pipelines import Command

CONNECTIONS: Final = 2
"""Connections of a session."""


class Session:
    """Two connections. An error of either is an exception, and ends the session.

    Args:
        commands: the connection for commands.
        changes: the connection for blocking reads.
        seconds: time limit of an answer.
    """

    __slots__ = ("_changes", "_commands", "_seconds")

    def __init__(self, commands: Any, changes: Any, seconds: float) -> None:
        self._commands = commands
        self._changes = changes
        self._seconds = seconds

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        """The answers to commands that are sent in one write, not a transaction. An exception in place of an answer is
        that command's error.

        Raises:
            Exception: redis-py's, or TimeoutError: the connection is lost, and it is unknown what Redis has executed.
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
        """The answer to a command that blocks for at most so many seconds.

        Raises:
            Exception: as ``execute``, or an error of the command.
        """
        async with asyncio.timeout(seconds + self._seconds):
            await self._changes.send_packed_command([pack_command(command)], check_health=False)
            return await self._changes.read_response(timeout=math.inf)


async def open_session(client: Any, seconds: float) -> Session:
    """Open a session to the server of a client.

    Raises:
        Exception: redis-py's, or TimeoutError: it cannot be reached in so many seconds.
    """
    pool = client.connection_pool
    async with asyncio.timeout(seconds):
        return Session(await pool.get_connection(), await pool.get_connection(), seconds)
