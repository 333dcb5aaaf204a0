"""A circuit breaker: after repeated failures, an endpoint is not called for some seconds. Pure; times are monotonic
seconds.

There is one for each endpoint and policy. The worker's other policies and other endpoints have their own.

==========  ===================================  =====================================================================
state       a call                               next state
==========  ===================================  =====================================================================
closed      is allowed                           open, when ``worker_circuit_share`` of at least
                                                 ``worker_circuit_calls`` calls within the window failed
open        is not allowed                       half-open, after ``worker_circuit_open_seconds``
half-open   is allowed, one at a time            closed, with all counts reset, if the call succeeds; open if it fails
==========  ===================================  =====================================================================

``RetryingCall`` decides which calls count as failed.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from gateway.transports.limits import TransportLimits

_BUCKETS: Final = 10
"""Parts of the window: counts expire a tenth of the window at a time."""


class CircuitBreaker:
    """A circuit breaker. ``is_closed``: it allows all calls.

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

    def allows(self, now: float) -> bool:
        """Whether a call is allowed now."""
        return self.is_closed or (now >= self._until and now >= self._probe)

    def started(self, now: float) -> None:
        """A call starts. While half-open, no other call is allowed until this one ends or the open time has passed
        again.
        """
        if not self.is_closed and now >= self._until:
            self._probe = now + self._limits.worker_circuit_open_seconds

    def ended(self, now: float, began: float, *, failed: bool) -> None:
        """A call that started at ``began`` has ended."""
        if not self.is_closed:
            if began >= self._until:
                self._probed(now, failed=failed)
            return  # a call from before the circuit opened is no probe
        bucket = self._bucket(now)
        bucket[1] += 1
        if failed:
            bucket[2] += 1
            self._judge(now)

    def ignored(self, began: float) -> None:
        """A call that started at ``began`` has ended, and counts neither as success nor as failure."""
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
