"""Decides when a review begins while there are more than the gateway can judge: at once, in a turn, or not at all.

There is nothing to decide while the event loop keeps up. When an iteration has taken longer than ``_SLICE_SECONDS``,
the reviews that come next wait in a fair queue (``fair_queue``), and in each iteration a few of them begin. What has
begun has priority over what waits: an iteration handles all answers of workers that have arrived. So the work that was
begun is finished at once, however much waits.

A review that has waited for ``Limits.wait_seconds``, or for half of its budget, is refused: OVERLOADED, by the
failurePolicy of each policy. To refuse costs a part of judging. So it is not hurried: a connection carries one review
at a time, and while that waits its client sends no other.

A review also needs room among those in flight (``in_flight_shares``), from its beginning to its answer.
"""

import asyncio
from time import monotonic
from typing import Final

from gateway.engine.verdicts import Failure
from gateway.reasons import Reason
from gateway.serving.fair_queue import FairQueue, Waiting
from gateway.serving.in_flight_shares import Flow, InFlightShares
from gateway.serving.limits import Limits
from gateway.telemetry.events import Events
from gateway.telemetry.table import LIMIT_HITS

_SLICE_SECONDS: Final = 0.005
"""An iteration that has taken so long begins no more reviews: a dozen of them, or one that is large. The loop's clock
has a precision of a millisecond."""

_TARGET_SECONDS: Final = 0.1
"""The standing delay from which a flow is judged newest first: CoDel's interval (RFC 8289, 4.3)."""

_COST_A_WAKE: Final = 16
"""Reviews begun in one iteration while others wait: about 5 ms, and enough for the calls of a worker to share one
write."""

_COST_BYTES: Final = 32_768
"""A body of so many bytes costs as much again as a small review."""

SHARE_EXCEEDED: Final = Failure(
    reason=Reason.OVERLOADED,
    message="the gateway, or the namespace, the API server or the entry of this review, has as many reviews in flight "
    "as it may (--limit-reviews-in-flight); try again, or add replicas",
)
WAITED_TOO_LONG: Final = Failure(
    reason=Reason.OVERLOADED,
    message="the gateway gets more reviews than it can judge, and this one has waited too long; try again, or add "
    "replicas",
)


def cost_of(body: bytes) -> float:
    """The cost of a review: 1 for a small one."""
    return 1 + len(body) / _COST_BYTES


class FlowControl:
    """The flow control of one HTTP server. Use it in a running loop.

    Args:
        limits: how many may wait, for how long, and how many may be in flight.
        events: counts what was refused.
    """

    def __init__(self, limits: Limits, events: Events) -> None:
        self._limits = limits
        self._events = events
        self._queue: FairQueue[asyncio.Future[Failure | None]] = FairQueue(limits.reviews_waiting, _TARGET_SECONDS)
        self._shares = InFlightShares(limits.reviews_in_flight)
        self._wakes = False

    @property
    def waiting(self) -> int:
        """The number of reviews that wait."""
        return len(self._queue)

    @property
    def is_busy(self) -> bool:
        """Whether a review that comes now has to wait."""
        # uvloop's clock is that of the iteration's beginning.
        return len(self._queue) > 0 or monotonic() - asyncio.get_running_loop().time() > _SLICE_SECONDS

    def begin(self, flow: Flow, ends: float) -> Failure | None:
        """Begin a review that need not wait (any more). Returns why it is refused; None: it is in flight
        until ``end``.
        """
        if monotonic() >= ends:
            self._events.count(LIMIT_HITS, "wait_seconds")
            return WAITED_TOO_LONG
        if self._shares.acquire(flow):
            return None
        self._events.count(LIMIT_HITS, "reviews_in_flight")
        return SHARE_EXCEEDED

    def end(self, flow: Flow) -> None:
        """A review that has begun is answered."""
        self._shares.release(flow)

    async def turn(self, flow: Flow, cost: float, started: float, ends: float) -> Failure | None:
        """Wait until the review may begin. Returns why it is refused; None: it may ``begin``."""
        future: asyncio.Future[Failure | None] = asyncio.get_running_loop().create_future()
        until = started + min(self._limits.wait_seconds, (ends - started) / 2)
        waiting = Waiting(future, (flow.client, flow.tenant), cost, started, until)
        displaced = self._queue.push(waiting)
        if displaced is not None:
            self._refuse(displaced, "reviews_waiting")
        if not self._wakes:
            self._wakes = True
            asyncio.get_running_loop().call_soon(self._wake)
        try:
            return await future
        except asyncio.CancelledError:
            self._queue.remove(waiting)
            raise

    def _wake(self) -> None:
        """Refuse what cannot wait any longer, and begin what is next; once in each iteration while something waits."""
        now = monotonic()
        for waiting in self._queue.overdue(now):
            self._refuse(waiting, "wait_seconds")
        left: float = _COST_A_WAKE
        while left > 0 and (next_ := self._queue.pop(now)) is not None:
            left -= next_.cost
            if not next_.item.done():
                next_.item.set_result(None)
        self._wakes = len(self._queue) > 0
        if self._wakes:
            asyncio.get_running_loop().call_soon(self._wake)

    def _refuse(self, waiting: "Waiting[asyncio.Future[Failure | None]]", limit: str) -> None:
        self._events.count(LIMIT_HITS, limit)
        if not waiting.item.done():
            waiting.item.set_result(WAITED_TOO_LONG)
