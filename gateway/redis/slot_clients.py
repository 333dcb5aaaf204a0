"""A client of the one server that holds a name.

A blocking read, or a transaction about several names of one slot, needs a client of one server. A cluster's client
looks up the server of each command. When the slot moves, the server answers ``MOVED``, and the link looks up the home
again.
"""

import asyncio

from msgspec.structs import replace
from redis.asyncio import Redis, RedisCluster

from gateway.redis.addresses import RedisAddress
from gateway.redis.clients import close_client, make_client


async def home_client(address: RedisAddress, name: str, *, seconds: float, connections: int) -> Redis:
    """A client of the server that holds ``name``. It has not connected yet, and does not convert Redis' answers.

    Args:
        address: of Redis.
        name: a key, whose slot selects the server of a cluster.
        seconds: time limit for connecting, and for a cluster's slots.
        connections: maximum number.

    Raises:
        Exception: redis-py's, or TimeoutError: a cluster does not return the server of the name.
    """
    client = make_client(address, seconds=seconds, connections=connections)
    if isinstance(client, RedisCluster):
        try:
            async with asyncio.timeout(seconds):
                await client.initialize()
            node = client.get_node_from_key(name)
            if node is None:
                raise ConnectionError("no node of the cluster has this name's slot")
            home = replace(address, mode="server", hosts=((str(node.host), int(node.port)),))
        finally:
            await close_client(client)
        client = make_client(home, seconds=seconds, connections=connections)
    assert isinstance(client, Redis)  # noqa: S101 - in all modes but cluster
    client.response_callbacks.clear()
    return client
