"""What the parts of a consumer share: who it is, what it has in hand, Redis' clock, and how they wake each other."""

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

FULL: Final = "Redis is full, and evicts nothing: presence and answers wait for memory; raise its maxmemory"
"""Why no work is taken."""

_LOST: Final = "Redis cannot be used"
_WITHOUT_WORKER: Final = "the worker is not described yet, or gone"

REPORT_SECONDS: Final = 5.0
"""How long the worker is away before the log warns of it. Whoever is just being started is not there at first."""

PART: Final = 1000
"""Entries that one command is about, at most: it takes Redis a millisecond."""


class ConsumerCondition:
    """Whether work is taken from the queue, and why not; logged when it changes.

    Args:
        stream: the queue's name.
        consumer: who takes it.
        scheme: what may be said of where Redis is.
        events: hears that Redis was lost.
    """

    def __init__(self, stream: str, consumer: str, scheme: str, events: Events) -> None:
        self.why = "Redis has not been reached yet"
        """Why no work is taken; empty if it is."""
        self._stream = stream
        self._consumer = consumer
        self._scheme = scheme
        self._events = events
        self._without_since: float | None = None
        self._has_warned = False

    def become(self, why: str, *, expected: bool = False) -> None:
        """From now on this is why no work is taken; empty: it is taken. ``expected``: nobody has to do anything."""
        before, self.why = self.why, why
        if not why.startswith(_WITHOUT_WORKER):
            self._without_since, self._has_warned = None, False
        if why == before or any(why.startswith(each) and before.startswith(each) for each in (_LOST, _WITHOUT_WORKER)):
            return  # its reasons may change with each attempt
        if why:
            log = _LOG.info if expected else _LOG.warning
            log("no work is taken from the queue", stream=self._stream, why=why, scheme=self._scheme)
        else:
            _LOG.info("work is taken from the queue", stream=self._stream, consumer=self._consumer)

    def without_worker(self, why: str) -> None:
        """The worker cannot be called; ``why`` as far as anybody knows. If that lasts, the log warns of it, once."""
        if self._without_since is None:
            self._without_since = monotonic()
        self.become(f"{_WITHOUT_WORKER}: {why}" if why else _WITHOUT_WORKER, expected=True)
        if why and not self._has_warned and monotonic() - self._without_since >= REPORT_SECONDS:
            self._has_warned = True
            _LOG.warning("no work is taken from the queue", stream=self._stream, why=self.why, scheme=self._scheme)

    def lost(self, why: str) -> None:
        """Redis cannot be used, and why, as it may be logged."""
        self._events.count(BRIDGE_EVENTS, ConsumerEvent.REDIS_LOST)
        self.become(f"{_LOST}: {why}")


class ConsumerContext(Struct, frozen=True, kw_only=True):
    """One consumer's own. An event is set for whoever waits for it, who clears it."""

    name: str
    names: Names
    seals: QueueSeals
    judging: Handler
    limits: ConsumerLimits
    events: Events
    condition: ConsumerCondition
    deliveries: PendingDeliveries
    clock: RedisClock = field(default_factory=RedisClock)
    monitor: asyncio.Event = field(default_factory=asyncio.Event)
    """There is something to say of itself at once."""
    takeable: asyncio.Event = field(default_factory=asyncio.Event)
    """There may be room, or somebody to call."""
    writable: asyncio.Event = field(default_factory=asyncio.Event)
    """There is something to write."""
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    """There may be nothing in hand."""
