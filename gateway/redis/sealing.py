"""What stands in Redis is sealed: whoever can read Redis learns nothing, whoever can write to it forges nothing.

Keys come from a key file (``gateway.redis.key_files``, which says how one is replaced). From each of them one key is
derived for each **purpose** (HKDF, RFC 5869), so that nothing that was sealed for one purpose can be shown as something
of another one; and a fingerprint of 32 bits, by which two logs say whether they have the same key. It tells nothing of
the key.

    sealed      version, hour, nonce, AES-256-GCM(key, nonce, content, all of the version, hour, purpose, place, beside)
    key         HMAC-SHA256(key of the purpose, version, hour, place)
    hour        the sealer's clock, in units of 2^22 ms (70 minutes), 4 bytes
    digest      HMAC-SHA256(key of the purpose, content): a name that tells nothing of what it names

The **place** is where it stands: a name, a queue and who it is for. What is altered, or moved to another place, does
not open there; nor does it with other bytes **beside** it, which are readable and authentic. What is authentic and is
shown again at its own place is a replay: it carries its own moment, and the reader judges its age.

Each place has a key of its own for each hour: "the total number of invocations of the authenticated encryption function
shall not exceed 2^32" for random nonces (NIST SP 800-38D, section 8.3) would be over in seven weeks of 1,000 messages a
second, were there only one. So it is a million a second to one place, more than one Redis takes.
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
"""By how much what is sealed is longer."""

CIPHERS: Final = 4096
"""Keys of places that are kept: the gateways and bridges of a large installation, for this hour and the one before."""


class Context(NamedTuple):
    """What something sealed is bound to; it opens with the very same only. ``purpose`` is one of our constants."""

    purpose: bytes
    place: bytes
    beside: bytes = b""


class SealKey:
    """One key: seals, opens, and makes names.

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
        """32 bytes that tell nothing of ``content`` to whoever does not have the key."""
        return hmac.digest(self._for(purpose), content, "sha256")

    def seal(self, context: Context, content: bytes) -> bytes:
        """``content``, sealed for this context."""
        head = _VERSION + (int(self._now() * 1000) >> _HOUR_BITS & 0xFFFFFFFF).to_bytes(_HOUR_BYTES, "big")
        known = self._ciphers.get((context.purpose, context.place, head))
        cipher = known or self._keep(context, head, self._cipher(context, head))
        nonce = os.urandom(_NONCE_BYTES)
        return head + nonce + cipher.encrypt(nonce, content, b"\0".join((head, *context)))

    def open(self, context: Context, sealed: bytes) -> bytes | None:
        """The content; None if this is not what was sealed with this key for this very context."""
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
            # Only that of somebody who has the key: others could name places and hours without end.
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
        path: of the key file. It may be missing, or hold no keys: then ``why`` says so, and nothing can be sealed or
            opened. None: one key that only this process has, for as long as it runs.
        kind: what the file is called in messages.
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
        """Read the file again; the caller decides when. Whether the keys are others now.

        A file that cannot be used changes nothing but ``why`` where there were no keys; the log says so once.
        """
        if self._path is None:
            return False
        try:
            secrets = secrets_of(self._path, self._kind)
        except ValueError as error:
            if str(error) != self._reported:
                self._reported = str(error)
                _LOG.error("seal keys cannot be read; those in use stay", error=str(error), keys=len(self.keys))
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
        """One for each key, in the file's order. They tell nothing of it."""
        return tuple(key.fingerprint for key in self.keys)

    def seal(self, context: Context, content: bytes) -> bytes:
        """``content``, sealed with the first key.

        Raises:
            ValueError: there is no key; ``why`` says why.
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
    """Whether it looks like something sealed, with whatever key."""
    return len(content) >= SEAL_BYTES and content.startswith(_VERSION)
