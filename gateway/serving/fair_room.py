"""Room that reviews wait for: no flow takes what others need of it, and those that wait get it in a fair order.

How much of it each may have at once is decided by ``in_flight_shares``, who is next by ``fair_queue``. A review that
needs more than there is left does not delay one that needs less.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from gateway.fair_queue import FairQueue, Waiting
from gateway.serving.in_flight_shares import Flow, InFlightShares

_TARGET_SECONDS: Final = 1.0
"""From this delay on, the newest review of a flow is next: one that has waited for most of its budget has no time left
to be judged in."""


class _Wanted(NamedTuple):
    """So much of the room is wanted; ``future`` has a result when it is taken."""

    flow: Flow
    amount: int
    future: "asyncio.Future[None]"


class FairRoom:
    """Room for ``total``. Use it in a running loop. ``is_free``: nothing of it is taken."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._shares = InFlightShares(total)
        self._queue: FairQueue[_Wanted] = FairQueue(_TARGET_SECONDS)
        self._is_closed = False

    @property
    def is_free(self) -> bool:
        """Whether nothing of it is taken."""
        return not self._shares.taken

    def close(self) -> None:
        """Let nothing wait any more."""
        self._is_closed = True
        for waiting in tuple(self._queue.waiting):
            self._queue.remove(waiting)
            if not waiting.item.future.done():
                waiting.item.future.set_exception(TimeoutError())

    @asynccontextmanager
    async def taken(self, flow: Flow, amount: int, *, cost: float) -> AsyncIterator[None]:
        """Wait for room, which is taken until the context ends. Raises TimeoutError if it would wait, and is closed.

        Args:
            flow: whose it is.
            amount: how much; more than there is takes all.
            cost: what it costs in the order of those that wait, with the costs of others of its API server and tenant.
        """
        amount = min(amount, self._total)
        if self._queue or not self._shares.acquire(flow, amount):
            await self._wait(flow, amount, cost)
        try:
            yield
        finally:
            self._release(flow, amount)

    async def _wait(self, flow: Flow, amount: int, cost: float) -> None:
        if self._is_closed:
            raise TimeoutError
        loop = asyncio.get_running_loop()
        wanted = _Wanted(flow, amount, loop.create_future())
        waiting = Waiting(wanted, (flow.client, flow.tenant, flow.entry), cost, loop.time(), math.inf)
        self._queue.push(waiting)
        self._wake()
        try:
            await wanted.future
        except asyncio.CancelledError:
            self._queue.remove(waiting)
            if wanted.future.done() and not wanted.future.cancelled() and wanted.future.exception() is None:
                # It was taken in the same moment.
                self._shares.release(flow, amount)
            # One that needs less may have waited behind it.
            self._wake()
            raise

    def _release(self, flow: Flow, amount: int) -> None:
        self._shares.release(flow, amount)
        self._wake()

    def _wake(self) -> None:
        """Give what there is to those that are next."""
        now = asyncio.get_running_loop().time()
        while (waiting := self._queue.pop(now, self._fits)) is not None:
            wanted = waiting.item
            # One that is cancelled in this moment is not waiting for it any more.
            if not wanted.future.done():
                self._shares.acquire(wanted.flow, wanted.amount)
                wanted.future.set_result(None)

    def _fits(self, wanted: _Wanted) -> bool:
        return not self._shares.is_full(wanted.flow, wanted.amount)
