"""What stands in a queue, made and read. No Redis, no waiting.

Whatever is read may have been written by anybody: what is not one of our messages, sealed for just this place, is None,
and never an exception.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from google.protobuf.message import DecodeError
from msgspec import Struct

from gateway.engine.policy_call import PolicyCall
from gateway.policies.model import Policy
from gateway.transports.messages import PHASES
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue.names import is_identifier
from gateway.transports.queue.seals import QueueSeals

EXPIRED_MS: Final = 61_000
"""What is older has expired: the longest timeout is 30 s, kube-apiserver's own; twice that, and a second."""

GONE_MS: Final = 5_000
"""A presence that is older says that its consumer is gone: it is renewed each second, and four may be lost."""

FORGOTTEN_MS: Final = 60_000
"""A presence that is older is removed by whoever sees it."""

DEAD_SECONDS: Final = 3.0
"""How long an entry must not have been renewed by whoever has it for others to take it: two renewals may be late."""

ID_BYTES: Final = 8
MOST_POLICIES: Final = 1000
"""Policies whose requests' common part is kept; beyond this all start anew."""

_DEADLINE_DIGITS: Final = 16


class QueuedRequest(Struct, frozen=True, kw_only=True):
    """An entry of a lane. ``deadline`` is in milliseconds of Redis' clock; ``request`` has a question in it."""

    gateway: str
    id: bytes
    deadline: int
    request: q.Request


class Requests:
    """Makes the Requests of one gateway; keeps what all calls of a policy have in common."""

    __slots__ = ("_beginnings", "_last")

    def __init__(self) -> None:
        self._beginnings: dict[int, tuple[Policy, bytes]] = {}
        self._last: tuple[bytes, str, str, bytes] | None = None

    def of(self, call: PolicyCall) -> bytes:
        """The Request that puts a call. It is put together of parts that are serialized once: "parsing the
        concatenation" of two messages is as merging them.
        """
        last = self._last
        content, uid, traceparent = call.document.content, call.uid, call.traceparent
        if last is None or last[0] is not content or last[1] != uid or last[2] != traceparent:
            rest = bytes(pb.PolicyCall(document=content, uid=uid, traceparent=traceparent).SerializeToString())
            # Policies that are called about one review have its document in common.
            last = self._last = content, uid, traceparent, rest
        beginning = self._beginning(call.policy)
        head = _CALL_TAG + _varint(len(beginning) + len(last[3]))
        return b"".join((head, beginning, last[3], b"" if call.cancellable else _ONCE))

    def forget(self) -> None:
        """Keep no document any longer."""
        self._last = None

    def _beginning(self, policy: Policy) -> bytes:
        known = self._beginnings.get(id(policy))
        if known is not None and known[0] is policy:
            return known[1]
        if len(self._beginnings) >= MOST_POLICIES:
            self._beginnings.clear()
        same = pb.PolicyCall(policy=policy.policy, phase=PHASES[policy.phase], settings=policy.settings)
        content = bytes(same.SerializeToString())
        self._beginnings[id(policy)] = policy, content
        return content


def settings_request(policy: str, settings: bytes) -> bytes:
    """The Request that calls about settings."""
    called = pb.ValidateSettingsRequest(policy=policy, settings=settings)
    return bytes(q.Request(validate_settings=called).SerializeToString())


def read_question(seals: QueueSeals, lane: str, fields: Mapping[bytes, bytes]) -> QueuedRequest | None:
    """What an entry of a lane calls; None if it is no message of ours."""
    number, deadline_text = fields.get(b"i", b""), fields.get(b"d", b"")
    if len(number) != ID_BYTES or not deadline_text.isdigit() or len(deadline_text) > _DEADLINE_DIGITS:
        return None
    gateway, deadline = fields.get(b"g", b"").decode("ascii", "replace"), int(deadline_text)
    if not is_identifier(gateway):
        return None
    content = seals.open_call(lane, gateway, (number, deadline), fields.get(b"m", b""))
    if content is None:
        return None
    try:
        request = q.Request.FromString(content)
    except DecodeError:
        return None
    if request.WhichOneof("request") is None:
        return None
    return QueuedRequest(gateway=gateway, id=number, deadline=deadline, request=request)


def sealed_replies(seals: QueueSeals, gateway: str, replies: Iterable[q.Reply], now: int) -> bytes:
    """What is written to a gateway.

    Raises:
        ValueError: there is no key.
    """
    content = q.Replies(replies=replies, at=now).SerializeToString()
    return seals.seal_replies(gateway, content)


def read_replies(seals: QueueSeals, gateway: str, sealed: bytes, now: int) -> q.Replies | None:
    """What was written to a gateway; None if it is no message of ours, or too old."""
    content = seals.open_replies(gateway, sealed)
    if content is None:
        return None
    try:
        replies = q.Replies.FromString(content)
    except DecodeError:
        return None
    return replies if abs(now - replies.at) <= EXPIRED_MS else None


def sealed_presence(seals: QueueSeals, consumer: str, presence: q.Presence) -> bytes:
    """What a consumer writes of itself.

    Raises:
        ValueError: there is no key.
    """
    return seals.seal_presence(consumer, presence.SerializeToString())


def read_presence(seals: QueueSeals, consumer: str, sealed: bytes) -> q.Presence | None:
    """What a consumer wrote of itself, whenever that was; None if it is no message of ours."""
    content = seals.open_presence(consumer, sealed)
    if content is None:
        return None
    try:
        presence = q.Presence.FromString(content)
    except DecodeError:
        return None
    return presence if presence.capacity > 0 and is_identifier(presence.lane) else None


def _varint(number: int) -> bytes:
    """A length as protobuf writes it."""
    content = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte, the eighth says that more follows
        content.append(number & 0x7F | 0x80)
        number >>= 7
    content.append(number)
    return bytes(content)


_CALL_TAG: Final = bytes([q.Request.CALL_FIELD_NUMBER << 3 | 2])
_ONCE: Final = bytes([q.Request.ONCE_FIELD_NUMBER << 3, 1])
