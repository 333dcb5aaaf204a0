"""Where an answer came from."""

from typing import Final

from msgspec import Struct

from gateway.enums import StrEnum


class Source(StrEnum):
    """Where an answer came from."""

    CALLED = "asked"
    """The worker was asked for this review."""

    MEMO = "memo"
    """The same question had its verdict already, in this review."""

    MEMORY = "memory"
    """The cache of this process had it, from another review."""

    REDIS = "redis"
    """The cache that all replicas share had it."""

    SHARED = "shared"
    """The same question was open, in this review or in another one, and its verdict served both."""

    STALE = "stale"
    """The worker failed, and a verdict that is past its time but within staleIfError stands in for it."""

    NONE = "none"
    """Nobody was asked: the failure was known without (configuration, budget, namespace, version)."""


class Origin(Struct, frozen=True, kw_only=True):
    """``age``: seconds since the worker said it, where it comes from a cache."""

    source: Source
    age: float = 0.0


CALLED: Final = Origin(source=Source.CALLED)
"""The worker has just said it."""
