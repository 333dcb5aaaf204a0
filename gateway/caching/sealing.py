"""Sealed entries: whoever can read Redis learns nothing, whoever can write to it forges nothing.

Keys come from a key file (``gateway.redis.key_files``, which says how one is replaced). From each key two are derived
(HKDF, RFC 5869), one for names and one for contents; and a fingerprint of 32 bits, by which the logs of two replicas
say whether they have the same key. It tells nothing of the key.

    name       admission-gateway:v1:{tag}:{HMAC-SHA256 of the question}     tag: HMAC of the policy's mark, 128 bits
    marker     admission-gateway:v1:purged:{tag}
    content    version, nonce, AES-256-GCM(key of the name, nonce, plain text, the name and version authenticated too)

A name tells nothing without the key: a policy's entries can be counted, and that is all. The name is authenticated, so
an entry that is moved to another question does not open there. What was authentic and is put back under its own name is
a replay; it carries its own moment, and the reader judges its age.

The key of a content is an HMAC of its name, so each question has its own: "the total number of invocations of the
authenticated encryption function shall not exceed 2^32" for random nonces (NIST SP 800-38D, section 8.3) would be over
in seven weeks of 1,000 writes a second, were there only one.
"""

import base64
import hmac
import os
from functools import lru_cache
from pathlib import Path
from typing import Final

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gateway.caching.questions import mark_of
from gateway.redis.key_files import KEY_BYTES, secrets_of

_LOG: Final = structlog.get_logger(__name__)

PREFIX: Final = "admission-gateway:v1:"
"""Every name of ours in Redis starts with it; ``v1`` is the form of names and contents together."""

_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_FINGERPRINT_BYTES: Final = 4
_VERSION: Final = b"\x01"

SEAL_BYTES: Final = len(_VERSION) + _NONCE_BYTES + _TAG_BYTES
"""By how much a sealed content is longer."""


class SealKey:
    """One key: makes names, seals and opens."""

    __slots__ = ("_contents", "_names", "fingerprint", "tag")

    def __init__(self, secret: bytes) -> None:
        self._names = _derived(secret, b"admission-gateway v1 names")
        self._contents = _derived(secret, b"admission-gateway v1 contents")
        self.fingerprint = _derived(secret, b"admission-gateway v1 fingerprint")[:_FINGERPRINT_BYTES].hex()
        self.tag = lru_cache(maxsize=10_000)(self._tag)

    def _tag(self, mark: bytes) -> str:
        """How a policy is called in Redis."""
        return _text(hmac.digest(self._names, b"policy\0" + mark, "sha256")[:16])

    def name(self, question: bytes) -> str:
        """Where a question's entry stands in Redis."""
        return f"{PREFIX}{self.tag(mark_of(question))}:{_text(hmac.digest(self._names, b'entry' + question, 'sha256'))}"

    def marker(self, mark: bytes) -> str:
        """Where it stands when a policy was purged."""
        return f"{PREFIX}purged:{self.tag(mark)}"

    def entries(self, mark: bytes) -> str:
        """The glob pattern of all entries of a policy; base64url has no character that means something in it."""
        return f"{PREFIX}{self.tag(mark)}:*"

    def seal(self, name: str, content: bytes) -> bytes:
        """What is written under ``name``."""
        nonce = os.urandom(_NONCE_BYTES)
        where = name.encode() + _VERSION
        return _VERSION + nonce + self._cipher(name).encrypt(nonce, content, where)

    def open(self, name: str, sealed: bytes) -> bytes | None:
        """The content; None if this is not what we sealed under this very name."""
        if len(sealed) < SEAL_BYTES or not sealed.startswith(_VERSION):
            return None
        start = len(_VERSION)
        nonce, rest = sealed[start : start + _NONCE_BYTES], sealed[start + _NONCE_BYTES :]
        try:
            return self._cipher(name).decrypt(nonce, rest, name.encode() + _VERSION)
        except InvalidTag:
            return None

    def _cipher(self, name: str) -> AESGCM:
        return AESGCM(hmac.digest(self._contents, name.encode(), "sha256"))


class SealKeys:
    """The keys in use, from a file that may change.

    ``keys`` is never empty; the first one seals. ``refresh`` reads the file again; its caller decides when.
    """

    __slots__ = ("_broken", "_path", "_secrets", "keys")

    def __init__(self, secrets: tuple[bytes, ...], path: Path | None = None) -> None:
        self._path = path
        self._secrets = secrets
        self._broken = False
        self.keys = tuple(SealKey(secret) for secret in secrets)

    @classmethod
    def from_file(cls, path: Path) -> "SealKeys":
        """The keys of a file.

        Raises:
            ValueError: it cannot be read, or a line is no key; the message names file and line, never what stands
                there.
        """
        made = cls(secrets_of(path), path)
        made._tell()
        return made

    @classmethod
    def random(cls) -> "SealKeys":
        """A key that only this process has, for as long as it runs."""
        _LOG.warning(
            "no --seal-key-file: entries in Redis are sealed with a key of this process, so no other replica and no "
            "later start can use them; give all replicas the same file"
        )
        return cls((os.urandom(KEY_BYTES),))

    def refresh(self) -> bool:
        """Read the file again, if there is one. Whether the keys are others now.

        A file that cannot be used changes nothing, and the log says so.
        """
        if self._path is None:
            return False
        try:
            secrets = secrets_of(self._path)
        except ValueError as error:
            self._broken = True
            _LOG.error("the seal keys stay as they were", error=str(error), keys=len(self.keys))
            return False
        changed, recovered = secrets != self._secrets, self._broken
        self._broken = False
        if not changed:
            if recovered:
                self._tell()
            return False
        known = dict(zip(self._secrets, self.keys, strict=True))
        self.keys = tuple(known.get(secret) or SealKey(secret) for secret in secrets)
        self._secrets = secrets
        self._tell()
        return True

    def _tell(self) -> None:
        fingerprints = [key.fingerprint for key in self.keys]
        _LOG.info("seal keys read", file=str(self._path), keys=len(self.keys), fingerprints=fingerprints)


def _derived(secret: bytes, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=purpose).derive(secret)


def _text(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
