"""The cache key of a call: 48 bytes. The first 16 identify the policy.

The other 32 are the verdict key: phase, the configuration's part, the worker's version, the document. The verdict key
does not contain the policy's name, because equal policies may have different names. The cache key does, so that the
verdicts of one policy can be found and purged.
"""

import hashlib
from functools import lru_cache
from typing import Final

from gateway.documents.verdict_key import verdict_key
from gateway.engine.policy_call import PolicyCall
from gateway.policies.model import Phase

POLICY_BYTES: Final = 16
"""128 bits of SHA-256. If two names ever have the same prefix, they are purged together, and nothing else happens."""


@lru_cache(maxsize=10_000)
def policy_prefix(phase: Phase, qualified_name: str) -> bytes:
    """The 16 bytes that identify a policy."""
    return hashlib.sha256(f"{phase.value}\0{qualified_name}".encode()).digest()[:POLICY_BYTES]


def cache_key_of(call: PolicyCall) -> bytes:
    """The cache key of a call."""
    policy = call.policy
    return policy_prefix(policy.phase, policy.qualified_name) + verdict_key(call.key_prefix, call.document.digest)


def prefix_of(cache_key: bytes) -> bytes:
    """The policy's part of a cache key."""
    return cache_key[:POLICY_BYTES]
