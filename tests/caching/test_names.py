"""What verdicts are called in Redis."""

from gateway.caching.names import PREFIX, entries_pattern, entry_name, marker_name
from gateway.redis.sealing import SealKey

KEY = SealKey(b"k" * 32)
CACHE_KEY = b"m" * 16 + b"q" * 32


def test_names_reveal_nothing():
    """A name has neither the policy's mark nor the cache key, and differs for each seal key, cache key and policy."""
    names = {
        entry_name(key, cache_key)
        for key in (KEY, SealKey(b"o" * 32))
        for cache_key in (CACHE_KEY, b"n" * 16 + b"q" * 32, b"m" * 16 + b"r" * 32)
    }
    assert len(names) == 6
    assert all(name.startswith(PREFIX) and len(name) < 100 for name in names)
    entries = entries_pattern(KEY, CACHE_KEY[:16]).removesuffix("*")
    assert entry_name(KEY, CACHE_KEY).startswith(entries)
    assert not marker_name(KEY, CACHE_KEY[:16]).startswith(entries)
