"""A circuit breaker: whoever fails or dawdles again and again is left alone for a while. Pure; times are seconds that
only grow.

There is one for each address and policy. A policy that hangs at one address is not asked there for a while; it says
nothing about the worker's other policies, nor about its other addresses.

==========  ===================================  =====================================================================
state       an ask                               becomes
==========  ===================================  =====================================================================
CLOSED      is let through                       OPEN, when of enough calls within the window too many failed, or too
                                                 many were slow
OPEN        is not let through                   HALF_OPEN, after a while
HALF_OPEN   is let through, one at a time        CLOSED, with everything forgotten, if that one succeeds in good time;
                                                 OPEN again if not
==========  ===================================  =====================================================================

What is counted:

* ``FAILED``: the worker said in good time that it could not judge, or gave what is no answer. It costs nobody time; so
  this opens a circuit only **softly**: whoever has nowhere better to go may go there all the same.
* ``LOST``: the connection or the stream broke. ``SLOW``: an answer that took almost all of the policy's time, or none
  in it. These open it **firmly**: waiting for such a worker costs every review its time.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final

from gateway.transports.limits import TransportLimits


class Call(Enum):
    """How a call went."""

    SUCCEEDED = 0
    FAILED = 1
    LOST = 2
    SLOW = 3


class Circuit(Enum):
    """What state a breaker is in, from outside."""

    CLOSED = 0
    SOFT = 1
    """Open, for want of answers that are of use."""
    FIRM = 2
    """Open, for want of answers."""


_BUCKETS: Final = 10
"""Parts of the window: what was counted leaves it a tenth at a time."""


class CircuitBreaker:
    """One of them.

    Args:
        limits: ``worker_circuit_…``.
        opened: called when it opens.
    """

    __slots__ = ("_buckets", "_limits", "_opened", "_state", "_trial", "_until")

    def __init__(self, limits: TransportLimits, opened: Callable[[Circuit], object] = lambda _: None) -> None:
        self._limits = limits
        self._opened = opened
        self._buckets: deque[list[float]] = deque()  # since when, calls, useless ones, lost or slow ones
        self._state = Circuit.CLOSED
        self._until = 0.0
        self._trial = 0.0

    def state(self, now: float) -> Circuit:
        """Whether an ask is let through: CLOSED if so, else how firmly it is not. Cheap while closed."""
        state = self._state
        if state is not Circuit.CLOSED and now >= self._until and now >= self._trial:
            return Circuit.CLOSED
        return state

    def entered(self, now: float) -> None:
        """An ask goes through. While half open, no other one does until it has ended, or the same while is over."""
        if self._state is not Circuit.CLOSED and now >= self._until:
            self._trial = now + self._limits.worker_circuit_open_seconds

    def ended(self, call: Call, now: float, began: float) -> None:
        """An ask that began then has ended so."""
        if self._state is not Circuit.CLOSED:
            if began >= self._until:
                self._tried(call, now)
            return  # the others are no trials, but of before
        bucket = self._bucket(now)
        bucket[1] += 1
        if call is Call.SUCCEEDED:
            return
        bucket[2 if call is Call.FAILED else 3] += 1
        self._judge(now)

    def forgotten(self, began: float) -> None:
        """An ask that began then has ended, and says nothing: whoever asked does not wait any more."""
        if began >= self._until:
            self._trial = 0.0

    def _tried(self, call: Call, now: float) -> None:
        self._trial = 0.0
        if call is Call.SUCCEEDED:
            self._state = Circuit.CLOSED
            self._buckets.clear()
        else:
            self._open(Circuit.SOFT if call is Call.FAILED else Circuit.FIRM, now)

    def _bucket(self, now: float) -> list[float]:
        window = self._limits.worker_circuit_window_seconds
        buckets = self._buckets
        while buckets and buckets[0][0] <= now - window:
            buckets.popleft()
        if not buckets or buckets[-1][0] <= now - window / _BUCKETS:
            buckets.append([now, 0, 0, 0])
        return buckets[-1]

    def _judge(self, now: float) -> None:
        limits = self._limits
        calls = sum(bucket[1] for bucket in self._buckets)
        if calls < limits.worker_circuit_calls:
            return
        lost = sum(bucket[3] for bucket in self._buckets)
        useless = lost + sum(bucket[2] for bucket in self._buckets)
        if lost >= limits.worker_circuit_share * calls:
            self._open(Circuit.FIRM, now)
        elif useless >= limits.worker_circuit_share * calls:
            self._open(Circuit.SOFT, now)

    def _open(self, how: Circuit, now: float) -> None:
        self._state = how
        self._until = now + self._limits.worker_circuit_open_seconds
        self._buckets.clear()
        self._opened(how)
