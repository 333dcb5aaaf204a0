"""The time of each policy's last purge: the cache does not use a verdict whose worker was called before it.

The purge has the clock of the replica that purged, a verdict the clock of the replica that called. They may differ by
``clock_skew_seconds``, so a purge also covers that much time after it: some newer verdicts are purged too, but no older
one is used.
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
        """Record a purge. Returns whether it is new.

        A time in the future beyond the clock skew counts as now, and once: otherwise it would disable the cache until
        then.
        """
        latest = now + self._limits.clock_skew_seconds
        if when > latest:
            if (mark, when) in self._ahead:
                return False
            self._ahead = {each for each in self._ahead if each[1] > latest} | {(mark, when)}
            when = latest
        # A purge older than the maximum age of a verdict covers nothing any more.
        oldest = now - self._limits.entry_seconds - 2 * self._limits.clock_skew_seconds
        if when <= max(oldest, self.latest(mark)):
            return False
        # Only for a new purge: known ones are noted for each policy, each second.
        self._times = {each: time for each, time in self._times.items() if time > oldest}
        self._times[mark] = when
        return True

    def latest(self, mark: bytes) -> float:
        """The time of a policy's last purge; minus infinity if there was none."""
        return self._times.get(mark, float("-inf"))

    def covers(self, mark: bytes, called_at: float) -> bool:
        """Whether a verdict of this policy, from a call at this time, is purged."""
        when = self._times.get(mark)
        return when is not None and called_at <= when + self._limits.clock_skew_seconds
