"""The link of one process to one Redis, for one purpose: connected, at work until something breaks, connected anew.

    connecting  --connected, and opened-->  up, the work goes on
    up          --the work raises-->        a pause, then connecting
    connecting  --it failed-->              a pause, longer each time; then connecting
    up          --the work returns-->       the end

The pause begins with ``PAUSE_SECONDS`` and doubles, until the link has been up for ``SETTLED_SECONDS``: a server that
takes connections and drops them, or a replica that refuses every write, is not connected to all the time. Each attempt
has a client of its own, so whatever moved (a name in DNS, a master, slots of a cluster) is found again.

What differs is the user's: what it does before the link is up, what it does then, and what to do without it. A cache
goes on without (``gateway.caching.link``); a queue's gateway puts again what is open (``transports.queue.exchange``), a
bridge goes on answering (``transports.queue.consumer``).
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
"""How long the link must have been up for the pause to begin anew with the first."""

_S = TypeVar("_S")


class BrokenError(Exception):
    """The work gives the link up; its text says why, as it may be logged."""


class Link(Generic[_S]):
    """Keeps one purpose connected, by ``run``, or by ``start`` in the background.

    Args:
        connect: makes a client.
        opened: makes of it what the work needs; raises if it is of no use. Bounded in time by itself.
        work: what is done while the link is up; raises when it is not any more.
        lost: told, once for each attempt that failed and each loss, what went wrong and whether the link was up.
        seconds: for closing a client.
        named: what the log says of it; None: whoever is told logs it himself.
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
        """Whether the work goes on."""
        self.why = ""
        """Why it does not, as far as anybody knows; empty if it does, or if nothing has failed yet."""

    def is_back(self, seconds: float) -> bool:
        """Whether it is up, for less time than this."""
        return self.is_up and monotonic() - self._since < seconds

    def is_away(self, seconds: float) -> bool:
        """Whether it has not been up for so long, although it was tried."""
        return not self.is_up and bool(self.why) and monotonic() - self._since > seconds

    def is_settled(self) -> bool:
        """Whether it has been up for a while."""
        return self.is_up and monotonic() - self._since > SETTLED_SECONDS

    def start(self) -> None:
        """Begin, in the background."""
        self._task = asyncio.create_task(self.run())

    def end(self) -> None:
        """Connect no more."""
        self._is_ended = True

    async def close(self, leave: Callable[[_S], Awaitable[object]] | None = None) -> None:
        """End the work, and all connections.

        Args:
            leave: what is done last, if the link is up, with a client of its own: work that is cancelled leaves its
                connections in the middle of an answer.
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
        """While it is used, a client connects, even one that is being disposed of."""
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
        """Work until the work returns, whatever happens to Redis, or until told to ``end``."""
        pause = PAUSE_SECONDS[0]
        try:
            while not self._is_ended:
                try:
                    await self._once()
                except Exception as error:
                    if _is_cancelled():
                        # Python 3.11's TaskGroup forgets it, if one of its tasks fails at the same moment.
                        raise asyncio.CancelledError from error
                    if self.is_settled():
                        pause = PAUSE_SECONDS[0]
                    self._reported_down(error)
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
                self._reported_up()
                await self._work(opened)
        finally:
            if client is not None:
                # In a task of its own: whoever cancels this one must not leave connections behind.
                disposal = asyncio.create_task(self._dispose(client))
                self._disposals.add(disposal)
                disposal.add_done_callback(self._disposals.discard)

    def _reported_up(self) -> None:
        self.is_up = self._has_worked = True
        self.why = ""
        self._since = monotonic()
        if self._named is not None:
            _LOG.info("Redis is used", **self._named)

    def _reported_down(self, error: Exception) -> None:
        was_up, self.is_up = self.is_up, False
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        why = str(first) if isinstance(first, BrokenError) else reason_of(first, has_worked=self._has_worked)
        if was_up:
            self._since = monotonic()
        if self._named is not None and not self.why:
            # The first failure after a start or a loss; those after it say nothing new.
            _LOG.warning("Redis is lost" if was_up else "Redis cannot be used yet", why=why, **self._named)
        self.why = why
        self._lost(error, was_up)

    async def _dispose(self, client: Client) -> None:
        await self._end_client(client)
        uses = self._uses.get(client)
        if uses:
            # Who was connecting meanwhile has opened what nobody else would close; it has no more time than this.
            await asyncio.wait(set(uses), timeout=2 * self._seconds)
            await self._end_client(client)

    async def _end_client(self, client: Client) -> None:
        # Its connections may hang; closing waits for nothing but may itself be interrupted.
        with suppress(Exception):
            async with asyncio.timeout(self._seconds):
                await close_client(client)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
