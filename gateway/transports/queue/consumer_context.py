"""What the parts of a consumer share: its name, its pending deliveries, Redis' clock, and events to wake each other."""

import asyncio
from time import monotonic
from typing import Final

import structlog
from msgspec import Struct, field

from gateway.telemetry.events import Events
from gateway.telemetry.labels import ConsumerEvent
from gateway.telemetry.table import BRIDGE_EVENTS
from gateway.transports.limits import ConsumerLimits
from gateway.transports.queue.clock import RedisClock
from gateway.transports.queue.handler import Handler
from gateway.transports.queue.names import Names
from gateway.transports.queue.pending_deliveries import PendingDeliveries
from gateway.transports.queue.seals import QueueSeals

_LOG: Final = structlog.get_logger(__name__)

FULL: Final = "Redis has no free memory, so presence and replies cannot be written; raise its maxmemory"
"""Why the consumer reads no calls."""

_LOST: Final = "Redis is unavailable"
_WITHOUT_WORKER: Final = "the worker is not described yet, or is unavailable"

REPORT_SECONDS: Final = 5.0
"""How long the worker is unavailable before a warning is logged. A worker that has just started needs a moment."""

PART: Final = 1000
"""At most so many entries in one command: it takes Redis a millisecond."""


class ConsumerCondition:
    """Whether the consumer reads calls from the queue, or why not; logged when it changes.

    Args:
        stream: the queue's name.
        consumer: the consumer's name.
        scheme: the part of Redis' URL that may be logged.
        events: counts losses of Redis.
    """

    def __init__(self, stream: str, consumer: str, scheme: str, events: Events) -> None:
        self.why = "not connected to Redis yet"
        """Why the consumer reads no calls; empty if it does."""
        self._stream = stream
        self._consumer = consumer
        self._scheme = scheme
        self._events = events
        self._without_since: float | None = None
        self._has_warned = False

    def become(self, why: str, *, expected: bool = False) -> None:
        """Set ``why``; empty: the consumer reads calls. ``expected``: the operator need not act, so no warning."""
        before, self.why = self.why, why
        if not why.startswith(_WITHOUT_WORKER):
            self._without_since, self._has_warned = None, False
        if why == before or any(why.startswith(each) and before.startswith(each) for each in (_LOST, _WITHOUT_WORKER)):
            return  # the details may change with each attempt
        if why:
            log = _LOG.info if expected else _LOG.warning
            log("the bridge takes no calls from the queue", stream=self._stream, why=why, scheme=self._scheme)
        else:
            _LOG.info("the bridge takes calls from the queue", stream=self._stream, consumer=self._consumer)

    def worker_unavailable(self, why: str) -> None:
        """The worker cannot be called, for the reason ``why`` if it is known. If that lasts, log one warning."""
        if self._without_since is None:
            self._without_since = monotonic()
        self.become(f"{_WITHOUT_WORKER}: {why}" if why else _WITHOUT_WORKER, expected=True)
        if why and not self._has_warned and monotonic() - self._without_since >= REPORT_SECONDS:
            self._has_warned = True
            _LOG.warning(
                "the bridge takes no calls from the queue", stream=self._stream, why=self.why, scheme=self._scheme
            )

    def lost(self, why: str) -> None:
        """Redis cannot be used, for this reason, which may be logged."""
        self._events.count(BRIDGE_EVENTS, ConsumerEvent.REDIS_LOST)
        self.become(f"{_LOST}: {why}")


class ConsumerContext(Struct, frozen=True, kw_only=True):
    """The shared state of one consumer. The task that waits for an event clears it."""

    name: str
    names: Names
    seals: QueueSeals
    handler: Handler
    limits: ConsumerLimits
    events: Events
    condition: ConsumerCondition
    deliveries: PendingDeliveries
    clock: RedisClock = field(default_factory=RedisClock)
    heartbeat_due: asyncio.Event = field(default_factory=asyncio.Event)
    """The presence has changed: send a heartbeat at once."""
    may_take: asyncio.Event = field(default_factory=asyncio.Event)
    """There may be room for more calls, or the worker may be available again."""
    may_write: asyncio.Event = field(default_factory=asyncio.Event)
    """There are replies or acknowledgements to write."""
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    """Nothing may be in hand any more."""
