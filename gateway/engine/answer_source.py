"""Where an answer came from."""

from typing import Final

from msgspec import Struct

from gateway.enums import StrEnum
from gateway.policies.model import Policy


class Source(StrEnum):
    """Where an answer came from."""

    CALLED = "called"
    """The worker was called for this review."""

    MEMO = "memo"
    """An equal call in this review already had the verdict."""

    MEMORY = "memory"
    """The in-process cache had the verdict, from another review."""

    REDIS = "redis"
    """The Redis cache that all replicas share had the verdict."""

    SHARED = "shared"
    """An equal call was open, in this review or in another one, and its verdict was shared."""

    STALE = "stale"
    """The call failed, and a stale verdict within staleIfError was used instead."""

    NONE = "none"
    """No call was made: the failure was known without one (configuration, budget, namespace, version)."""


class Origin(Struct, frozen=True, kw_only=True):
    """The source of an answer; ``age``: seconds since the worker gave it, if it comes from a cache."""

    source: Source
    age: float = 0.0


class CallRecord(Struct, frozen=True, kw_only=True):
    """One call: when it was made and answered, on the driver's clock, and what the cache had for it.

    ``number`` identifies it in its review. ``answered_at`` is None if no answer came in time. ``lookup`` is the result
    of the cache lookup (``gateway.telemetry.labels.LookupResult``), "" if the cache was not asked; ``looked_up_at`` is
    when Redis had answered, None if it was not asked. ``shared_with`` is the traceparent of the call of another review
    whose answer this one shared.
    """

    number: int = 0
    called_at: float
    answered_at: float | None
    lookup: str = ""
    looked_up_at: float | None = None
    shared_with: str = ""


class SampledCall(Struct, frozen=True, kw_only=True):
    """A call of a review whose spans are exported; ``prefetched``: it was made before its policy's turn."""

    policy: Policy
    prefetched: bool
    record: CallRecord


CALLED: Final = Origin(source=Source.CALLED)
"""The origin of an answer that the worker gave to this call."""
