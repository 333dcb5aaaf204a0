"""The cache's link to Redis: up, or skipped. Only this module decides when the cache skips Redis.

    connecting  --two PINGs answered, the second within the budget-->  up
    up          --a connection is lost-->                              connecting
    up          --so many pipelines late or lost in a row-->           connecting

A review uses Redis only while the link is ``up`` (see ``gateway.redis.link`` for how it connects). The link connects in
the background, so the first reviews do not wait for connections. The first PING connects (with DNS, Sentinels, TLS,
AUTH), the second measures the latency. A connection lost soon after coming up counts as a failure like a late pipeline,
so that the link does not reconnect all the time to a Redis that accepts and drops connections.

Methods raise nothing but LinkError, and count each fault by its kind. (For commands that Redis refuses while the link
is up, see ``gateway.caching.refusals``.)
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from redis import exceptions
from redis.asyncio import RedisCluster

from gateway.caching.limits import CacheLimits
from gateway.caching.refusals import Refusals
from gateway.redis.addresses import RedisAddress
from gateway.redis.clients import Client, make_client
from gateway.redis.faults import RedisFault, fault_of
from gateway.redis.link import BrokenError, Link
from gateway.redis.pipelines import Command, answers_to
from gateway.telemetry.events import Events
from gateway.telemetry.table import CACHE_REDIS_ERRORS, CACHE_REDIS_SKIPPED

OTHER_CONNECTIONS: Final = 3
"""Beside those of lookups: one writes entries, one reads and writes the markers of purges, one deletes entries."""


class LinkError(Exception):
    """There are no answers: the pipeline as a whole failed. The failure is counted already."""


class CacheLink:
    """One process's link to one Redis.

    Args:
        address: of Redis.
        limits: of time and connections.
        events: counts faults, and whether Redis is skipped.
        changed: called with True when the link came up, with False when it went down.
    """

    def __init__(
        self, address: RedisAddress, limits: CacheLimits, events: Events, changed: Callable[[bool], object]
    ) -> None:
        self._address = address
        self._limits = limits
        self._events = events
        self._changed = changed
        self._client: Client | None = None
        self._broken = asyncio.Event()
        self._came_up = asyncio.Event()
        self._failures = 0
        self._refusals = Refusals(address.shown)
        self._link = Link(
            connect=self._connect,
            opened=self._probe,
            work=self._stay_up,
            lost=self._link_lost,
            seconds=limits.redis_answer_seconds,
            named={"scheme": address.shown},
        )

    @property
    def up(self) -> bool:
        """Whether Redis is used."""
        return self._client is not None

    @property
    def refused(self) -> Mapping[str, str]:
        """Each kind of command that Redis refused last, and why."""
        return self._refusals.now

    def start(self) -> None:
        """Begin to connect, in the background."""
        self._link.start()

    async def wait(self, seconds: float) -> bool:
        """Wait until the link is up, at most ``seconds``. Returns whether it is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._came_up.wait()
        return self.up

    async def close(self) -> None:
        """Close the link and all connections."""
        await self._link.close()

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        """The answers to all commands, sent in one pipeline that is no transaction; to a cluster, in one for each node.
        An exception in the place of an answer is an error of that command, or of its node.

        Args:
            commands: each with the name that it is about in the second place.

        Raises:
            LinkError: no answers, for whatever reason.
        """
        client = self._client
        if client is None:
            raise LinkError
        try:
            with self._link.using(client):
                async with asyncio.timeout(self._limits.redis_answer_seconds):
                    answers = await answers_to(client, commands)
        except Exception as error:
            self._lost(client, error)
            raise LinkError from error
        self._refusals.note(commands, answers)
        self._note(client, [answer for answer in answers if isinstance(answer, BaseException)])
        return answers

    def masters(self) -> list[Any]:
        """Each server that holds a part of the entries, as ``execute_on`` takes it; none while the link is down."""
        client = self._client
        if isinstance(client, RedisCluster):
            return list(client.get_primaries())
        return [] if client is None else [client]

    async def execute_on(self, master: Any, *command: Any) -> Any:
        """The answer of one server to a command that is not about a name.

        Raises:
            LinkError: no answer, or an error, which was counted; or the link of this server has gone down.
        """
        client = self._client
        # Not by ==: for redis-py, nodes of one address are equal, even of different clients.
        if client is None or not any(master is each for each in self.masters()):
            raise LinkError
        try:
            with self._link.using(client):
                async with asyncio.timeout(self._limits.redis_answer_seconds):
                    answer = await master.execute_command(*command)
        except Exception as error:
            self._refusals.note([command], [error])
            self._events.count(CACHE_REDIS_ERRORS, fault_of(error))
            raise LinkError from error
        self._refusals.note([command], [answer])
        return answer

    def in_time(self) -> None:
        """A pipeline of lookups was answered within the budget."""
        self._failures = 0

    def late(self) -> None:
        """A pipeline of lookups was not answered within the budget."""
        self._events.count(CACHE_REDIS_ERRORS, RedisFault.TIMEOUT)
        self._fail(RedisFault.TIMEOUT)

    # ------------------------------------------------------------------------------------------------- states

    async def _connect(self) -> Client:
        return make_client(
            self._address,
            seconds=self._limits.redis_answer_seconds,
            connections=self._limits.redis_connections + OTHER_CONNECTIONS,
        )

    async def _probe(self, client: Client) -> Client:
        if isinstance(client, RedisCluster):
            async with asyncio.timeout(self._limits.redis_answer_seconds):
                await client.initialize()
        await self._ping(client, self._limits.redis_answer_seconds)
        await self._ping(client, self._limits.redis_seconds)
        return client

    async def _ping(self, client: Client, seconds: float) -> None:
        """Send as many PINGs at once as there may be pipelines, so that no pipeline has to connect first.

        One answering master of a cluster is enough: entries of the others are misses until they are back.
        """
        # Not by the cluster's own execute_command: if one node is down, it closes the connections to all.
        servers = client.get_primaries() if isinstance(client, RedisCluster) else [client]
        pings = [
            asyncio.ensure_future(server.execute_command("PING"))
            for server in servers
            for _ in range(self._limits.redis_connections)
        ]
        if not pings:
            raise exceptions.ConnectionError("a cluster without a master")
        try:
            await asyncio.wait(pings, timeout=seconds)
        finally:
            # Also when the link is closed meanwhile: no other task awaits them.
            for ping in pings:
                ping.cancel()
            answers = await asyncio.gather(*pings, return_exceptions=True)
        errors = [each for each in answers if each is not True]
        if not errors or (isinstance(client, RedisCluster) and len(errors) < len(pings)):
            return
        raised = [error for error in errors if isinstance(error, Exception)]
        raise raised[0] if raised else TimeoutError(f"no answer to a PING within {seconds} s")

    async def _stay_up(self, client: Client) -> None:
        self._broken.clear()
        self._failures = 0
        self._refusals.renew()
        self._client = client
        self._came_up.set()
        self._events.set(CACHE_REDIS_SKIPPED, 0)
        self._changed(True)
        try:
            await self._broken.wait()
        finally:
            self._client = None
        is_late = self._failures >= self._limits.redis_failures
        raise BrokenError("late or lost too often" if is_late else "a connection was lost")

    def _link_lost(self, error: Exception, was_up: bool) -> None:  # noqa: FBT001 - Link's own callback
        self._events.set(CACHE_REDIS_SKIPPED, 1)
        if was_up:
            self._came_up.clear()
            self._changed(False)
        else:
            self._events.count(CACHE_REDIS_ERRORS, fault_of(error))

    # ------------------------------------------------------------------------------------------------- faults

    def _lost(self, client: Client, error: Exception) -> None:
        fault = fault_of(error)
        self._events.count(CACHE_REDIS_ERRORS, fault)
        if client is self._client:
            self._fail(fault)

    def _note(self, client: Client, errors: list[BaseException]) -> None:
        """Count the commands of a pipeline whose answer is an error; together they are one failed pipeline."""
        faults = [fault_of(error) for error in errors]
        for fault in faults:
            self._events.count(CACHE_REDIS_ERRORS, fault)
        # One node of a cluster failed, or the server is a replica now. Neither is a reason to skip Redis as a whole.
        if client is self._client and any(fault is not RedisFault.RESPONSE for fault in faults):
            self._renew()

    def _fail(self, fault: RedisFault) -> None:
        self._failures += 1
        if self._failures >= self._limits.redis_failures:
            self._broken.set()
        elif fault is RedisFault.CONNECTION:
            self._renew()

    def _renew(self) -> None:
        """Reconnect, to the server that is the right one now; but only if the link was up for a while."""
        if self._link.is_settled():
            self._broken.set()
