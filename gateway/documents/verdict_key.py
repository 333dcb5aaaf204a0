"""The cache key of a call: two calls with the same key have the same verdict.

    key = SHA-256 over (phase, identity, version, document)

``identity`` is a hash of what can change a verdict in the configuration, ``version`` the policy's version at the
worker, ``document`` the digest of the document. Each part is preceded by its length (eight bytes, big-endian), so that
different parts never give the same text: otherwise version "1" before a document that begins with "2" would read as
version "12". The first part names this rule; if the rule changes, no old key can match.
"""

import hashlib
from typing import Final

_RULE: Final = b"admission-gateway.dev/verdict/1"
_LENGTH: Final = 8
"""Bytes of a length: enough for any text in memory."""


def key_prefix(*, phase: str, identity: bytes, version: str) -> bytes:
    """The prefix of the keys of all calls of a policy, computed once per plan.

    Args:
        phase: ``mutating`` or ``validating``.
        identity: that of the policy's ``Described``.
        version: of the policy, in its worker's description; any text.
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
    # UTF-8 cannot encode a lone surrogate; it must neither break the review nor collide with another text.
    return text.encode("utf-8", "surrogatepass")
