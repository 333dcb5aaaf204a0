"""A circuit breaker: whether an endpoint judges a policy at all. Pure; times are monotonic seconds.

There is one for each endpoint and policy. It judges the endpoint, not one object. So an attempt counts as failed only
if it says more than that one object is difficult:

* It was **late**: it had the policy's whole timeout, and the endpoint answered no call of the policy in all that time.
  An endpoint that answers others is alive, however many slow objects wait there. An attempt with less time, because the
  API server's client, the budget or the gateway itself took some of it, does not count.
* It was **lost**, or the worker **returned a failure**, and another endpoint has judged the same document.

=======  ============================================================  ================================================
state    a call of the policy                                          next state
=======  ============================================================  ================================================
closed   is sent                                                       open, when ``worker_circuit_share`` of at least
                                                                       ``worker_circuit_calls`` attempts in the window
                                                                       failed
open     is sent to an endpoint whose circuit is closed, and a copy    closed, when an attempt that began after it
         of it here, as a probe; if there is no such endpoint, it is   opened gets a verdict
         sent here all the same
=======  ============================================================  ================================================

Nobody waits for a probe: the endpoint has the policy's whole timeout for it. A call with side effects has no copy;
instead, one such call is sent here each ``worker_circuit_open_seconds``.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from gateway.transports.limits import TransportLimits

PROBES: Final = 3
"""The maximum number of probes of one policy that are open at one endpoint. With one, a single slow object would keep
the circuit open for the policy's timeout."""

PROBE_SECONDS: Final = 0.1
"""The shortest time between two probes: a worker that fails at once gets ten calls a second more."""

_BUCKETS: Final = 10
"""Parts of the window: counts expire a tenth of the window at a time."""

_NEVER: Final = float("-inf")


class CircuitBreaker:
    """A circuit breaker.

    Args:
        limits: ``worker_circuit_…``.
        changed: called when it opens, with True, and when it closes, with False.
    """

    __slots__ = (
        "_buckets",
        "_changed",
        "_limits",
        "_opened_at",
        "_probe_at",
        "_probes",
        "_responded_at",
        "is_closed",
    )

    def __init__(self, limits: TransportLimits, changed: Callable[[bool], object] = lambda _: None) -> None:
        self._limits = limits
        self._changed = changed
        self._buckets: deque[list[float]] = deque()  # since when, attempts, failed ones
        self._responded_at = _NEVER
        self._opened_at = _NEVER
        self._probes: deque[float] = deque()  # when each ends at the latest
        self._probe_at = _NEVER
        self.is_closed = True

    # ------------------------------------------------------------------------------------------------ attempts

    def answered(self, now: float, began: float) -> None:
        """An attempt that started at ``began`` got a verdict."""
        self._responded_at = now
        if not self.is_closed:
            if began >= self._opened_at:  # an earlier one may have been judged before the endpoint failed
                self.is_closed = True
                self._buckets.clear()
                self._changed(False)
        elif self._buckets:
            self._bucket(now)[1] += 1

    def responded(self, now: float) -> None:
        """An attempt got an answer that is no verdict. It does not close an open circuit."""
        self._responded_at = now

    def late(self, now: float, began: float) -> None:
        """An attempt that started at ``began`` had the policy's whole timeout, and got no answer."""
        if began > self._responded_at:
            self.failed(now)

    def failed(self, now: float) -> None:
        """An attempt failed here, and its document was judged elsewhere."""
        if not self.is_closed:
            return
        bucket = self._bucket(now)
        bucket[1] += 1
        bucket[2] += 1
        attempts = sum(bucket[1] for bucket in self._buckets)
        failed = sum(bucket[2] for bucket in self._buckets)
        if attempts >= self._limits.worker_circuit_calls and failed >= self._limits.worker_circuit_share * attempts:
            self.is_closed = False
            self._opened_at = now
            self._probe_at = now
            self._buckets.clear()
            self._changed(True)

    def _bucket(self, now: float) -> list[float]:
        window = self._limits.worker_circuit_window_seconds
        buckets = self._buckets
        while buckets and buckets[0][0] <= now - window:
            buckets.popleft()
        if not buckets or buckets[-1][0] <= now - window / _BUCKETS:
            buckets.append([now, 0, 0])
        return buckets[-1]

    # -------------------------------------------------------------------------------------------------- probes

    def wants_probe(self, now: float) -> bool:
        """Whether a copy of a call is to be sent here."""
        if self.is_closed or now < self._probe_at:
            return False
        probes = self._probes
        while probes and probes[0] <= now:
            probes.popleft()
        return len(probes) < PROBES

    def probe_started(self, now: float, deadline: float) -> None:
        """A probe was sent, which ends at its deadline at the latest."""
        self._probes.append(deadline)
        self._probe_at = now + PROBE_SECONDS

    def probe_ended(self) -> None:
        """A probe has ended; a verdict is reported by ``answered``."""
        if self._probes:
            self._probes.popleft()

    def lets_through(self, now: float) -> bool:
        """Whether a call that cannot be copied is to be sent here, although another endpoint could be called."""
        if self.is_closed:
            return True
        if now < self._probe_at + self._limits.worker_circuit_open_seconds:
            return False
        self._probe_at = now
        return True
