"""Decides when a review begins while there are more than the gateway can judge: at once, in its turn, or not at all.

There is nothing to decide while the event loop keeps up and few reviews are in flight. When an iteration has taken
longer than ``_SLICE_SECONDS``, the reviews that come next wait in a fair queue (``fair_queue``), and in each iteration
a few of them begin. What has begun has priority over what waits: an iteration handles all answers of workers that have
arrived. So the work that was begun is finished at once, however much waits. A review also waits while its flow has its
share of those in flight (``in_flight_shares``).

A review that has waited for ``Limits.wait_seconds``, or for half of its budget, is refused: OVERLOADED, by the
failurePolicy of each policy. To refuse costs nearly as much as to judge, because most of it is HTTP and TLS. So it is
not hurried: a connection carries one review at a time, and while that waits its client sends no other. Refusals follow
each other by ``_REFUSAL_SECONDS``, and a review whose refusal waits for that is judged if there is time after all. It
is refused at the latest when nearly all of its budget is over.

A review that has waited for longer than ``_TARGET_SECONDS`` is late. While its flow gets newer ones, it begins only
when the event loop is idle, so that most of what is judged above capacity is judged soon.
"""

import asyncio
from time import monotonic
from typing import Final

from gateway.engine.verdicts import Failure
from gateway.fair_queue import FairQueue, Waiting
from gateway.reasons import Reason
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

_REFUSAL_SECONDS: Final = 1 / 300
"""The pause from one refusal to the next: at 0.3 ms each, all take a tenth of a core. Each of 2,000 connections then
waits for seven seconds, which is within the budget of nine that kube-apiserver's default timeout leaves."""

_LEAVE_SECONDS: Final = 0.2
"""What is left of the budget of a review when it is refused, at the least: time to answer it."""

_LOOK_SECONDS: Final = 0.02
"""How often overdue reviews are refused while none of those that wait can begin."""

_IDLE_SECONDS: Final = 0.002
"""A wake that is late by less finds an event loop that has little to do, and begins a late review."""

_MANY_LOOKS: Final = 50
_REST_SECONDS: Final = 15e-6
"""A wake that has looked at many namespaces, most of which have their share, is followed by a rest: ten times as long
as each look takes. Else the end of every review would cost one to three milliseconds."""

OVERLOADED: Final = Failure(
    reason=Reason.OVERLOADED,
    message="the gateway gets more reviews than it can judge, in all or of this namespace, and this one has waited too "
    "long; try again, or add replicas",
)


def cost_of(body: bytes) -> float:
    """The cost of a review: 1 for a small one."""
    return 1 + len(body) / _COST_BYTES


class _Turn:
    """The turn of one review: ``future`` is its result, ``last`` the time at which it is refused in any case."""

    __slots__ = ("flow", "future", "is_paced", "last")

    def __init__(self, flow: Flow, future: "asyncio.Future[Failure | None]", last: float) -> None:
        self.flow, self.future, self.last = flow, future, last
        self.is_paced = False


