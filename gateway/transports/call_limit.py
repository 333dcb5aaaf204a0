"""How many calls of one worker are open, of all transports; further ones wait until one of them has ended.

A worker that is slower than its callers has a queue at the gateway instead of one failure after another: a burst is
judged, and a client that sends again at once after a failure is not answered at once. The calls that wait are served in
turn between tenants (``fair_queue``), of each the oldest, or the newest once the oldest has waited for
``_TARGET_SECONDS``. A call that has waited for ``worker_wait_seconds``, or for half of its time, fails with
``OVERLOADED``.

Each call that waits belongs to a review in flight, and these are bounded.
"""

import asyncio
import math
from collections.abc import Callable
from time import monotonic
from typing import Final

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Failure
from gateway.fair_queue import FairQueue, Waiting
from gateway.reasons import Reason
from gateway.telemetry.events import Events
from gateway.telemetry.labels import WorkerEvent
from gateway.transports.in_flight import InFlight, Tenant, tenant_of
from gateway.transports.limits import TransportLimits
from gateway.transports.worker_channel import count_worker_event

_TARGET_SECONDS: Final = 0.5
"""A quarter of the longest wait: from then on a tenant has more calls than the worker can answer."""


class _Wait:
    """A call that waits."""

    __slots__ = ("alarm", "refuse", "send", "tenant")

    alarm: asyncio.TimerHandle

    def __init__(self, tenant: Tenant, send: Callable[[], object], refuse: Callable[[Failure], object]) -> None:
        self.tenant = tenant
        self.send = send
        self.refuse = refuse


class CallLimit:
    """The places of one worker's open calls. Use it in a running loop.

    Args:
        worker: its name.
        limits: how many places there are, and how long a call waits.
        events: counts calls that are rejected.
    """

    def __init__(self, worker: str, limits: TransportLimits, events: Events) -> None:
        self._worker = worker
        self._wait_seconds = limits.worker_wait_seconds
        self._events = events
        self._open = InFlight(limits.worker_in_flight)
        self.take = self._open.take
        """Take a place for a call of a tenant, until it is given back. False: there is none for this tenant."""
        self._queue: FairQueue[_Wait] = FairQueue(_TARGET_SECONDS)
        self._is_scheduled = False

    def give_back(self, tenant: Tenant, seconds: float = 0.0) -> None:
        """A call that had a place has ended, or will have in so many seconds."""
        if seconds > 0:
            asyncio.get_running_loop().call_later(seconds, self.give_back, tenant)
            return
        self._open.remove(tenant)
        if self._queue and not self._is_scheduled:
            # The calls of one iteration are sent together, and not inside the method that ends a call.
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._send)

    def wait(
        self, call: PolicyCall, send: Callable[[], object], refuse: Callable[[Failure], object]
    ) -> Callable[[], object]:
        """Wait for a place, for which ``take`` has found no room. One of two functions is called, later and once.

        Args:
            call: for its tenant and deadline.
            send: called when the call has its place.
            refuse: called with the failure when it has waited too long.

        Returns:
            A function that ends the wait; neither is called then.
        """
        now = monotonic()
        seconds = max(min(self._wait_seconds, (call.deadline - now) / 2), 0.0)
        item = _Wait(tenant_of(call), send, refuse)
        waiting = Waiting(item, (item.tenant,), 1.0, now, math.inf)
        item.alarm = asyncio.get_running_loop().call_later(seconds, self._refuse, waiting, seconds)
        self._queue.push(waiting)

        def end() -> None:
            item.alarm.cancel()
            self._queue.remove(waiting)

        return end

    def _send(self) -> None:
        self._is_scheduled = False
        now = monotonic()
        while self._open.open < self._open.limit and (waiting := self._queue.pop(now, self._fits)) is not None:
            item = waiting.item
            item.alarm.cancel()
            self._open.take(item.tenant)
            item.send()

    def _fits(self, item: _Wait) -> bool:
        return self._open.has_room(item.tenant)

    def _refuse(self, waiting: Waiting[_Wait], seconds: float) -> None:
        self._queue.remove(waiting)
        count_worker_event(self._events, self._worker, WorkerEvent.IN_FLIGHT)
        text = f"worker {self._worker!r} has {self._open.refusal()}; the call waited for {seconds:.1f} s"
        waiting.item.refuse(Failure(reason=Reason.OVERLOADED, message=text))
