"""What stands in a queue is sealed: whoever can read Redis learns nothing, whoever can write to it forges nothing.

A worker's key file is one as ``gateway.redis.key_files`` says. From each of its keys three are derived (HKDF, RFC
5869), so that nothing that travels one way can be shown as something that travels the other way:

==========  ======================================  =====================  ===================
what        its place                               authenticated beside   who seals
==========  ======================================  =====================  ===================
ask         stream, lane, the gateway that asks     id, deadline           a gateway
replies     stream, the gateway that asked                                 bridges
presence    stream, the consumer's name                                    a bridge
==========  ======================================  =====================  ===================

    sealed      version, hour, nonce, AES-256-GCM(key of place and hour, nonce, content, all of the above)
    hour        Redis' clock when it was sealed, in units of 2^22 ms (70 minutes), 4 bytes

So what is altered, or moved to another queue, lane, gateway, id or deadline, does not open there. What is authentic
and is shown again at its own place is a replay: an ask to which there may be two answers, an answer to a question that
is no longer open, a presence that is out of date; the readers judge that by the moments in them.

The key of a message is an HMAC of its place and its hour: "the total number of invocations of the authenticated
encryption function shall not exceed 2^32" for random nonces (NIST SP 800-38D, section 8.3) would be a month for a
gateway that asks 1,600 times a second, were there one key for each place. With a new one each hour it is a million
messages a second to one place, more than one Redis takes.
"""

import hmac
import os
from collections import OrderedDict
from pathlib import Path
from typing import Final

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gateway.redis.key_files import secrets_of

_LOG: Final = structlog.get_logger(__name__)

_VERSION: Final = b"\x01"
_HOUR_BITS: Final = 22
_HOUR_BYTES: Final = 4
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_KEY_BYTES: Final = 32
_HEAD: Final = len(_VERSION) + _HOUR_BYTES
_FINGERPRINT_BYTES: Final = 4

SEAL_BYTES: Final = _HEAD + _NONCE_BYTES + _TAG_BYTES
"""By how much what is sealed is longer."""

CIPHERS: Final = 4096
"""Keys of places that are kept: the gateways and bridges of a large installation, for this hour and the one before."""

_ASK: Final = b"ask"
_REPLIES: Final = b"replies"
_PRESENCE: Final = b"presence"


class _Key:
    """One key of the file: seals and opens at places."""

    __slots__ = ("_ciphers", "_keys", "fingerprint")

    def __init__(self, secret: bytes) -> None:
        self._keys = {
            kind: _derived(secret, b"admission-gateway queue v1 " + kind) for kind in (_ASK, _REPLIES, _PRESENCE)
        }
        self._ciphers: OrderedDict[tuple[bytes, bytes, bytes], AESGCM] = OrderedDict()
        self.fingerprint = _derived(secret, b"admission-gateway queue v1 fingerprint")[:_FINGERPRINT_BYTES].hex()

    def seal(self, kind: bytes, place: bytes, content: bytes, beside: bytes, now: int) -> bytes:
        head = _VERSION + (now >> _HOUR_BITS & 0xFFFFFFFF).to_bytes(_HOUR_BYTES, "big")
        known = self._ciphers.get((kind, place, head))
        cipher = known or self._keep(kind, place, head, self._cipher(kind, place, head))
        nonce = os.urandom(_NONCE_BYTES)
        return head + nonce + cipher.encrypt(nonce, content, b"\0".join((head, kind, place, beside)))

    def open(self, kind: bytes, place: bytes, sealed: bytes, beside: bytes) -> bytes | None:
        head, start = sealed[:_HEAD], _HEAD + _NONCE_BYTES
        known = self._ciphers.get((kind, place, head))
        cipher = known or self._cipher(kind, place, head)
        try:
            content = cipher.decrypt(sealed[_HEAD:start], sealed[start:], b"\0".join((head, kind, place, beside)))
        except InvalidTag:
            return None
        if known is None:
            # Only that of somebody who has the key: others could name places and hours without end.
            self._keep(kind, place, head, cipher)
        return content

    def _cipher(self, kind: bytes, place: bytes, head: bytes) -> AESGCM:
        return AESGCM(hmac.digest(self._keys[kind], head + place, "sha256"))

    def _keep(self, kind: bytes, place: bytes, head: bytes, cipher: AESGCM) -> AESGCM:
        if len(self._ciphers) >= CIPHERS:
            self._ciphers.popitem(last=False)
        self._ciphers[kind, place, head] = cipher
        return cipher


