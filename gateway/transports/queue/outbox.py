"""What a gateway has to write into Redis: calls, what it takes back, and the trimming of what it has read.

Everything of one turn of the loop leaves in one pipeline, up to a size, the oldest call in any case; while one is under
way, the next one gathers. A pipeline is no transaction: a call that Redis refuses costs no other one.

A call that was taken back before it was written is never written; afterwards its entry is deleted, as soon as Redis has
said where it stands. That is for the sake of the length only: whoever has taken it works on it.
"""

from collections import OrderedDict
from typing import Any, Final, NamedTuple

from redis import exceptions

from gateway.redis.pipelines import Command
from gateway.transports.queue.clock import RedisClock
from gateway.transports.queue.names import Names
from gateway.transports.queue.open_calls import OpenCall
from gateway.transports.queue.request_stream import RequestStream
from gateway.transports.queue.seals import QueueSeals
from gateway.transports.queue.wire import EXPIRED_MS, Requests

_ENVELOPE_BYTES: Final = 256
"""Of a call, beside its document and settings: names, a uid, the seal, the command."""

ANOTHER_CLOCK_MS: Final = 1000
"""By how much a deadline must have moved on Redis' clock for that to be another clock: that of a server whose time is
not the same. Less is the error of our own reckoning, and a second is what anybody's NTP keeps."""

MOVED: Final = (exceptions.ReadOnlyError, exceptions.AskError, exceptions.TryAgainError, exceptions.ClusterDownError)
"""Errors by which a server says that another one is the right one now: the call was not taken, and can be put there."""


class Batch(NamedTuple):
    """One pipeline: its commands, and the calls that are in it, each with its command's place."""

    commands: list[Command]
    calls: list[tuple[int, OpenCall]]
    lengths: list[tuple[int, str]]


class Outbox:
    """Gathers it.

    Args:
        names: of the queue.
        instance: this gateway's name.
        seals: seals.
        clock: Redis' time.
        batch_bytes: up to which size calls are gathered into one pipeline.
    """

    def __init__(self, names: Names, instance: str, seals: QueueSeals, clock: RedisClock, batch_bytes: int) -> None:
        self._names = names
        self._instance = instance
        self._seals = seals
        self._clock = clock
        self._batch_bytes = batch_bytes
        self._requests = Requests()
        self._unsent: OrderedDict[OpenCall, None] = OrderedDict()
        self._taken_back: dict[str, list[bytes]] = {}
        self._read_to: bytes | None = None
        self.lanes: dict[str, RequestStream] = {}

    def __bool__(self) -> bool:
        """Whether something waits. What has been read alone need not be told: it goes with the next pipeline."""
        return bool(self._unsent or self._taken_back)

    @property
    def unsent(self) -> int:
        """How many calls wait to be written."""
        return len(self._unsent)

    def lane(self, name: str) -> RequestStream:
        """What is known of a lane."""
        known = self.lanes.get(name)
        if known is None:
            known = self.lanes[name] = RequestStream()
        return known

    def put(self, call: OpenCall) -> None:
        """Write it."""
        call.is_waiting = True
        self.lane(call.lane).unsent += 1
        self._unsent[call] = None

    def put_again(self, calls: list[OpenCall]) -> None:
        """Write these once more, before all others, and delete where they stood.

        They keep their deadlines, by which bridges know them; but not if Redis' clock is another one now.
        """
        for call in reversed(calls):
            if call.entry is not None:
                self._taken_back.setdefault(call.lane, []).append(call.entry)
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

    def take_back(self, call: OpenCall) -> None:
        """Nobody waits for its answer."""
        self.rest(call)
        if call.entry is not None:
            self._taken_back.setdefault(call.lane, []).append(call.entry)

    def rest(self, call: OpenCall) -> None:
        """It waits no more: Redis has it, or it is done. Nothing of it is kept."""
        self._unsent.pop(call, None)
        if call.is_waiting:
            call.is_waiting = False
            self.lane(call.lane).unsent -= 1

    def answered(self, call: OpenCall) -> None:
        """It is answered: whoever did so has taken it out of its lane in the same moment."""
        self.rest(call)
        lane = self.lane(call.lane)
        lane.length = max(lane.length - 1, 0)

    def has_read(self, entry: bytes | None) -> None:
        """Replies have been read up to this one; None: none of those that Redis has now."""
        self._read_to = entry

    def batch(self) -> Batch:
        """The pipeline that is due."""
        commands: list[Command] = []
        for lane, entries in self._taken_back.items():
            commands.append(("XDEL", self._names.calls(lane), *entries))
        self._taken_back = {}
        if self._read_to is not None:
            commands.append(("XTRIM", self._names.replies(self._instance), "MINID", _behind(self._read_to)))
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
            # What has expired is removed by whoever comes next; "~": as far as that costs nothing.
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
        """Take down what Redis said to a pipeline.

        Returns:
            The refused calls with the reason; and the error by which it says that another server is the right one: then
            those that it did not take for that reason wait to be written to the right one.
        """
        refused: list[tuple[OpenCall, BaseException]] = []
        moved: list[OpenCall] = []
        elsewhere: Exception | None = None
        for place, call in batch.calls:
            answer = answers[place]
            if isinstance(answer, bytes):
                call.entry = answer
                call.was_taken = True
                self.rest(call)
                if call.is_done:
                    # It was given up, or answered: then it is gone already, and to delete it does nothing.
                    self._taken_back.setdefault(call.lane, []).append(answer)
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


def _behind(entry: bytes) -> str:
    """The id right behind an entry's: the first that is kept."""
    milliseconds, _, number = entry.partition(b"-")
    return f"{milliseconds.decode()}-{int(number) + 1}"
