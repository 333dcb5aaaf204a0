"""What a gateway writes to Redis next: calls, deletions of canceled calls, and the trimming of its reply stream.

Everything of one turn of the event loop goes into one pipeline, up to a size but at least the oldest call; the next
pipeline gathers meanwhile. A pipeline is not a transaction: a call that Redis rejects does not affect the others.

A call that is canceled before it was written is never written. Otherwise its entry is deleted as soon as its ID is
known. This only shortens the stream: a consumer that has the call continues with it.
"""

from collections import OrderedDict
from typing import Any, Final, NamedTuple

from redis import exceptions

from gateway.redis.pipelines import Command
from gateway.transports.queue.clock import RedisClock
from gateway.transports.queue.codec import EXPIRED_MS, Requests
from gateway.transports.queue.names import Names
from gateway.transports.queue.open_calls import OpenCall
from gateway.transports.queue.request_stream import RequestStream
from gateway.transports.queue.seals import QueueSeals

_ENVELOPE_BYTES: Final = 256
"""Size of a call beyond its document and settings: names, a uid, the seal, the command."""

ANOTHER_CLOCK_MS: Final = 1000
"""If a deadline has moved by more than this on Redis' clock, another server with another clock answers now. Less is the
error of the estimate; NTP keeps clocks within a second."""

MOVED: Final = (exceptions.ReadOnlyError, exceptions.AskError, exceptions.TryAgainError, exceptions.ClusterDownError)
"""Errors of a server that is no longer the right one: it did not accept the call, which can be written elsewhere."""


class Batch(NamedTuple):
    """One pipeline: its commands; the calls and the length queries in it, each with the index of its command."""

    commands: list[Command]
    calls: list[tuple[int, OpenCall]]
    lengths: list[tuple[int, str]]


