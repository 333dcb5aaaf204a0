"""A client of the one server that holds a name.

Whoever waits for one thing for long, or changes several names of one slot in a transaction, needs one server and not a
cluster's client, which looks for the server of each command anew. When the slot moves, that server says so (``MOVED``);
then its home is looked for again.
"""

import asyncio

from msgspec.structs import replace
from redis.asyncio import Redis, RedisCluster

from gateway.redis.addresses import RedisAddress
from gateway.redis.clients import close_client, make_client


async def home_client(address: RedisAddress, name: str, *, seconds: float, connections: int) -> Redis:
    """A client of the server that holds ``name``. It has not connected yet, and gives answers as Redis gives them.

    Args:
        address: of a server, or of what leads to it.
        name: whose server is wanted, where there are several.
        seconds: for connecting, and of a cluster for calling it where the name is.
        connections: at most.

    Raises:
        Exception: redis-py's, or TimeoutError: a cluster does not say where the name is.
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
    assert isinstance(client, Redis)  # noqa: S101 - of all modes but a cluster's
    client.response_callbacks.clear()
    return client
