"""A gateway's verdict cache: created from the settings, watched, purged.

There is one for each process. It outlives configurations: everything that can change a verdict is part of its key.

Without Redis, the cache is in this process's memory. With Redis, all replicas with the same seal keys share verdicts.
Redis may be unavailable, at the start or later, or refuse commands: then there are more calls to workers, and nothing
else changes; ``/readyz`` has a note of it.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Optional

import structlog

from gateway.caching.cache import VerdictCache
from gateway.caching.caller import CachingCaller
from gateway.caching.limits import CacheLimits
from gateway.engine.policy_caller import PolicyCaller
from gateway.extras import NEEDS_REDIS_EXTRA, has_redis_extra
from gateway.policies.model import Policy
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.sources.watching import PollTimer
from gateway.telemetry.events import Events
from gateway.transports.workers import Workers

if TYPE_CHECKING:
    from gateway.caching.redis import RedisStore
    from gateway.redis.sealing import SealKeys

_LOG: Final = structlog.get_logger(__name__)

_Signature = tuple[int, int, int] | None


class CacheError(Exception):
    """The settings of the cache cannot be used; the message says why, and never contains a password or key."""


class ServedCache:
    """The cache of one gateway.

    Args:
        events: counts what the cache does.
        redis: the URL of Redis; empty: memory only.
        seal_key_file: the keys that seal entries in Redis; None: a key of this process.
        limits: of the cache.
        configuration: returns the configuration in force.

    Raises:
        CacheError: the URL is invalid, the file holds no keys, or the library for Redis is not installed.
    """

    def __init__(
        self,
        events: Events,
        *,
        redis: str,
        seal_key_file: Path | None,
        limits: CacheLimits,
        configuration: Callable[[], LoadedConfiguration],
    ) -> None:
        self._configuration = configuration
        self._file = seal_key_file
        self._keys: SealKeys | None = None
        self._signature = _signature(seal_key_file)
        store = self._store(redis, limits, events) if redis else None
        self._cache = VerdictCache(limits, events, store)
        self._poll_timer = PollTimer()

    def _store(self, redis: str, limits: CacheLimits, events: Events) -> "RedisStore":
        """The store in Redis. Imported here: without Redis, a gateway needs neither the library nor its import time."""
        if not has_redis_extra():
            raise CacheError(f"--redis {NEEDS_REDIS_EXTRA}")
        from gateway.caching.redis import RedisStore  # noqa: PLC0415
        from gateway.redis.addresses import redis_address  # noqa: PLC0415
        from gateway.redis.sealing import SealKeys  # noqa: PLC0415

        try:
            address = redis_address(redis)
        except ValueError as error:
            raise CacheError(str(error)) from None
        self._keys = SealKeys(self._file)
        if self._keys.why:
            raise CacheError(self._keys.why)
        if self._file is None:
            _LOG.warning(
                "no --seal-key-file: entries in Redis are sealed with a key of this process, so no other replica and "
                "no later start can use them; give all replicas the same file"
            )
        return RedisStore(address, self._keys, limits, events)

    def policy_caller(self, workers: Workers) -> PolicyCaller:
        """Calls the workers of a configuration when the cache has no verdict."""
        return CachingCaller(workers, self._cache)

    @property
    def seals(self) -> Optional["SealKeys"]:
        """The keys that seal what replicas share in Redis; None without Redis."""
        return self._keys

    def policies(self) -> list[Policy]:
        """The policies that have a cache."""
        return [policy for policy in self._configuration().policies_in_force() if policy.cache is not None]

    async def purge(self, policies: Sequence[str]) -> bool | None:
        """Purge the verdicts of these policies (qualified names): no verdict of a call made before now is reused.

        Returns:
            True: the other replicas purge within a moment; False: they do not until Redis works again (``note``);
            None: there is no Redis, so no replicas share verdicts.
        """
        return await self._cache.purge(policies)

    @property
    def note(self) -> str | None:
        """A note for ``/readyz``, where a problem of the cache fails no check; None if there is no problem."""
        store = self._cache.redis
        if store is None:
            return None
        if not store.up:
            return "Redis cannot be used, and the log says why; until it can, verdicts are kept in this process only"
        if not store.refused:
            return None
        refused = ", ".join(f"{command} ({why})" for command, why in sorted(store.refused.items()))
        return f"Redis answers, but refuses {refused}; until that is fixed in Redis, not all verdicts are shared"

    async def start(self) -> None:
        """Start. Redis need not be available."""
        await self._cache.start()

    async def close(self) -> None:
        """Close the connections to Redis."""
        await self._cache.close()

    # ----------------------------------------------------------------------------------------------- seal keys

    def look(self) -> None:
        """Read the seal keys again, now."""
        self._poll_timer.now()

    async def watch(self, interval: float) -> None:
        """Read the seal keys again whenever their file has changed, until cancelled.

        Args:
            interval: seconds between polls; 0: only after ``look``.
        """
        if self._file is None or self._keys is None:
            return
        while True:
            requested = await self._poll_timer.pause(interval)
            try:
                signature = await asyncio.to_thread(_signature, self._file)
                if requested or signature != self._signature:
                    self._signature = signature
                    await asyncio.to_thread(self._keys.refresh)
            except Exception:  # noqa: BLE001 - logged; the keys stay, and the next poll may succeed
                _LOG.exception("reading the seal keys again failed inside the gateway")


def _signature(path: Path | None) -> _Signature:
    """Inode, modification time and size: one of them changes when a file, such as a mounted Secret, is replaced."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)