class Outbox:
    """Gathers the commands of the next pipeline.

    Args:
        names: of the queue.
        instance: this gateway process' name.
        seals: of the queue.
        clock: Redis' clock.
        batch_bytes: the size limit of one pipeline.
    """

    def __init__(self, names: Names, instance: str, seals: QueueSeals, clock: RedisClock, batch_bytes: int) -> None:
        self._names = names
        self._instance = instance
        self._seals = seals
        self._clock = clock
        self._batch_bytes = batch_bytes
        self._requests = Requests()
        self._unsent: OrderedDict[OpenCall, None] = OrderedDict()
        self._canceled: dict[str, list[bytes]] = {}
        self._read_to: bytes | None = None
        self.lanes: dict[str, RequestStream] = {}

    def __bool__(self) -> bool:
        """Whether something waits to be written. A trim alone does not count: it goes with the next pipeline."""
        return bool(self._unsent or self._canceled)

    @property
    def unsent(self) -> int:
        """How many calls wait to be written."""
        return len(self._unsent)

    def lane(self, name: str) -> RequestStream:
        """A lane's request stream."""
        known = self.lanes.get(name)
        if known is None:
            known = self.lanes[name] = RequestStream()
        return known

    def put(self, call: OpenCall) -> None:
        """Add a call to the next pipeline."""
        call.is_waiting = True
        self.lane(call.lane).unsent += 1
        self._unsent[call] = None

    def put_again(self, calls: list[OpenCall]) -> None:
        """Write these calls again, before all others, and delete their old entries.

        They keep their deadlines, by which bridges recognize them, unless Redis' clock is another one now.
        """
        for call in reversed(calls):
            if call.entry is not None:
                self._canceled.setdefault(call.lane, []).append(call.entry)
                call.entry = None
            if not call.is_waiting:
                call.is_waiting = True
                self.lane(call.lane).unsent += 1
            call.is_sent = False
            expiry = self._clock.at(call.deadline)
            if abs(expiry - call.expiry) > ANOTHER_CLOCK_MS:
                call.expiry = expiry
            self._unsent[call] = None
            self._unsent.move_to_end(call, last=False)

    def cancel(self, call: OpenCall) -> None:
        """It is canceled: do not write it, or delete its entry."""
        self.remove(call)
        if call.entry is not None:
            self._canceled.setdefault(call.lane, []).append(call.entry)

    def remove(self, call: OpenCall) -> None:
        """It no longer waits: Redis has it, or it is done."""
        self._unsent.pop(call, None)
        if call.is_waiting:
            call.is_waiting = False
            self.lane(call.lane).unsent -= 1

    def answered(self, call: OpenCall) -> None:
        """It is answered: the bridge has deleted its entry in the same transaction."""
        self.remove(call)
        lane = self.lane(call.lane)
        lane.length = max(lane.length - 1, 0)

    def has_read(self, entry: bytes | None) -> None:
        """Replies have been read up to this entry; None: none of those that Redis has now."""
        self._read_to = entry

    def batch(self) -> Batch:
        """The next pipeline."""
        commands: list[Command] = []
        for lane, entries in self._canceled.items():
            commands.append(("XDEL", self._names.calls(lane), *entries))
        self._canceled = {}
        if self._read_to is not None:
            commands.append(("XTRIM", self._names.replies(self._instance), "MINID", _after(self._read_to)))
            self._read_to = None
        sent = self._add_calls(commands)
        lengths: list[tuple[int, str]] = []
        for lane in {call.lane: None for _, call in sent}:
            lengths.append((len(commands), lane))
            commands.append(("XLEN", self._names.calls(lane)))
        return Batch(commands, sent, lengths)

    def _add_calls(self, commands: list[Command]) -> list[tuple[int, OpenCall]]:
        sent: list[tuple[int, OpenCall]] = []
        if not self._unsent:
            return sent
        now = self._clock.now()
        room = self._batch_bytes
        trimmed: set[str] = set()
        instance, unsent = self._instance, self._unsent
        while unsent:
            call = next(iter(unsent))
            room -= call.size + _ENVELOPE_BYTES
            if room < 0 and sent:
                break
            del unsent[call]
            lane = call.lane
            if not call.expiry:
                call.expiry = self._clock.at(call.deadline)
            content = call.request(self._requests)
            sealed = self._seals.seal_call(lane, instance, (call.number, call.expiry), content)
            # The next call to a lane trims its expired entries; "~": as far as that is cheap.
            trim: Command = ("*",) if lane in trimmed else ("MINID", "~", now - EXPIRED_MS, "*")
            trimmed.add(lane)
            call.is_sent = True
            sent.append((len(commands), call))
            fields = ("d", call.expiry, "g", instance, "i", call.number, "m", sealed)
            commands.append(("XADD", self._names.calls(lane), *trim, *fields))
        self._requests.forget()
        return sent

    def written(
        self, batch: Batch, answers: list[Any]
    ) -> tuple[list[tuple[OpenCall, BaseException]], Exception | None]:
        """Process Redis' answers to a pipeline.

        Returns:
            The rejected calls with their errors; and the error of ``MOVED``, if there is one: the calls that it
            concerns wait to be written to the right server.
        """
        refused: list[tuple[OpenCall, BaseException]] = []
        moved: list[OpenCall] = []
        elsewhere: Exception | None = None
        for place, call in batch.calls:
            answer = answers[place]
            if isinstance(answer, bytes):
                call.entry = answer
                call.was_taken = True
                self.remove(call)
                if call.is_done:
                    # It was canceled, or answered: then its entry is gone already, and deleting it does nothing.
                    self._canceled.setdefault(call.lane, []).append(answer)
            elif call.is_done:
                pass
            elif isinstance(answer, MOVED):
                elsewhere = answer
                moved.append(call)
            else:
                refused.append((call, answer))
        for place, lane in batch.lengths:
            length = answers[place]
            if isinstance(length, int):
                self.lane(lane).length = length
        self.put_again(moved)
        return refused, elsewhere


def _after(entry: bytes) -> str:
    """The ID right after an entry's: the first that is kept."""
    milliseconds, _, number = entry.partition(b"-")
    return f"{milliseconds.decode()}-{int(number) + 1}"