class FlowControl:
    """The flow control of one HTTP server. Use it in a running loop.

    Args:
        limits: how long a review may wait, and how many may be in flight.
        events: counts what was refused.
    """

    def __init__(self, limits: Limits, events: Events) -> None:
        self._limits = limits
        self._events = events
        self._queue: FairQueue[_Turn] = FairQueue(_TARGET_SECONDS)
        self._shares = InFlightShares(limits.reviews_in_flight)
        self._wakes: asyncio.Handle | None = None
        self._sleeps = False
        self._due = 0.0
        self._rests_until = 0.0
        self._looks = 0
        self._next_refusal = 0.0

    @property
    def waiting(self) -> int:
        """The number of reviews that wait."""
        return len(self._queue)

    @property
    def is_busy(self) -> bool:
        """Whether a review that comes now has to wait."""
        # uvloop's clock is that of the iteration's beginning.
        return bool(self._queue.waiting) or monotonic() - asyncio.get_running_loop().time() > _SLICE_SECONDS

    def begin(self, flow: Flow, ends: float) -> bool:
        """Begin a review at once: it is in flight until ``end``. False: it has to wait for its ``turn``."""
        return not self.is_busy and monotonic() < ends and self._shares.acquire(flow)

    def end(self, flow: Flow) -> None:
        """A review is not in flight any more."""
        self._shares.release(flow)
        if self._sleeps:
            self._schedule()

    async def turn(self, flow: Flow, cost: float, started: float, ends: float) -> Failure | None:
        """Wait until a review begins. Returns why it is refused; None: it is in flight until ``end``."""
        last = max(ends - _LEAVE_SECONDS, (started + ends) / 2)
        turn = _Turn(flow, asyncio.get_running_loop().create_future(), last)
        until = started + min(self._limits.wait_seconds, (ends - started) / 2)
        waiting = Waiting(turn, (flow.client, flow.tenant), cost, started, until)
        self._queue.push(waiting)
        self._schedule()
        try:
            return await turn.future
        except asyncio.CancelledError:
            self._queue.remove(waiting)
            if turn.future.done() and not turn.future.cancelled() and turn.future.result() is None:
                # Its turn had come when its client hung up.
                self.end(flow)
            raise

    def _schedule(self) -> None:
        """Wake in the next iteration, or after the rest."""
        if self._wakes is None or self._sleeps:
            if self._wakes is not None:
                self._wakes.cancel()
            self._sleeps = False
            self._wake_at(max(monotonic(), self._rests_until))

    def _wake_at(self, due: float) -> None:
        self._due = due
        loop, seconds = asyncio.get_running_loop(), due - monotonic()
        self._wakes = loop.call_later(seconds, self._wake) if seconds > 0 else loop.call_soon(self._wake)

    def _wake(self) -> None:
        """Refuse what cannot wait any longer, and begin what is next; once in each iteration while something can."""
        now = monotonic()
        self._wakes, self._sleeps = None, False
        for waiting in self._queue.overdue(now):
            refused_at = self._refusal_of(waiting.item, now)
            if refused_at > now:
                self._queue.wait_longer(waiting, refused_at)
                continue
            self._queue.remove(waiting)
            full = self._shares.is_full(waiting.item.flow)
            self._refuse(waiting.item, "reviews_in_flight" if full else "wait_seconds")
        self._looks = 0
        begun = self._begin(now, _COST_A_WAKE, late=False)
        if not begun and now - self._due < _IDLE_SECONDS:
            begun = self._begin(now, 1, late=True)
        if self._looks > _MANY_LOOKS:
            self._rests_until = monotonic() + self._looks * _REST_SECONDS
        if not self._queue:
            return
        if begun:
            self._schedule()
            return
        # No flow that waits can have more in flight, or the loop is busy: what ends next wakes it.
        self._sleeps = True
        self._wake_at(now + _LOOK_SECONDS)

    def _begin(self, now: float, most: float, *, late: bool) -> bool:
        """Begin what is next, up to this cost. Whether there was anything."""
        left = most
        while left > 0 and (next_ := self._queue.pop(now, self._fits, late=late)) is not None:
            left -= next_.cost
            if not next_.item.future.done():
                self._shares.acquire(next_.item.flow)
                next_.item.future.set_result(None)
        return left < most

    def _refusal_of(self, turn: _Turn, now: float) -> float:
        """When a review is refused that has waited long enough: each has one time, after those of all before it."""
        if turn.is_paced:
            return now
        turn.is_paced = True
        mine = max(self._next_refusal, now)
        self._next_refusal = mine + _REFUSAL_SECONDS
        return min(mine, turn.last)

    def _fits(self, turn: _Turn) -> bool:
        self._looks += 1
        return not self._shares.is_full(turn.flow)

    def _refuse(self, turn: _Turn, limit: str) -> None:
        self._events.count(LIMIT_HITS, limit)
        if not turn.future.done():
            turn.future.set_result(OVERLOADED)
