"""The retry budget of one worker, for calls to which it returned a failure: pure arithmetic."""

from typing import Final

RESERVE: Final = 10.0
"""Saved retries: as many as gRPC's own retry throttling has tokens by default."""


class RetryBudget:
    """A share of retries for each ordinary call, and a reserve.

    Args:
        share: retries for each call, such as 0.2; 0: none.
        reserve: the maximum number of saved retries, and those at the start.
    """

    __slots__ = ("_counted", "_left", "_reserve", "_share", "calls")

    def __init__(self, share: float, reserve: float = RESERVE) -> None:
        self._share = share
        self._reserve = reserve if share > 0 else 0.0
        self._left = self._reserve
        self._counted = 0
        self.calls = 0
        """Ordinary calls so far."""

    def spend(self) -> bool:
        """Take a retry, if there is one."""
        # Computed here and not in each call: few calls are retried.
        self._left = min(self._left + (self.calls - self._counted) * self._share, self._reserve)
        self._counted = self.calls
        if self._left < 1:
            return False
        self._left -= 1
        return True
