"""Several commands in one pipeline; for a cluster, in one pipeline for each of its nodes."""

import asyncio
from collections.abc import Sequence
from typing import Any

from redis import exceptions
from redis.asyncio import RedisCluster

from gateway.redis.clients import Client

Command = tuple[Any, ...]
"""A command and its arguments, for a pipeline."""


async def answers_to(client: Client, commands: Sequence[Command], *, transaction: bool = False) -> list[Any]:
    """The answers in the order of the commands. An exception in place of an answer is the error of that command, or of
    its node.

    Args:
        client: of a server or a cluster.
        commands: each with its key as the first argument.
        transaction: all are executed at once, or none; only for one server.

    Raises:
        Exception: redis-py's, if the server does not answer, or if Redis rejected the transaction.
    """
    if isinstance(client, RedisCluster):
        return await _spread(client, commands)
    return await _pipeline(client, commands, transaction=transaction)


async def _pipeline(client: Client, commands: Sequence[Command], *, transaction: bool = False) -> list[Any]:
    pipeline = client.pipeline(transaction=transaction)
    for command in commands:
        pipeline.execute_command(*command)
    answers: list[Any] = await pipeline.execute(raise_on_error=False)
    return answers


async def _spread(client: RedisCluster, commands: Sequence[Command]) -> list[Any]:
    """One pipeline for each node. In redis-py's cluster pipeline a node that is down fails all commands."""
    answers: list[Any] = [None] * len(commands)
    places: dict[str, list[int]] = {}
    for index, command in enumerate(commands):
        try:
            node = client.get_node_from_key(command[1])
        except exceptions.RedisError as error:
            answers[index] = error
        else:
            places.setdefault("" if node is None else node.name, []).append(index)
    results = await asyncio.gather(
        *(_pipeline(client, [commands[index] for index in indexes]) for indexes in places.values()),
        return_exceptions=True,
    )
    for indexes, each in zip(places.values(), results, strict=True):
        if isinstance(each, asyncio.CancelledError):
            raise each
        for number, index in enumerate(indexes):
            answers[index] = each if isinstance(each, BaseException) else each[number]
    return answers
