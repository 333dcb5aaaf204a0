"""The link of one process to one Redis, for one purpose: it connects, runs its work, and connects again after errors.

    connecting  --connected and opened-->   up: the work runs
    up          --the work raises-->        a pause, then connecting
    connecting  --an error-->               a pause, longer each time; then connecting
    up          --the work returns-->       the end

The pause begins with ``PAUSE_SECONDS`` and doubles until the link has been up for ``SETTLED_SECONDS``. So the link does
not reconnect all the time to a server that drops connections, or to a replica that refuses each write. Each attempt has
a new client, which resolves again what may have moved: a name in DNS, a master, slots of a cluster.

The user of a link supplies what it does before the link is up, what it does then, and what it does without it. The
cache continues without Redis (``gateway.caching.link``), a gateway writes the open calls of a queue again
(``transports.queue.request_exchange``), and a bridge continues to answer calls (``transports.queue.consumer``).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Final, Generic, TypeVar

import structlog

from gateway.redis.clients import Client, close_client
from gateway.redis.faults import reason_of

_LOG: Final = structlog.get_logger(__name__)

PAUSE_SECONDS: Final = (0.05, 1.0)
"""First and longest pause between attempts to connect. A restart takes less than a second; a failover a few."""

SETTLED_SECONDS: Final = 10.0
"""How long the link must have been up for the next pause to be the shortest again."""

_S = TypeVar("_S")


class BrokenError(Exception):
    """The work ends the link. The text is the reason, and may be logged."""


class Link(Generic[_S]):
    """Keeps one purpose connected, in ``run``, or after ``start`` in the background.

    Args:
        connect: creates a client.
        opened: makes of it what the work needs, or raises if the server cannot be used; limits its own time.
        work: runs while the link is up; raises when the link is lost.
        lost: called once for each failed attempt and each loss, with the error and whether the link was up.
        seconds: time limit for closing a client.
        named: the fields that identify the link in the log; None: ``lost`` logs instead.
    """

    def __init__(
        self,
        *,
        connect: Callable[[], Awaitable[Client]],
        opened: Callable[[Client], Awaitable[_S]],
        work: Callable[[_S], Awaitable[object]],
        lost: Callable[[Exception, bool], object],
        seconds: float,
        named: Mapping[str, str] | None = None,
    ) -> None:
        self._connect = connect
        self._opened = opened
        self._work = work
        self._lost = lost
        self._seconds = seconds
        self._named = named
        self._is_ended = False
        self._has_worked = False
        self._since = monotonic()
        self._task: asyncio.Task[None] | None = None
        self._disposals: set[asyncio.Task[None]] = set()
        self._uses: dict[Client, set[asyncio.Future[None]]] = {}
        self.is_up = False
        """Whether the work runs."""
        self.why = ""
        """Why it does not run; empty if it does, or if nothing has failed yet."""

    def is_back(self, seconds: float) -> bool:
        """Whether it has been up for less than so many seconds."""
        return self.is_up and monotonic() - self._since < seconds

    def is_away(self, seconds: float) -> bool:
        """Whether it has been down for more than so many seconds, and an attempt has failed."""
        return not self.is_up and bool(self.why) and monotonic() - self._since > seconds

    def is_settled(self) -> bool:
        """Whether it has been up for ``SETTLED_SECONDS``."""
        return self.is_up and monotonic() - self._since > SETTLED_SECONDS

    def start(self) -> None:
        """Run in the background."""
        self._task = asyncio.create_task(self.run())

    def end(self) -> None:
        """Do not connect again."""
        self._is_ended = True

    async def close(self, leave: Callable[[_S], Awaitable[object]] | None = None) -> None:
        """End the work, and all connections.

        Args:
            leave: runs last, if the link was up, with a new client: canceled work leaves its connections in the middle
                of an answer.
        """
        self.end()
        was_up = self.is_up
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if leave is not None and was_up:
            with suppress(Exception):
                async with asyncio.timeout(self._seconds):
                    client = await self._connect()
                    try:
                        await leave(await self._opened(client))
                    finally:
                        await close_client(client)
        await asyncio.gather(*self._disposals)

    @contextmanager
    def using(self, client: Client) -> Iterator[None]:
        """Mark a client as in use: connections that it opens while it is being closed are closed afterwards."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        uses = self._uses.setdefault(client, set())
        uses.add(ended)
        try:
            yield
        finally:
            ended.set_result(None)
            uses.discard(ended)
            if not uses:
                del self._uses[client]

    async def run(self) -> None:
        """Connect and work until the work returns or ``end`` was called, whatever happens to Redis."""
        pause = PAUSE_SECONDS[0]
        try:
            while not self._is_ended:
                try:
                    await self._once()
                except Exception as error:
                    if _is_cancelled():
                        # Python 3.11's TaskGroup loses the cancellation if one of its tasks fails at the same moment.
                        raise asyncio.CancelledError from error
                    if self.is_settled():
                        pause = PAUSE_SECONDS[0]
                    self._went_down(error)
                else:
                    return
                if not self._is_ended:
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, PAUSE_SECONDS[1])
        finally:
            self.is_up = False
            await asyncio.gather(*self._disposals)

    async def _once(self) -> None:
        client: Client | None = None
        try:
            client = await self._connect()
            opened = await self._opened(client)
            # redis-py may have swallowed the cancellation (see ``make_client``).
            if not self._is_ended:
                self._came_up()
                await self._work(opened)
        finally:
            if client is not None:
                # In its own task: a cancellation of this one must not leave connections open.
                disposal = asyncio.create_task(self._dispose(client))
                self._disposals.add(disposal)
                disposal.add_done_callback(self._disposals.discard)

    def _came_up(self) -> None:
        self.is_up = self._has_worked = True
        self.why = ""
        self._since = monotonic()
        if self._named is not None:
            _LOG.info("Redis is used", **self._named)

    def _went_down(self, error: Exception) -> None:
        was_up, self.is_up = self.is_up, False
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        why = str(first) if isinstance(first, BrokenError) else reason_of(first, has_worked=self._has_worked)
        if was_up:
            self._since = monotonic()
        if self._named is not None and not self.why:
            # Only the first failure after a start or a loss is logged.
            _LOG.warning("Redis is lost" if was_up else "Redis cannot be used yet", why=why, **self._named)
        self.why = why
        self._lost(error, was_up)

    async def _dispose(self, client: Client) -> None:
        await self._end_client(client)
        uses = self._uses.get(client)
        if uses:
            # A use may have opened a connection meanwhile, which nothing else closes. Its time is limited to this.
            await asyncio.wait(set(uses), timeout=2 * self._seconds)
            await self._end_client(client)

    async def _end_client(self, client: Client) -> None:
        # Its connections may hang, so closing has a time limit.
        with suppress(Exception):
            async with asyncio.timeout(self._seconds):
                await close_client(client)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
