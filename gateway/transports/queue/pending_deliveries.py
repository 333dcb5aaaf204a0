"""What a consumer has in its hands: from the entry that was delivered until Redis has taken the answer. No I/O.

    taken      the worker is called; its entries are renewed, so that nobody claims them
    answered   the answer waits to be written; its entries are renewed still
    written    gone, but for the answer, which is remembered until the deadline
    dropped    nobody is to be answered; its entry is to be removed

* Which question it is say gateway, id and deadline. The same question may stand in several entries: a gateway puts it
  again after Redis has lost its data. Then the worker is called once, and each entry is done with the same answer.
* What is in hand is bounded in number and in bytes: whoever has no room takes nothing, and other consumers do. What
  dead ones have left may come on top, up to twice the number: nobody else may have room for it, and its time runs.
* What is remembered is bounded too. Of what is forgotten the worker is called again, which is what the queue allows.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import Struct, field

from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q

REMEMBERED: Final = 10_000
"""Answers that are remembered: those of half a minute, the longest deadline, at 300 a second. Only after a loss of data
gateways call again, and then within seconds."""

REMEMBERED_BYTES: Final = 16_777_216
"""Bytes of them, 1.6 KB each."""

LONGEST_REMEMBERED: Final = 65_536
"""One that is longer is not remembered: it would push out hundreds of usual ones."""


class PendingEntry(NamedTuple):
    """Where a question stands in Redis."""

    lane: str
    id: bytes


class Key(NamedTuple):
    """Which question it is."""

    gateway: str
    id: bytes
    deadline: int


class PendingReply(Struct, kw_only=True, eq=False):
    """An answer that waits to be written. ``until`` is in monotonic seconds."""

    key: Key
    reply: q.Reply
    size: int
    until: float
    entries: list[PendingEntry] = field(default_factory=list)


class _Taken(Struct, kw_only=True, eq=False):
    """A question that the worker is called."""

    until: float
    size: int
    entries: list[PendingEntry]


class PendingDeliveries:
    """Counts it.

    Args:
        most: questions in hand.
        most_bytes: of them and their answers; one question always fits.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self.most = most
        self.most_bytes = most_bytes
        self.bytes = 0
        self._taken: dict[Key, _Taken] = {}
        self._answered: dict[PendingReply, None] = {}
        self._dropped: list[PendingEntry] = []
        self._held: dict[PendingEntry, None] = {}
        self._known: OrderedDict[Key, tuple[float, q.Reply, int]] = OrderedDict()
        self._known_bytes = 0

    @property
    def in_work(self) -> int:
        """Questions that the worker is called now."""
        return len(self._taken)

    @property
    def in_hand(self) -> int:
        """Questions that the worker is called, and answers that wait to be written."""
        return len(self._taken) + len(self._answered)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to do."""
        return not self._held

    @property
    def room(self) -> int:
        """How many more questions may be taken."""
        return max(0, self.most - self.in_hand) if self.bytes < self.most_bytes else 0

    @property
    def room_for_claimed(self) -> int:
        """How many may be taken over from the dead. There is room for it while all are busy."""
        return max(0, 2 * self.most - self.in_hand) if self.bytes < self.most_bytes else 0

    @property
    def entries(self) -> tuple[PendingEntry, ...]:
        """All that are in hand, which are to be renewed."""
        return tuple(self._held)

    def holds(self, entry: PendingEntry) -> bool:
        """Whether it is in hand."""
        return entry in self._held

    def again(self, key: Key, entry: PendingEntry, now: float) -> bool:
        """A question has come; whether it is one that has been taken before. Then this entry is done with it."""
        taken = self._taken.get(key)
        if taken is not None:
            taken.entries.append(entry)
            self._held[entry] = None
            return True
        known = self._known.get(key)
        if known is None or known[0] <= now:
            return False
        self.put(key, entry, known[1], known[0])
        return True

    def take(self, key: Key, entry: PendingEntry, *, until: float, size: int) -> None:
        """The worker is called it."""
        self._taken[key] = _Taken(until=until, size=size, entries=[entry])
        self._held[entry] = None
        self.bytes += size

    def answer(self, key: Key, reply: q.Reply, now: float) -> None:
        """The worker has answered it."""
        taken = self._taken.pop(key)
        size = reply.ByteSize()
        self.bytes += size - taken.size
        self._answered[PendingReply(key=key, reply=reply, size=size, until=taken.until, entries=taken.entries)] = None
        self._remember(key, reply, size, taken.until, now)

    def put(self, key: Key, entry: PendingEntry, reply: q.Reply, until: float) -> None:
        """PendingReply a question that the worker is not called."""
        size = reply.ByteSize()
        self._held[entry] = None
        self.bytes += size
        self._answered[PendingReply(key=key, reply=reply, size=size, until=until, entries=[entry])] = None

    def drop(self, entry: PendingEntry) -> None:
        """Nobody is to be answered."""
        self._held[entry] = None
        self._dropped.append(entry)

    def dropped(self, most: int) -> list[PendingEntry]:
        """The oldest entries that are dropped: so many at most. They stay in hand."""
        return self._dropped[:most]

    def removed(self, entries: list[PendingEntry]) -> None:
        """These, the oldest that were dropped, are removed."""
        del self._dropped[: len(entries)]
        for entry in entries:
            self._held.pop(entry, None)

    def due(self, most_bytes: int) -> list[PendingReply]:
        """The oldest answers that wait to be written: so many bytes of them, one in any case. They stay in hand."""
        due: list[PendingReply] = []
        for answer in self._answered:
            most_bytes -= answer.size
            if most_bytes < 0 and due:
                break
            due.append(answer)
        return due

    def late(self, now: float) -> list[PendingReply]:
        """The answers whose deadline is over. They stay in hand."""
        return [answer for answer in self._answered if answer.until <= now]

    def done(self, answers: Iterable[PendingReply]) -> None:
        """These are written, or given up: they are in hand no more, and neither are their entries."""
        for answer in answers:
            del self._answered[answer]
            self.bytes -= answer.size
            for entry in answer.entries:
                self._held.pop(entry, None)

    def _remember(self, key: Key, reply: q.Reply, size: int, until: float, now: float) -> None:
        if size > LONGEST_REMEMBERED:
            return
        before = self._known.pop(key, None)
        self._known_bytes += size - (0 if before is None else before[2])
        self._known[key] = until, reply, size
        while True:
            ends, _, oldest = next(iter(self._known.values()))
            if ends > now and len(self._known) <= REMEMBERED and self._known_bytes <= REMEMBERED_BYTES:
                return
            self._known.popitem(last=False)
            self._known_bytes -= oldest
            if not self._known:
                return
