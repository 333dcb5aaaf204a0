"""When a second replica is asked although the first may still answer, and how often: pure arithmetic.

"Hedged requests": after the time within which 95 of 100 asks of the policy have been answered, the ask is put to
another replica as well, and the first verdict counts. That would be one ask in twenty; the budget sees to it that it
never is more, however slow everything becomes.
"""

from collections import deque
from typing import Final

from gateway.transports.limits import TransportLimits

QUANTILE: Final = 0.95

REMEMBERED: Final = 128
"""Latencies of a policy that count: the 95th percentile of 128 has six above it, enough not to be one outlier's."""

NEEDED: Final = 32
"""Before so many are known, nobody is hedged: of 32, one or two lie above the 95th percentile."""

_EVERY: Final = 16
"""Answers after which the percentile is worked out again: sorting 128 numbers takes 5 µs, shared by sixteen asks."""


class Latencies:
    """How long a policy's latest answers took. ``p95`` is in seconds; None: not known yet."""

    __slots__ = ("_latest", "_since", "p95")

    def __init__(self) -> None:
        self._latest: deque[float] = deque(maxlen=REMEMBERED)
        self._since = 0
        self.p95: float | None = None

    def add(self, seconds: float) -> None:
        """An answer took so long."""
        self._latest.append(seconds)
        self._since += 1
        if self._since >= _EVERY and len(self._latest) >= NEEDED:
            self._since = 0
            ordered = sorted(self._latest)
            self.p95 = ordered[int(len(ordered) * QUANTILE)]


class Budget:
    """So many extra calls for each ordinary one, and a few saved up.

    Args:
        share: of extra calls, such as 0.05.
        reserve: the most that can be saved up, and what there is at the start; nothing, if the share is 0.
    """

    __slots__ = ("_counted", "_left", "_reserve", "_share", "calls")

    def __init__(self, share: float, reserve: float) -> None:
        self._share = share
        self._reserve = reserve if share > 0 else 0.0
        self._left = self._reserve
        self._counted = 0
        self.calls = 0
        """Ordinary calls so far."""

    def spend(self) -> bool:
        """Take an extra one, if there is one."""
        # Only now, and not with each call: nearly none is extra.
        self._left = min(self._left + (self.calls - self._counted) * self._share, self._reserve)
        self._counted = self.calls
        if self._left < 1:
            return False
        self._left -= 1
        return True


RESERVE: Final = 10.0
"""Retries and hedges that can be saved up: as many as gRPC's own retry throttling has tokens by default."""

MOST_POLICIES: Final = 1000
"""Policies whose latencies are known. Those that are configured no more leave theirs behind; beyond this all start
anew."""


class SecondChances:
    """What the asks to one worker may cost beyond one call each.

    Args:
        limits: ``worker_hedge_…`` and ``worker_retry_share``.
    """

    __slots__ = ("_hedges", "_latencies", "_retries", "_soonest")

    def __init__(self, limits: TransportLimits) -> None:
        self._soonest = limits.worker_hedge_seconds
        self._hedges = Budget(limits.worker_hedge_share, RESERVE)
        self._retries = Budget(limits.worker_retry_share, RESERVE)
        self._latencies: dict[str, Latencies] = {}

    def earn(self) -> None:
        """There is one more ask."""
        self._hedges.calls += 1
        self._retries.calls += 1

    def took(self, policy: str, seconds: float) -> None:
        """A verdict of a policy, by its qualified name, took so long."""
        latencies = self._latencies.get(policy)
        if latencies is None:
            if len(self._latencies) >= MOST_POLICIES:
                self._latencies.clear()
            latencies = self._latencies[policy] = Latencies()
        latencies.add(seconds)

    def hedge_after(self, policy: str) -> float | None:
        """After how many seconds a second replica may be asked; None: nobody can tell."""
        latencies = self._latencies.get(policy)
        if latencies is None or latencies.p95 is None:
            return None
        return max(latencies.p95, self._soonest)

    def may_hedge(self) -> bool:
        """Take one hedge out of the budget, if there is one."""
        return self._hedges.spend()

    def may_retry(self) -> bool:
        """Take one retry out of the budget, if there is one."""
        return self._retries.spend()
