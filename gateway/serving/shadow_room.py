"""How many comparisons with shadows are under way at once. What finds no room is dropped and counted, never kept.

A shadow that hangs holds the room of its own policy, and no other's.
"""

from collections import Counter
from typing import Final

from gateway.policies.model import Phase, Policy

COMPARISONS_OF_ONE: Final = 64
"""Comparisons of one policy. By Little's law 2,000 a second, as many as a process decides, take 60 of 30 ms each: the
pause before it, and the worker."""

COMPARISONS: Final = 256
"""Comparisons of all policies together: four that hang, or as many as a process has reviews for."""

HELD_BYTES: Final = 16_000_000
"""Bytes of the requests that are held for comparisons: five updates of the largest objects that etcd stores (1.5 MiB,
before and after). As text and parsed, with what the policies make of them: less than 100 MB."""


class ShadowRoom:
    """Counts what is under way."""

    def __init__(self) -> None:
        self._by_policy: Counter[tuple[Phase, str]] = Counter()
        self._comparisons = 0
        self._bytes = 0

    def take(self, policy: Policy, size: int) -> bool:
        """One more comparison of this policy, with a request of so many bytes; False: there is no room for it."""
        about = (policy.phase, policy.qualified_name)
        if (
            self._comparisons >= COMPARISONS
            or self._by_policy[about] >= COMPARISONS_OF_ONE
            or self._bytes + size > HELD_BYTES
        ):
            return False
        self._comparisons += 1
        self._by_policy[about] += 1
        self._bytes += size
        return True

    def leave(self, policy: Policy, size: int) -> None:
        """It is over."""
        about = (policy.phase, policy.qualified_name)
        self._comparisons -= 1
        self._bytes -= size
        self._by_policy[about] -= 1
        if not self._by_policy[about]:
            # Policies come and go with configurations.
            del self._by_policy[about]
