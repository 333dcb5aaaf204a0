"""Verdicts kept between reviews: memory, Redis, single flight, sealed entries.

``CachingAsker`` stands in front of the workers of one configuration; ``VerdictCache`` outlives configurations. (The
memo of one review is not here: it is the heart's own, in ``gateway.deciding``.)
"""

from gateway.caching.asker import CachingAsker
from gateway.caching.cache import VerdictCache
from gateway.caching.events import CacheEvents, LookupResult, NoEvents
from gateway.caching.limits import CacheLimits
from gateway.caching.redis import RedisStore
from gateway.caching.sealing import SealKeys
from gateway.caching.waiters import CachedWorkers
from gateway.redis import RedisAddress, RedisFault, redis_address

__all__ = [
    "CacheEvents",
    "CacheLimits",
    "CachedWorkers",
    "CachingAsker",
    "LookupResult",
    "NoEvents",
    "RedisAddress",
    "RedisFault",
    "RedisStore",
    "SealKeys",
    "VerdictCache",
    "redis_address",
]
