"""The pending deliveries of a consumer ("in hand"): from delivery until Redis has the reply. No I/O.

    taken      the worker is called; the entries are renewed, so that no other consumer claims them
    answered   the reply waits to be written; the entries are still renewed
    written    removed, except for the reply, which is remembered until the deadline
    dropped    there is no reply; the entry waits to be acknowledged

* Gateway, ID and deadline identify a call. A call may have several entries: a gateway writes it again after Redis has
  lost its data. The worker is called once, and each entry gets the same reply.
* Calls in hand are limited in number and bytes: a consumer without room reads nothing, and other consumers do. Claimed
  entries may exceed the number, up to twice: other consumers may have no room either, and their deadlines approach.
* Remembered replies are limited too. After one is forgotten, the worker may be called again, as delivery at least once
  permits.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import Struct, field

from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q

REMEMBERED: Final = 10_000
"""Replies that are remembered: those of half a minute, the longest deadline, at 300 a second. Gateways write calls
again only after Redis has lost data, and then within seconds."""

REMEMBERED_BYTES: Final = 16_777_216
"""Bytes of remembered replies, 1.6 KB each."""

LONGEST_REMEMBERED: Final = 65_536
"""A longer reply is not remembered: it would displace hundreds of usual ones."""


class PendingEntry(NamedTuple):
    """An entry of a request stream."""

    lane: str
    id: bytes


class Key(NamedTuple):
    """Identifies a call."""

    gateway: str
    id: bytes
    deadline: int


class PendingReply(Struct, kw_only=True, eq=False):
    """A reply that waits to be written. ``until`` is its deadline, in monotonic seconds."""

    key: Key
    reply: q.Reply
    size: int
    until: float
    entries: list[PendingEntry] = field(default_factory=list)


class _Taken(Struct, kw_only=True, eq=False):
    """A call at the worker."""

    until: float
    size: int
    entries: list[PendingEntry]


class PendingDeliveries:
    """The pending deliveries of one consumer.

    Args:
        most: maximum number of calls in hand.
        most_bytes: maximum size of them and their replies; one call always fits.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self.most = most
        self.most_bytes = most_bytes
        self.bytes = 0
        self._taken: dict[Key, _Taken] = {}
        self._answered: dict[PendingReply, None] = {}
        self._dropped: list[PendingEntry] = []
        self._held: dict[PendingEntry, None] = {}
        self._remembered: OrderedDict[Key, tuple[float, q.Reply, int]] = OrderedDict()
        self._remembered_bytes = 0

    @property
    def in_flight(self) -> int:
        """Calls at the worker."""
        return len(self._taken)

    @property
    def in_hand(self) -> int:
        """Calls at the worker, and replies not yet written."""
        return len(self._taken) + len(self._answered)

    @property
    def is_empty(self) -> bool:
        """Whether no entry is in hand."""
        return not self._held

    @property
    def room(self) -> int:
        """How many more calls may be read."""
        return max(0, self.most - self.in_hand) if self.bytes < self.most_bytes else 0

    @property
    def room_for_claimed(self) -> int:
        """How many entries of dead consumers may be claimed."""
        return max(0, 2 * self.most - self.in_hand) if self.bytes < self.most_bytes else 0

    @property
    def entries(self) -> tuple[PendingEntry, ...]:
        """All entries in hand, which the heartbeat renews."""
        return tuple(self._held)

    def holds(self, entry: PendingEntry) -> bool:
        """Whether the entry is in hand."""
        return entry in self._held

    def repeat(self, key: Key, entry: PendingEntry, now: float) -> bool:
        """Whether a call is in hand or was answered recently. Then this entry gets the same reply."""
        taken = self._taken.get(key)
        if taken is not None:
            taken.entries.append(entry)
            self._held[entry] = None
            return True
        known = self._remembered.get(key)
        if known is None or known[0] <= now:
            return False
        self.put(key, entry, known[1], known[0])
        return True

    def take(self, key: Key, entry: PendingEntry, *, until: float, size: int) -> None:
        """Add a call for which the worker is called."""
        self._taken[key] = _Taken(until=until, size=size, entries=[entry])
        self._held[entry] = None
        self.bytes += size

    def answer(self, key: Key, reply: q.Reply, now: float) -> None:
        """The worker has answered a call."""
        taken = self._taken.pop(key)
        size = reply.ByteSize()
        self.bytes += size - taken.size
        self._answered[PendingReply(key=key, reply=reply, size=size, until=taken.until, entries=taken.entries)] = None
        self._remember(key, reply, size, taken.until, now)

    def put(self, key: Key, entry: PendingEntry, reply: q.Reply, until: float) -> None:
        """Add a reply to a call for which the worker is not called."""
        size = reply.ByteSize()
        self._held[entry] = None
        self.bytes += size
        self._answered[PendingReply(key=key, reply=reply, size=size, until=until, entries=[entry])] = None

    def drop(self, entry: PendingEntry) -> None:
        """Add an entry that gets no reply."""
        self._held[entry] = None
        self._dropped.append(entry)

    def dropped(self, most: int) -> list[PendingEntry]:
        """The oldest dropped entries, at most so many. They stay in hand."""
        return self._dropped[:most]

    def removed(self, entries: list[PendingEntry]) -> None:
        """These, the oldest dropped entries, are acknowledged."""
        del self._dropped[: len(entries)]
        for entry in entries:
            self._held.pop(entry, None)

    def due(self, most_bytes: int) -> list[PendingReply]:
        """The oldest replies that wait to be written, at most so many bytes but at least one. They stay in hand."""
        due: list[PendingReply] = []
        for answer in self._answered:
            most_bytes -= answer.size
            if most_bytes < 0 and due:
                break
            due.append(answer)
        return due

    def late(self, now: float) -> list[PendingReply]:
        """The replies whose deadline is over. They stay in hand."""
        return [answer for answer in self._answered if answer.until <= now]

    def done(self, answers: Iterable[PendingReply]) -> None:
        """These replies are written, or dropped: they and their entries are no longer in hand."""
        for answer in answers:
            del self._answered[answer]
            self.bytes -= answer.size
            for entry in answer.entries:
                self._held.pop(entry, None)

    def _remember(self, key: Key, reply: q.Reply, size: int, until: float, now: float) -> None:
        if size > LONGEST_REMEMBERED:
            return
        before = self._remembered.pop(key, None)
        self._remembered_bytes += size - (0 if before is None else before[2])
        self._remembered[key] = until, reply, size
        while True:
            ends, _, oldest = next(iter(self._remembered.values()))
            if ends > now and len(self._remembered) <= REMEMBERED and self._remembered_bytes <= REMEMBERED_BYTES:
                return
            self._remembered.popitem(last=False)
            self._remembered_bytes -= oldest
            if not self._remembered:
                return
