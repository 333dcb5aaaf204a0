"""Creates and closes redis-py's clients for an address, with redis-py's retries and timeouts switched off.

Clients do not retry: callers have no time for it, and the link decides when to connect again.
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

    redis-py moves the Sentinel that answered to the front of its list. If several connections do that at once, the list
    may have one Sentinel twice and lose another, which is then never called again and never closed.
    """

    def __init__(self, sentinels: tuple[tuple[str, int], ...], **options: Any) -> None:
        super().__init__(sentinels, **options)  # type: ignore[no-untyped-call]  # redis-py declares no types here
        self._one_at_a_time = asyncio.Lock()

    async def discover_master(self, service_name: str) -> tuple[str, int]:
        async with self._one_at_a_time:
            found: tuple[str, int] = await super().discover_master(service_name)
            return found


def make_client(address: RedisAddress, *, seconds: float, connections: int) -> Client:
    """A client that has not connected yet, and that does not retry.

    The caller limits the time of answers. Only in a cluster and for Sentinels the client has a limit of its own: one
    that hangs must leave time to call another. (redis-py's ``socket_timeout`` creates a task for each pipeline, and
    ``asyncio.wait_for``, which it uses for that, may swallow a cancellation in Python 3.11.)

    Args:
        address: of Redis.
        seconds: time limit for connecting, to all hosts together.
        connections: maximum number, to each server.
    """
    each = seconds / (len(address.hosts) + 1)
    common: dict[str, Any] = {
        "socket_timeout": None,
        "socket_connect_timeout": seconds,
        "retry": Retry(NoBackoff(), 0),
        # RESP2: no feature of RESP3 is used here, and proxies in front of Redis often do not support it.
        "protocol": 2,
    }
    if address.mode == "cluster":
        nodes = [ClusterNode(host, port) for host, port in address.hosts]
        return RedisCluster(
            startup_nodes=nodes,
            ssl=address.tls,
            # A master that is down affects only its own slots.
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
    """Close all connections of a client, those to Sentinels too, even if closing one of them fails.

    Raises the first of their exceptions. A cancellation takes effect after all are closed: otherwise some would stay
    open.
    """
    ending = asyncio.ensure_future(_end(client))
    try:
        await asyncio.shield(ending)
    except asyncio.CancelledError:
        await asyncio.wait((ending,))
        if not ending.cancelled():
            ending.exception()  # marks it as retrieved
        raise


async def _end(client: Client) -> None:
    ends = [client.aclose()]
    if isinstance(client, RedisCluster):
        # ``aclose`` closes its nodes' connections once, and not those that were opened since.
        ends += [node.disconnect() for node in client.get_nodes()]
    if isinstance(client, Redis):
        pool = client.connection_pool
        ends.append(pool.disconnect())
        if isinstance(pool, SentinelConnectionPool):
            ends += [sentinel.aclose() for sentinel in pool.sentinel_manager.sentinels]
    for error in await asyncio.gather(*ends, return_exceptions=True):
        if isinstance(error, Exception):
            raise error
