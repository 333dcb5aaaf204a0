"""A gateway monitors its queue once a second: Redis' time, the presences, the lengths of the lanes, the oldest entry.

It also renews its reply stream, which Redis deletes a minute after the last renewal. If the stream does not exist,
Redis has lost its data, and the calls with it.
"""

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.message import DecodeError

from gateway.redis.sealing import is_sealed
from gateway.transports.descriptions import Descriptions
from gateway.transports.queue.clock import RedisClock
from gateway.transports.queue.codec import FORGOTTEN_MS, GONE_MS, read_presence
from gateway.transports.queue.consumer_registry import RegisteredBridge
from gateway.transports.queue.names import GROUP, Names
from gateway.transports.queue.request_stream import RequestStream
from gateway.transports.queue.seals import QueueSeals

if TYPE_CHECKING:
    from gateway.redis.pipelines import Command

REPLIES_MS: Final = 60_000
"""How long Redis keeps the replies to a gateway that does not renew them: every deadline is over by then."""

LANE_MS: Final = 600_000
"""How long Redis keeps a lane that no gateway and no bridge uses."""

MOST_BRIDGES: Final = 1000
"""Bridges of one queue that are read: one for each core of a large cluster. If the hash has more fields, another writer
fills it, and none is read."""


class QueueMonitor:
    """The commands of one look at the queue, and their answers.

    Args:
        names: of the queue.
        instance: this gateway process' name.
        lanes: the request streams to look at.
    """

    def __init__(self, names: Names, instance: str, lanes: Mapping[str, RequestStream]) -> None:
        self._workers = names.workers
        self._lanes = lanes
        self.commands: list[Command] = [
            ("TIME",),
            ("PEXPIRE", names.replies(instance), REPLIES_MS),
            ("HLEN", names.workers),
            # One step returns them all, unless there are far more.
            ("HSCAN", names.workers, 0, "COUNT", 8 * MOST_BRIDGES),
        ]
        self._first = len(self.commands)
        for lane in lanes:
            stream = names.calls(lane)
            self.commands += [
                ("XLEN", stream),
                ("MEMORY", "USAGE", stream),
                ("XPENDING", stream, GROUP),
                ("PEXPIRE", stream, LANE_MS),
            ]
        self.is_forgotten = False
        self.presences: dict[str, bytes] = {}
        self.oldest: int | None = None

    def received(self, answers: Sequence[Any], clock: RedisClock, sent: float) -> None:
        """Process the answers.

        Raises:
            Exception: redis-py's, of a command that the gateway cannot do without.
        """
        for answer in answers[: self._first]:
            if isinstance(answer, BaseException):
                raise answer
        (seconds, microseconds), renewed, fields, scanned = answers[: self._first]
        clock.sample(sent, monotonic(), int(seconds), int(microseconds))
        self.is_forgotten = not renewed
        if fields <= MOST_BRIDGES:
            flat = scanned[1]
            self.presences = {
                name.decode("utf-8", "backslashreplace"): value
                for name, value in zip(flat[::2], flat[1::2], strict=True)
            }
        for number, lane in enumerate(self._lanes.values()):
            length, size, pending, _ = answers[self._first + 4 * number : self._first + 4 * number + 4]
            # An ACL may forbid these commands, and a lane may not exist yet.
            lane.length = length if isinstance(length, int) else 0
            lane.bytes = size if isinstance(size, int) else 0
            if isinstance(pending, list) and pending[0]:
                first = int(pending[1].partition(b"-")[0])
                self.oldest = first if self.oldest is None else min(self.oldest, first)


class PresenceReader:
    """Decodes presences, each value only once.

    Args:
        seals: of the queue.
    """

    def __init__(self, seals: QueueSeals) -> None:
        self._seals = seals
        self._descriptions = Descriptions()
        self._read: dict[str, tuple[bytes, RegisteredBridge | None, float]] = {}

    def of(self, fields: Mapping[str, bytes]) -> tuple[dict[str, RegisteredBridge], int]:
        """The bridges in these fields; and how many new values cannot be read."""
        read: dict[str, tuple[bytes, RegisteredBridge | None, float]] = {}
        unreadable = 0
        for name, value in fields.items():
            known = self._read.get(name)
            if known is None or known[0] != value:
                known = value, self._bridge(name, value), monotonic()
                unreadable += known[1] is None
            read[name] = known
        self._read = read
        return {name: bridge for name, (_, bridge, _) in read.items() if bridge is not None}, unreadable

    def has_unknown(self) -> bool:
        """Whether a recent presence is sealed with a key that this gateway does not have."""
        since = monotonic() - GONE_MS / 1000
        return any(bridge is None and is_sealed(value) and at >= since for value, bridge, at in self._read.values())

    def forget(self) -> None:
        """The keys have changed: decode all values again."""
        self._read = {}

    def _bridge(self, name: str, value: bytes) -> RegisteredBridge | None:
        presence = read_presence(self._seals, name, value)
        if presence is None:
            return None
        try:
            description = self._descriptions.of(presence.description)
        except DecodeError:
            return None
        return RegisteredBridge(
            description=description,
            lane=presence.lane,
            capacity=presence.capacity,
            answered=presence.answered,
            at=presence.at,
        )


def forgotten(bridges: Mapping[str, RegisteredBridge], now: int) -> list[str]:
    """The bridges whose presences are so old that they are removed."""
    return [name for name, bridge in bridges.items() if now - bridge.at > FORGOTTEN_MS]
