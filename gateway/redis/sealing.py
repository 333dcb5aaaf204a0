"""Values in Redis are sealed: an attacker who can read Redis learns nothing, one who can write to it forges nothing.

Keys come from a key file (see ``gateway.redis.key_files``). From each of them one key is derived for each **purpose**
(HKDF, RFC 5869), so that a value that was sealed for one purpose cannot be used for another; and a fingerprint of 32
bits, by which logs of two processes can be compared. It discloses nothing of the key.

    sealed      version, hour, nonce, AES-256-GCM(key, nonce, content, all of the version, hour, purpose, place, beside)
    key         HMAC-SHA256(key of the purpose, version, hour, place)
    hour        the sealer's clock, in units of 2^22 ms (70 minutes), 4 bytes
    digest      HMAC-SHA256(key of the purpose, content): a name that discloses nothing of the content

The **place** is where a value belongs: a key in Redis, or a queue and a recipient. A value that is altered or moved to
another place does not open; nor does it with other bytes **beside** it, which are readable and authenticated. An
attacker may replay an authentic value at its own place: it contains its time, and the reader checks its age.

Each place has its own key for each hour: "the total number of invocations of the authenticated encryption function
shall not exceed 2^32" for random nonces (NIST SP 800-38D, section 8.3). With only one key, 1,000 messages a second
would exceed that in seven weeks; so the limit is a million a second to one place, more than one Redis can process.
"""

import hmac
import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Final, NamedTuple

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gateway.redis.key_files import KEY_BYTES, secrets_of

_LOG: Final = structlog.get_logger(__name__)

_VERSION: Final = b"\x01"
_HOUR_BITS: Final = 22
_HOUR_BYTES: Final = 4
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_HEAD: Final = len(_VERSION) + _HOUR_BYTES
_FINGERPRINT_BYTES: Final = 4

SEAL_BYTES: Final = _HEAD + _NONCE_BYTES + _TAG_BYTES
"""By how many bytes a sealed value is longer than its content."""

CIPHERS: Final = 4096
"""Keys of places that are cached: the gateways and bridges of a large installation, for this hour and the last."""


class Context(NamedTuple):
    """What a sealed value is bound to: it opens only with an equal context. ``purpose`` is a constant."""

    purpose: bytes
    place: bytes
    beside: bytes = b""


class SealKey:
    """One key: it seals, opens, and makes names.

    Args:
        secret: 32 random bytes.
        now: seconds since 1970.
    """

    __slots__ = ("_ciphers", "_derived", "_now", "_secret", "fingerprint")

    def __init__(self, secret: bytes, now: Callable[[], float] = time) -> None:
        self._secret = secret
        self._now = now
        self._derived: dict[bytes, bytes] = {}
        self._ciphers: OrderedDict[tuple[bytes, bytes, bytes], AESGCM] = OrderedDict()
        self.fingerprint = self._for(b"fingerprint")[:_FINGERPRINT_BYTES].hex()

    def digest(self, purpose: bytes, content: bytes) -> bytes:
        """32 bytes that disclose nothing of ``content`` without the key."""
        return hmac.digest(self._for(purpose), content, "sha256")

    def seal(self, context: Context, content: bytes) -> bytes:
        """``content``, sealed for this context."""
        head = _VERSION + (int(self._now() * 1000) >> _HOUR_BITS & 0xFFFFFFFF).to_bytes(_HOUR_BYTES, "big")
        known = self._ciphers.get((context.purpose, context.place, head))
        cipher = known or self._keep(context, head, self._cipher(context, head))
        nonce = os.urandom(_NONCE_BYTES)
        return head + nonce + cipher.encrypt(nonce, content, b"\0".join((head, *context)))

    def open(self, context: Context, sealed: bytes) -> bytes | None:
        """The content; None if it was not sealed with this key for this context."""
        if not is_sealed(sealed):
            return None
        head, start = sealed[:_HEAD], _HEAD + _NONCE_BYTES
        known = self._ciphers.get((context.purpose, context.place, head))
        cipher = known or self._cipher(context, head)
        try:
            content = cipher.decrypt(sealed[_HEAD:start], sealed[start:], b"\0".join((head, *context)))
        except InvalidTag:
            return None
        if known is None:
            # Only after a success: an attacker without the key could fill the cache with places and hours.
            self._keep(context, head, cipher)
        return content

    def _cipher(self, context: Context, head: bytes) -> AESGCM:
        return AESGCM(self.digest(context.purpose, head + context.place))

    def _keep(self, context: Context, head: bytes, cipher: AESGCM) -> AESGCM:
        if len(self._ciphers) >= CIPHERS:
            self._ciphers.popitem(last=False)
        self._ciphers[context.purpose, context.place, head] = cipher
        return cipher

    def _for(self, purpose: bytes) -> bytes:
        known = self._derived.get(purpose)
        if known is None:
            info = b"admission-gateway v1 " + purpose
            derivation = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info)
            known = self._derived[purpose] = derivation.derive(self._secret)
        return known


