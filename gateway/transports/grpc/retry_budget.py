"""How many calls to one worker may be made again after it said that it failed: pure arithmetic."""

from typing import Final

RESERVE: Final = 10.0
"""Retries that can be saved up: as many as gRPC's own retry throttling has tokens by default."""


class RetryBudget:
    """So many retries for each ordinary call, and a few saved up.

    Args:
        share: of retries, such as 0.2; 0 is never.
        reserve: the most that can be saved up, and what there is at the start.
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
        # Only now, and not with each call: nearly none is made again.
        self._left = min(self._left + (self.calls - self._counted) * self._share, self._reserve)
        self._counted = self.calls
        if self._left < 1:
            return False
        self._left -= 1
        return True
