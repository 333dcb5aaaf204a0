"""The keys in Redis (called names here) of entries and purge markers.

    entry       admission-gateway:v1:{tag}:{digest of the cache key}    tag: digest of the policy's mark, 128 bits
    marker      admission-gateway:v1:purged:{tag}

Both digests are made with the seal key, so without it a name discloses nothing but the number of a policy's entries.
The value under a name is sealed for that name.
"""

import base64
from functools import lru_cache
from typing import Final

from gateway.caching.cache_keys import prefix_of
from gateway.redis.sealing import Context, SealKey

PREFIX: Final = "admission-gateway:v1:"
"""The start of each of the gateway's names; ``v1`` is the version of names and contents together.

During an update two versions of the gateway use one Redis. With another ``v``, they do not share entries, and each must
write purge markers under both names: a purge is for all replicas."""

_NAMES: Final = b"cache names"
_CONTENTS: Final = b"cache contents"
_TAG_BYTES: Final = 16


def entry_name(key: SealKey, cache_key: bytes) -> str:
    """The name of the entry of a cache key."""
    return f"{PREFIX}{_tag(key, prefix_of(cache_key))}:{_text(key.digest(_NAMES, b'entry' + cache_key))}"


def marker_name(key: SealKey, mark: bytes) -> str:
    """The name of the marker with the time of a policy's last purge."""
    return f"{PREFIX}purged:{_tag(key, mark)}"


def entries_pattern(key: SealKey, mark: bytes) -> str:
    """The glob pattern of all entries of a policy; base64url has no character that is special in it."""
    return f"{PREFIX}{_tag(key, mark)}:*"


def named(name: str) -> Context:
    """The context for which the value under ``name`` is sealed."""
    return Context(_CONTENTS, name.encode())


@lru_cache(maxsize=10_000)
def _tag(key: SealKey, mark: bytes) -> str:
    """The part of a name that stands for a policy."""
    return _text(key.digest(_NAMES, b"policy\0" + mark)[:_TAG_BYTES])


def _text(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
