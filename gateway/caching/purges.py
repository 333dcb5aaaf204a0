"""What was purged, and when: a verdict whose worker was asked before that moment is not used, wherever it stands.

The moment is on the clock of the replica that purged, a verdict's on that of the one that asked. They may differ by
``clock_skew_seconds``, so as much time after a purge belongs to it too: some verdicts are asked for once more, and none
from before slips through.
"""

from gateway.caching.limits import CacheLimits


class Purges:
    """The latest purge of each policy, by the policy's mark."""

    __slots__ = ("_ahead", "_limits", "_times")

    def __init__(self, limits: CacheLimits) -> None:
        self._limits = limits
        self._times: dict[bytes, float] = {}
        self._ahead: set[tuple[bytes, float]] = set()

    def note(self, mark: bytes, when: float, now: float) -> bool:
        """A policy was purged. Whether that is news.

        A moment further in the future than clocks may differ counts as now, and once: it would silence the cache until
        then.
        """
        latest = now + self._limits.clock_skew_seconds
        if when > latest:
            if (mark, when) in self._ahead:
                return False
            self._ahead = {each for each in self._ahead if each[1] > latest} | {(mark, when)}
            when = latest
        # What is older than any verdict may be covers nothing any more.
        oldest = now - self._limits.entry_seconds - 2 * self._limits.clock_skew_seconds
        if when <= max(oldest, self.latest(mark)):
            return False
        # Only now: what is no news is noted of each policy, each second.
        self._times = {each: time for each, time in self._times.items() if time > oldest}
        self._times[mark] = when
        return True

    def latest(self, mark: bytes) -> float:
        """When a policy was purged last; before everything, if it was not."""
        return self._times.get(mark, float("-inf"))

    def covers(self, mark: bytes, said: float) -> bool:
        """Whether a verdict of this policy, asked for at this moment, was purged."""
        when = self._times.get(mark)
        return when is not None and said <= when + self._limits.clock_skew_seconds
