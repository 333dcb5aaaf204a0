"""What verdicts are called in Redis.

    entry       admission-gateway:v1:{tag}:{digest of the question}     tag: digest of the policy's mark, 128 bits
    marker      admission-gateway:v1:purged:{tag}

Both digests are made with the seal key, so a name tells nothing without it: a policy's entries can be counted, and that
is all. What stands under a name is sealed for that name.
"""

import base64
from functools import lru_cache
from typing import Final

from gateway.caching.cache_keys import prefix_of
from gateway.redis.sealing import Context, SealKey

PREFIX: Final = "admission-gateway:v1:"
"""Every name of ours in Redis starts with it; ``v1`` is the form of names and contents together."""

_NAMES: Final = b"cache names"
_CONTENTS: Final = b"cache contents"
_TAG_BYTES: Final = 16


def entry_name(key: SealKey, cache_key: bytes) -> str:
    """Where a question's entry stands."""
    return f"{PREFIX}{_tag(key, prefix_of(cache_key))}:{_text(key.digest(_NAMES, b'entry' + cache_key))}"


def marker_name(key: SealKey, mark: bytes) -> str:
    """Where it stands when a policy was purged."""
    return f"{PREFIX}purged:{_tag(key, mark)}"


def entries_pattern(key: SealKey, mark: bytes) -> str:
    """The glob pattern of all entries of a policy; base64url has no character that means something in it."""
    return f"{PREFIX}{_tag(key, mark)}:*"


def named(name: str) -> Context:
    """What stands under ``name`` is sealed for this."""
    return Context(_CONTENTS, name.encode())


@lru_cache(maxsize=10_000)
def _tag(key: SealKey, mark: bytes) -> str:
    """How a policy is called in Redis."""
    return _text(key.digest(_NAMES, b"policy\0" + mark)[:_TAG_BYTES])


def _text(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
