"""One worker, kept described for one configuration.

================================  ==================================================================
what happens                      what is done
================================  ==================================================================
there is a new connection         the worker is described: it may be another version
an answer is of another version   described again at once: somebody else is behind the same address
the connection is lost            its policies keep their standing; the next connection is awaited
it cannot be described            tried again, after growing pauses
================================  ==================================================================

What was described **holds** on the connection on which it was said. While there is no connection it holds as well, for
nobody is there who could be of another version; a cached verdict may then stand in for a worker that is away, which is
what ``staleIfError`` is for. From the moment of the next connection it does not, until that has been described.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, NoReturn

import structlog

from gateway.transports.grpc import GrpcWorker, WorkerError
from gateway.transports.pool import ReachedWorker

_LOG: Final = structlog.get_logger(__name__)

RETRY_SECONDS: Final = (0.25, 5.0)
"""First and longest pause before a worker that cannot describe itself is asked again."""

AGAIN_SECONDS: Final = 1.0
"""Shortest time between two descriptions on one connection. In a rolling update every second answer may be of the other
version: a Describe for each would double the worker's load, and one a second is less than its health checks."""


class Acquaintance:
    """Describes a worker whenever it has to be.

    Args:
        reached: the worker.
        describe: describes it, and takes down what it says; raises WorkerError if it cannot.
        failed: told, in one sentence, why it could not be described.
    """

    def __init__(
        self, reached: ReachedWorker, describe: Callable[[], Awaitable[None]], failed: Callable[[str], object]
    ) -> None:
        self._worker = reached.connection
        self._agreement = reached.agreement
        self._describe = describe
        self._failed = failed
        self._described_here = False
        self._pause = RETRY_SECONDS[0]

    @property
    def holds(self) -> bool:
        """Whether what was described last holds: said on the connection that there is, or there is none."""
        return self._described_here or not self._worker.is_connected

    async def keep(self) -> NoReturn:
        """Do it until cancelled."""
        worker = self._worker
        while True:
            try:
                await worker.connected()
                await self._while_connected()
            except WorkerError as error:
                _LOG.warning("a worker cannot be described", worker=worker.name, error=str(error), again_in=self._pause)
                self._failed(str(error))
            except Exception as error:  # noqa: BLE001 - logged, and tried again: nobody else would
                _LOG.exception("describing a worker failed inside the gateway", worker=worker.name)
                self._failed(f"{type(error).__name__} in the gateway; see its log")
            else:
                _LOG.warning("the connection to a worker is lost", worker=worker.name, target=worker.target)
                continue
            await asyncio.sleep(self._pause)
            self._pause = min(2 * self._pause, RETRY_SECONDS[1])

    async def _while_connected(self) -> None:
        async with _watched(self._worker) as lost:
            try:
                while not lost.done():
                    seen = self._agreement.disagreements
                    await self._describe()
                    self._described_here, self._pause = True, RETRY_SECONDS[0]
                    await self._until_lost_or_contradicted(lost, seen)
                await lost
            finally:
                self._described_here = False

    async def _until_lost_or_contradicted(self, lost: "asyncio.Task[None]", seen: int) -> None:
        contradicted = asyncio.create_task(self._contradicted(seen))
        try:
            await asyncio.wait((lost, contradicted), return_when=asyncio.FIRST_COMPLETED)
        finally:
            contradicted.cancel()
            await asyncio.gather(contradicted, return_exceptions=True)

    async def _contradicted(self, seen: int) -> None:
        await asyncio.sleep(AGAIN_SECONDS)
        await self._agreement.beyond(seen)


@asynccontextmanager
async def _watched(worker: GrpcWorker) -> AsyncIterator["asyncio.Task[None]"]:
    """A task that ends when the connection is lost. It watches from before Describe on: what is lost and found again
    meanwhile may be another version.
    """
    lost = asyncio.create_task(worker.disconnected())
    try:
        yield lost
    finally:
        lost.cancel()
        await asyncio.gather(lost, return_exceptions=True)
