"""What the cache tells of itself, for metrics. Calls are made in the loop, must not raise, and take next to no time."""

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from gateway.policies.model import Policy

if TYPE_CHECKING:
    from gateway.redis.faults import RedisFault


class LookupResult(StrEnum):
    """What came of one question whose policy has ``cache``. Each counts once, unless nobody waits for it any more."""

    MEMORY = "memory"
    """This process had a fresh verdict."""

    REDIS = "redis"
    """Redis had one."""

    SHARED = "shared"
    """Another review had the same question open, and its verdict served both."""

    STALE = "stale"
    """The worker was asked, with a stale verdict at hand should it fail."""

    MISS = "miss"
    """The worker was asked."""

    BYPASS = "bypass"
    """The worker was asked, because its live connections are not all of the described version."""


class CacheEvents(Protocol):
    """Hears of everything that is worth a metric."""

    def looked_up(self, policy: Policy, result: LookupResult) -> None:
        """A question of this policy was looked up."""

    def stored(self, policy: Policy) -> None:
        """A verdict of this policy was kept in memory; Redis follows off the path."""

    def too_large(self, policy: Policy) -> None:
        """A verdict was not kept: larger than ``entry_bytes``, or it holds what cannot be written down."""

    def evicted(self, entries: int) -> None:
        """So many verdicts made room for newer ones."""

    def seal_failed(self) -> None:
        """An entry in Redis was forged, altered, moved, or sealed with a key that this replica does not have."""

    def redis_failed(self, fault: "RedisFault") -> None:
        """Redis did not do what it was asked to."""

    def redis_skipped(self, *, skipped: bool) -> None:
        """From now on Redis is skipped, or used again."""

    def write_dropped(self, entries: int) -> None:
        """So many verdicts were not written to Redis: it is skipped, or too many wait."""

    def purged(self, policies: int) -> None:
        """The verdicts of so many policies were purged, here or by another replica."""

    def size(self, memory_bytes: int, entries: int) -> None:
        """What the memory holds now."""


class NoEvents:
    """Hears of everything and tells nobody."""

    def looked_up(self, policy: Policy, result: LookupResult) -> None:
        """See CacheEvents."""

    def stored(self, policy: Policy) -> None:
        """See CacheEvents."""

    def too_large(self, policy: Policy) -> None:
        """See CacheEvents."""

    def evicted(self, entries: int) -> None:
        """See CacheEvents."""

    def seal_failed(self) -> None:
        """See CacheEvents."""

    def redis_failed(self, fault: "RedisFault") -> None:
        """See CacheEvents."""

    def redis_skipped(self, *, skipped: bool) -> None:
        """See CacheEvents."""

    def write_dropped(self, entries: int) -> None:
        """See CacheEvents."""

    def purged(self, policies: int) -> None:
        """See CacheEvents."""

    def size(self, memory_bytes: int, entries: int) -> None:
        """See CacheEvents."""