class QueueSeals:
    """Seals and opens what stands in one queue. ``refresh`` reads the key file; its caller decides when.

    Args:
        stream: the queue's name.
        path: of the key file. It may be missing: then ``why`` says so, and nothing can be sealed or opened.
    """

    __slots__ = ("_keys", "_last", "_path", "_secrets", "_stream", "_told", "why")

    def __init__(self, stream: str, path: Path) -> None:
        self._stream = stream.encode()
        self._path = path
        self._secrets: tuple[bytes, ...] = ()
        self._keys: tuple[_Key, ...] = ()
        self._last = ("", "", b"")
        self._told = ""
        self.why = "the key file has not been read"
        """Why nothing can be sealed; empty if it can."""
        self.refresh()

    def refresh(self) -> bool:
        """Read the file again. Whether the keys are others now. A file that cannot be used changes nothing but ``why``
        where there was none before.
        """
        try:
            secrets = secrets_of(self._path, "queue key file")
        except ValueError as error:
            if str(error) != self._told:
                self._told = str(error)
                _LOG.error("the keys of a queue cannot be read", error=str(error), keys=len(self._keys))
            self.why = "" if self._keys else str(error)
            return False
        self.why = self._told = ""
        if secrets == self._secrets:
            return False
        known = dict(zip(self._secrets, self._keys, strict=True))
        self._keys = tuple(known.get(secret) or _Key(secret) for secret in secrets)
        self._secrets = secrets
        _LOG.info("keys of a queue read", file=str(self._path), keys=len(secrets), fingerprints=list(self.fingerprints))
        return True

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """One for each key, in the file's order. They tell nothing of it."""
        return tuple(key.fingerprint for key in self._keys)

    def seal_ask(self, lane: str, gateway: str, identity: tuple[bytes, int], content: bytes, now: int) -> bytes:
        """Seal a Request.

        Args:
            lane: by which it goes.
            gateway: who asks.
            identity: its id and deadline.
            content: the Request.
            now: Redis' time.

        Raises:
            ValueError: there is no key; ``why`` says why.
        """
        last = self._last
        if last[0] != lane or last[1] != gateway:
            # A gateway seals thousands of asks in a row for one place.
            last = self._last = lane, gateway, self._place(lane, gateway)
        return self._first().seal(_ASK, last[2], content, _beside(*identity), now)

    def open_ask(self, lane: str, gateway: str, identity: tuple[bytes, int], sealed: bytes) -> bytes | None:
        """A Request; None if it is not what was sealed for just this."""
        return self._open(_ASK, self._place(lane, gateway), sealed, _beside(*identity))

    def seal_replies(self, gateway: str, content: bytes, now: int) -> bytes:
        """Seal Replies to a gateway.

        Raises:
            ValueError: there is no key.
        """
        return self._first().seal(_REPLIES, self._place(gateway), content, b"", now)

    def open_replies(self, gateway: str, sealed: bytes) -> bytes | None:
        """Replies; None if it is not what was sealed for this gateway."""
        return self._open(_REPLIES, self._place(gateway), sealed, b"")

    def seal_presence(self, consumer: str, content: bytes, now: int) -> bytes:
        """Seal the Presence of a consumer.

        Raises:
            ValueError: there is no key.
        """
        return self._first().seal(_PRESENCE, self._place(consumer), content, b"", now)

    def open_presence(self, consumer: str, sealed: bytes) -> bytes | None:
        """A Presence; None if it is not what was sealed under this name."""
        return self._open(_PRESENCE, self._place(consumer), sealed, b"")

    def _first(self) -> _Key:
        if not self._keys:
            raise ValueError(self.why)
        return self._keys[0]

    def _open(self, kind: bytes, place: bytes, sealed: bytes, beside: bytes) -> bytes | None:
        if not is_sealed(sealed):
            return None
        for key in self._keys:
            content = key.open(kind, place, sealed, beside)
            if content is not None:
                return content
        return None

    def _place(self, *names: str) -> bytes:
        """Unambiguous: none of the names has a NUL."""
        return b"\0".join((self._stream, *(name.encode(errors="backslashreplace") for name in names)))


def is_sealed(content: bytes) -> bool:
    """Whether it looks like something sealed, with whatever key."""
    return len(content) >= SEAL_BYTES and content.startswith(_VERSION)


def _beside(number: bytes, deadline: int) -> bytes:
    return deadline.to_bytes(8, "big", signed=True) + number


def _derived(secret: bytes, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=purpose).derive(secret)
