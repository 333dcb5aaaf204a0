"""When a user is warned that a policy was ignored: at most once a minute for each policy.

An outage of a worker under ``failurePolicy: Ignore`` concerns every request, and every controller prints each warning
that it gets: a warning per request would be noise in which the first one is lost. What must not be lost has no such
limit: the audit annotation, the metric and the log line are there for each request.

The state is shared by all reviews of a process. The clock is the engine's.
"""

from typing import Final

from gateway.policies.model import Policy

WARNING_SECONDS: Final = 60.0
"""The shortest time between two warnings about a policy."""

POLICIES_KEPT: Final = 4_096
"""Policies of which the last warning is remembered, of 100 bytes each. More are not configured at a time; those of
replaced configurations are forgotten first."""


class FailOpenWarnings:
    """Decides which ignored failures make a warning to the user."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], float] = {}

    def due(self, policy: Policy, now: float) -> bool:
        """Whether a failure of this policy makes a warning now. If so, it counts as given."""
        key = (policy.phase.value, policy.qualified_name)
        last = self._last.get(key)
        if last is not None and now - last < WARNING_SECONDS:
            return False
        # Without it, the key would keep its first place.
        self._last.pop(key, None)
        self._last[key] = now
        if len(self._last) > POLICIES_KEPT:
            # The oldest: one warning too many is better than none.
            del self._last[next(iter(self._last))]
        return True
