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


def key_prefix(*, phase: str, identity: bytes, version: str) -> bytes:
    """What the keys of all questions to a policy begin with, made when the policy's plan is.

    Args:
        phase: ``mutating`` or ``validating``.
        identity: that of the policy's ``Described``.
        version: of the policy, as its worker said it; any text.
    """
    return b"".join(map(_framed, (_RULE, _bytes(phase), identity, _bytes(version))))


def verdict_key(prefix: bytes, document: bytes) -> bytes:
    """The key under which a verdict may be kept, 32 bytes.

    Args:
        prefix: see ``key_prefix``.
        document: the document's digest (``Document.digest``).
    """
    return hashlib.sha256(prefix + _framed(document)).digest()


def _framed(part: bytes) -> bytes:
    return len(part).to_bytes(_LENGTH) + part


def _bytes(text: str) -> bytes:
    # A lone surrogate, which UTF-8 cannot say, must neither break the review nor be taken for something else.
    return text.encode("utf-8", "surrogatepass")
