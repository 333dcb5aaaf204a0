"""A question, as the cache knows it: 48 bytes, of which the first 16 say whose policy it is.

The other 32 are the verdict's key: phase, the configuration's part, the worker's version, the document. The policy's
name is not in that key (two policies that are the same question may be called differently), but it must be in ours, so
that the verdicts of one policy can be found and purged.
"""

import hashlib
from functools import lru_cache
from typing import Final

from gateway.documents.key import verdict_key
from gateway.engine.policy_call import PolicyCall
from gateway.policies.model import Phase

POLICY_BYTES: Final = 16
"""128 bits of SHA-256: two names that meet by chance are purged together, and nothing worse."""


@lru_cache(maxsize=10_000)
def policy_prefix(phase: Phase, qualified_name: str) -> bytes:
    """The 16 bytes that stand for a policy."""
    return hashlib.sha256(f"{phase.value}\0{qualified_name}".encode()).digest()[:POLICY_BYTES]


def cache_key_of(call: PolicyCall) -> bytes:
    """The question that a call puts."""
    policy = call.policy
    return policy_prefix(policy.phase, policy.qualified_name) + verdict_key(call.key_prefix, call.document.digest)


def prefix_of(cache_key: bytes) -> bytes:
    """The policy that a question is about."""
    return cache_key[:POLICY_BYTES]