class SealKeys:
    """The keys in use, from a file that may change. The first one seals, all of them open.

    Args:
        path: of the key file. If it does not exist or has no key, ``why`` states that, and nothing can be sealed or
            opened. None: one key that only this process has, while it runs.
        kind: the file's name in messages.
        now: seconds since 1970.
    """

    __slots__ = ("_kind", "_now", "_path", "_reported", "_secrets", "keys", "why")

    def __init__(self, path: Path | None, kind: str = "seal key file", now: Callable[[], float] = time) -> None:
        self._path = path
        self._kind = kind
        self._now = now
        self._secrets: tuple[bytes, ...] = ()
        self._reported = ""
        self.keys: tuple[SealKey, ...] = ()
        self.why = ""
        """Why nothing can be sealed; empty if it can."""
        if path is None:
            self.keys = (SealKey(os.urandom(KEY_BYTES), now),)
        else:
            self.refresh()

    def refresh(self) -> bool:
        """Read the file again; the caller decides when. Returns whether the keys have changed.

        If the file cannot be used, the keys stay, and the error is logged once. If there are none, ``why`` has it.
        """
        if self._path is None:
            return False
        try:
            secrets = secrets_of(self._path, self._kind)
        except ValueError as error:
            if self.keys and str(error) != self._reported:
                _LOG.error("seal keys cannot be read; those in use stay", error=str(error), keys=len(self.keys))
            self._reported = str(error)
            self.why = "" if self.keys else str(error)
            return False
        recovered, changed = bool(self._reported), secrets != self._secrets
        self.why = self._reported = ""
        if changed:
            known = dict(zip(self._secrets, self.keys, strict=True))
            self.keys = tuple(known.get(secret) or SealKey(secret, self._now) for secret in secrets)
            self._secrets = secrets
        if changed or recovered:
            fingerprints = list(self.fingerprints)
            _LOG.info("seal keys read", file=str(self._path), keys=len(secrets), fingerprints=fingerprints)
        return changed

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """One for each key, in the file's order. They disclose nothing of the keys."""
        return tuple(key.fingerprint for key in self.keys)

    def seal(self, context: Context, content: bytes) -> bytes:
        """``content``, sealed with the first key.

        Raises:
            ValueError: there is no key; the message is ``why``.
        """
        if not self.keys:
            raise ValueError(self.why)
        return self.keys[0].seal(context, content)

    def open(self, context: Context, sealed: bytes) -> bytes | None:
        """The content; None if none of the keys opens it."""
        for key in self.keys:
            content = key.open(context, sealed)
            if content is not None:
                return content
        return None


def is_sealed(content: bytes) -> bool:
    """Whether it has the form of a sealed value, of any key."""
    return len(content) >= SEAL_BYTES and content.startswith(_VERSION)
