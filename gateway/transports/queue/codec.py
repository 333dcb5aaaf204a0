"""Encodes and decodes the messages of a queue. No I/O.

Messages in Redis are untrusted: decoding one that was not sealed for its place returns None, and never raises.
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
"""Older entries have expired: twice the longest timeout, which is kube-apiserver's 30 s, and a second."""

GONE_MS: Final = 5_000
"""The consumer of an older presence is gone: presences are written each second, and four may be lost."""

FORGOTTEN_MS: Final = 60_000
"""An older presence is removed by any gateway that reads it."""

DEAD_SECONDS: Final = 3.0
"""How long an entry must not have been renewed for other consumers to claim it: two renewals may be late."""

ID_BYTES: Final = 8
MOST_POLICIES: Final = 1000
"""Policies for which the common part of requests is cached; beyond this the cache is cleared."""

_DEADLINE_DIGITS: Final = 16


class QueuedRequest(Struct, frozen=True, kw_only=True):
    """A decoded entry of a lane. ``deadline`` is in milliseconds of Redis' clock; ``request`` is not empty."""

    gateway: str
    id: bytes
    deadline: int
    request: q.Request


class Requests:
    """Serializes the Requests of one gateway; caches what all calls of a policy have in common."""

    __slots__ = ("_beginnings", "_last")

    def __init__(self) -> None:
        self._beginnings: dict[int, tuple[Policy, bytes]] = {}
        self._last: tuple[bytes, str, str, bytes] | None = None

    def of(self, call: PolicyCall) -> bytes:
        """The Request of a call, concatenated from parts that are serialized once: protobuf parses the concatenation of
        two messages as their merge.
        """
        last = self._last
        content, uid, traceparent = call.document.content, call.uid, call.traceparent
        if last is None or last[0] is not content or last[1] != uid or last[2] != traceparent:
            sent = pb.PolicyCall(document=content, uid=uid, traceparent=traceparent, tracestate=call.tracestate)
            rest = bytes(sent.SerializeToString())
            # Calls of one review share its document.
            last = self._last = content, uid, traceparent, rest
        beginning = self._beginning(call.policy)
        head = _CALL_TAG + _varint(len(beginning) + len(last[3]))
        return b"".join((head, beginning, last[3], b"" if call.cancellable else _ONCE))

    def forget(self) -> None:
        """Release the last document."""
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
    """The Request that validates settings."""
    validation = pb.ValidateSettingsRequest(policy=policy, settings=settings)
    return bytes(q.Request(validate_settings=validation).SerializeToString())


def read_request(seals: QueueSeals, lane: str, fields: Mapping[bytes, bytes]) -> QueuedRequest | None:
    """Decode an entry of a lane; None if it is not a sealed Request for this lane."""
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
    """Encode and seal replies to a gateway.

    Raises:
        ValueError: there is no key.
    """
    content = q.Replies(replies=replies, at=now).SerializeToString()
    return seals.seal_replies(gateway, content)


def read_replies(seals: QueueSeals, gateway: str, sealed: bytes, now: int) -> q.Replies | None:
    """Decode replies to a gateway; None if they were not sealed for it, or are too old."""
    content = seals.open_replies(gateway, sealed)
    if content is None:
        return None
    try:
        replies = q.Replies.FromString(content)
    except DecodeError:
        return None
    return replies if abs(now - replies.at) <= EXPIRED_MS else None


def sealed_presence(seals: QueueSeals, consumer: str, presence: q.Presence) -> bytes:
    """Encode and seal a consumer's presence.

    Raises:
        ValueError: there is no key.
    """
    return seals.seal_presence(consumer, presence.SerializeToString())


def read_presence(seals: QueueSeals, consumer: str, sealed: bytes) -> q.Presence | None:
    """Decode a consumer's presence of any age; None if it was not sealed for this consumer."""
    content = seals.open_presence(consumer, sealed)
    if content is None:
        return None
    try:
        presence = q.Presence.FromString(content)
    except DecodeError:
        return None
    return presence if presence.capacity > 0 and is_identifier(presence.lane) else None


def _varint(number: int) -> bytes:
    """A length in protobuf's encoding."""
    content = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte, the eighth says that more follows
        content.append(number & 0x7F | 0x80)
        number >>= 7
    content.append(number)
    return bytes(content)


_CALL_TAG: Final = bytes([q.Request.CALL_FIELD_NUMBER << 3 | 2])
_ONCE: Final = bytes([q.Request.ONCE_FIELD_NUMBER << 3, 1])
