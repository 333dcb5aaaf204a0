"""The key of a question: two questions with the same key have the same verdict.

    key = SHA-256 over (phase, identity, version, document)

``identity`` is a content hash of what can change a verdict in the configuration, ``version`` the worker's, of this
policy; ``document`` is the digest of exactly what is sent. Each part is preceded by its length in bytes (eight of them,
the highest first), so that no two questions give the same text: without, version "1" before a document that begins with
"2" would be version "12". The first part names this very rule; should the rule ever change, no key of the old one can
be met.
"""

import hashlib
from typing import Final

_RULE: Final = b"admission-gateway.dev/verdict/1"
_LENGTH: Final = 8
"""Bytes of a length: more than memory has."""


def verdict_key(*, phase: str, identity: bytes, version: str, document: bytes) -> bytes:
    """The key under which a verdict may be kept, 32 bytes.

    Args:
        phase: ``mutating`` or ``validating``.
        identity: that of the policy's ``Described``.
        version: of the policy, as its worker said it; any text.
        document: the document's digest (``Document.digest``).
    """
    parts = (_RULE, _bytes(phase), identity, _bytes(version), document)
    return hashlib.sha256(b"".join([len(part).to_bytes(_LENGTH) + part for part in parts])).digest()


def _bytes(text: str) -> bytes:
    # A lone surrogate, which UTF-8 cannot say, must neither break the review nor be taken for something else.
    return text.encode("utf-8", "surrogatepass")
