"""A circuit breaker: an endpoint that fails again and again is not called for a while. Pure; times are seconds that
only grow.

There is one for each endpoint and policy. It says nothing about the worker's other policies, nor its other endpoints.

==========  ===================================  =====================================================================
state       a call                               becomes
==========  ===================================  =====================================================================
closed      is let through                       open, when of enough calls within the window too many failed
open        is not let through                   half-open, after a while
half-open   is let through, one at a time        closed, with everything forgotten, if that one succeeds;
                                                 open again if it fails
==========  ===================================  =====================================================================

What a failed call is, ``RetryingCall`` decides.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from gateway.transports.limits import TransportLimits

_BUCKETS: Final = 10
"""Parts of the window: what was counted leaves it a tenth at a time."""


class CircuitBreaker:
    """One of them. ``is_closed``: it lets everything through.

    Args:
        limits: ``worker_circuit_…``.
        opened: called when it opens.
    """

    __slots__ = ("_buckets", "_limits", "_opened", "_probe", "_until", "is_closed")

    def __init__(self, limits: TransportLimits, opened: Callable[[], object] = lambda: None) -> None:
        self._limits = limits
        self._opened = opened
        self._buckets: deque[list[float]] = deque()  # since when, calls, failed ones
        self._until = 0.0
        self._probe = 0.0
        self.is_closed = True

    def lets_through(self, now: float) -> bool:
        """Whether a call is let through now."""
        return self.is_closed or (now >= self._until and now >= self._probe)

    def entered(self, now: float) -> None:
        """A call goes through. While half-open, no other one does until it has ended, or the same while is over."""
        if not self.is_closed and now >= self._until:
            self._probe = now + self._limits.worker_circuit_open_seconds

    def ended(self, now: float, began: float, *, failed: bool) -> None:
        """A call that began then has ended."""
        if not self.is_closed:
            if began >= self._until:
                self._probed(now, failed=failed)
            return  # the others are no probes, but of before
        bucket = self._bucket(now)
        bucket[1] += 1
        if failed:
            bucket[2] += 1
            self._judge(now)

    def forgotten(self, began: float) -> None:
        """A call that began then has ended, and says nothing of the endpoint."""
        if began >= self._until:
            self._probe = 0.0

    def _probed(self, now: float, *, failed: bool) -> None:
        self._probe = 0.0
        if failed:
            self._open(now)
        else:
            self.is_closed = True
            self._buckets.clear()

    def _bucket(self, now: float) -> list[float]:
        window = self._limits.worker_circuit_window_seconds
        buckets = self._buckets
        while buckets and buckets[0][0] <= now - window:
            buckets.popleft()
        if not buckets or buckets[-1][0] <= now - window / _BUCKETS:
            buckets.append([now, 0, 0])
        return buckets[-1]

    def _judge(self, now: float) -> None:
        calls = sum(bucket[1] for bucket in self._buckets)
        failed = sum(bucket[2] for bucket in self._buckets)
        if calls >= self._limits.worker_circuit_calls and failed >= self._limits.worker_circuit_share * calls:
            self._open(now)

    def _open(self, now: float) -> None:
        self.is_closed = False
        self._until = now + self._limits.worker_circuit_open_seconds
        self._buckets.clear()
        self._opened()
