"""Clients of redis-py for an address: made and closed, with what redis-py does by itself switched off.

Nothing is tried again: whoever calls has no time for it, and the link decides when to connect anew.
"""

import asyncio
from typing import Any

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import ConnectionPool, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff

from gateway.redis.addresses import RedisAddress

Client = Redis | RedisCluster
"""A client of redis-py."""


class _Sentinel(Sentinel):
    """Calls Sentinels for one connection at a time.

    redis-py moves the one that answered to the front of its list; where several do that at once, one of them may stand
    there twice and another one not at all: never called again, and never closed.
    """

    def __init__(self, sentinels: tuple[tuple[str, int], ...], **options: Any) -> None:
        super().__init__(sentinels, **options)  # type: ignore[no-untyped-call]  # redis-py says no type of it
        self._turn = asyncio.Lock()

    async def discover_master(self, service_name: str) -> tuple[str, int]:
        async with self._turn:
            found: tuple[str, int] = await super().discover_master(service_name)
            return found


def make_client(address: RedisAddress, *, seconds: float, connections: int) -> Client:
    """A client that has not connected yet. It retries nothing: whoever calls has no time for it.

    An answer has no time limit of its own but in a cluster, and from Sentinels: there one that hangs must leave
    time to call another. (redis-py's ``socket_timeout`` makes a task for each pipeline that is sent, and in Python
    3.11 ``asyncio.wait_for``, which it uses for that, may swallow a cancellation.) Whoever calls sets the limit.

    Args:
        address: of what it is a client.
        seconds: for connecting, to all hosts together.
        connections: at most, to each server.
    """
    each = seconds / (len(address.hosts) + 1)
    common: dict[str, Any] = {
        "socket_timeout": None,
        "socket_connect_timeout": seconds,
        "retry": Retry(NoBackoff(), 0),
        # RESP2: nothing that RESP3 adds is used here, and proxies in front of Redis often don't speak it.
        "protocol": 2,
    }
    if address.mode == "cluster":
        nodes = [ClusterNode(host, port) for host, port in address.hosts]
        return RedisCluster(
            startup_nodes=nodes,
            ssl=address.tls,
            # One master that is down costs its own share of the entries.
            require_full_coverage=False,
            max_connections=connections,
            **(common | {"socket_timeout": each, "socket_connect_timeout": each}),
            **address.options,
        )
    if address.mode == "sentinel":
        sentinel = _Sentinel(
            address.hosts,
            sentinel_kwargs={
                **(common | {"socket_timeout": each, "socket_connect_timeout": each}),
                "ssl": address.tls,
                **address.sentinel_options,
            },
            **common,
        )
        master: Redis = sentinel.master_for(
            address.service, ssl=address.tls, max_connections=connections, **address.options
        )
        return master
    where: dict[str, Any] = {"path": address.path, "connection_class": UnixDomainSocketConnection}
    if address.mode == "server":
        host, port = address.hosts[0]
        where = {"host": host, "port": port} | ({"connection_class": SSLConnection} if address.tls else {})
    return Redis.from_pool(ConnectionPool(max_connections=connections, **where, **common, **address.options))


async def close_client(client: Client) -> None:
    """End all connections of a client, those to Sentinels too. One that breaks while it ends keeps none of the others.

    What it raises is the first of their exceptions. Whoever cancels it waits until they have ended all the same: what
    has not begun to end when it is cancelled would stay open.
    """
    ending = asyncio.ensure_future(_end(client))
    try:
        await asyncio.shield(ending)
    except asyncio.CancelledError:
        await asyncio.wait((ending,))
        if not ending.cancelled():
            ending.exception()  # it has been seen
        raise


async def _end(client: Client) -> None:
    ends = [client.aclose()]
    if isinstance(client, RedisCluster):
        # By itself it closes those of its nodes once, and not what has connected since.
        ends += [node.disconnect() for node in client.get_nodes()]
    if isinstance(client, Redis):
        pool = client.connection_pool
        ends.append(pool.disconnect())
        if isinstance(pool, SentinelConnectionPool):
            ends += [sentinel.aclose() for sentinel in pool.sentinel_manager.sentinels]
    for error in await asyncio.gather(*ends, return_exceptions=True):
        if isinstance(error, Exception):
            raise error
