"""A Redis without sockets, which the test makes slow, absent, full of lies, or read-only.

It stands in the place of the link (``gateway.caching.link``): the store above it is the gateway's own, so sealing,
lookups, writes and purges are real. It has its own clock for expirations, which never jumps.
"""

import asyncio
import fnmatch
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

from redis.exceptions import ReadOnlyError

from gateway.caching import redis
from gateway.caching.limits import CacheLimits
from gateway.caching.link import LinkError
from gateway.caching.redis import RedisStore
from gateway.redis.addresses import redis_address
from gateway.redis.sealing import SealKey, SealKeys
from gateway.telemetry.events import Events

PRESENT, LATE, AWAY, LYING, READ_ONLY = "present", "late", "away", "lying", "read-only"
MODES = (PRESENT, LATE, AWAY, LYING, READ_ONLY)
SECONDS = {PRESENT: 0.001, LATE: 0.5}
"""Until it answers: a lookup waits for 20 ms."""

SECRET = bytes(range(32))


class ScriptedRedis:
    """A CacheLink whose server is a dict. ``mode`` is how it behaves; ``said`` counts its lies."""

    refused: dict[str, str] = {}  # noqa: RUF012 - always empty

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._values: dict[str, tuple[bytes, float]] = {}
        self._former: dict[str, bytes] = {}
        self._changed: Callable[[bool], object] = lambda _: None
        self.mode = PRESENT
        self.said = 0

    def store(self, limits: CacheLimits, events: Events, wall: Callable[[], float]) -> RedisStore:
        """The gateway's store on this link."""
        seals = SealKeys(None)
        seals.keys = (SealKey(SECRET, wall),)
        with patch.object(redis, "CacheLink", self._linked):
            return RedisStore(redis_address("redis://192.0.2.9:6379"), seals, limits, events, wall)

    def _linked(self, address: object, limits: object, events: object, changed: Callable[[bool], object]) -> Any:
        del address, limits, events
        self._changed = changed
        return self

    # ------------------------------------------------------------------------------------- what the test does

    def become(self, mode: str) -> None:
        """From now on it behaves like this."""
        was_up, self.mode = self.up, mode
        if self.up != was_up:
            self._changed(self.up)

    # ------------------------------------------------------------------------------------- CacheLink

    @property
    def up(self) -> bool:
        return self.mode != AWAY

    def start(self) -> None:
        self._changed(True)

    async def wait(self, seconds: float) -> bool:
        del seconds
        return self.up

    async def close(self) -> None:
        pass

    def in_time(self) -> None:
        pass

    late = in_time

    def masters(self) -> list[Any]:
        return [self] if self.up else []

    async def execute(self, commands: Sequence[Any]) -> list[Any]:
        await asyncio.sleep(SECONDS.get(self.mode, 0.001))
        if not self.up:
            raise LinkError
        return [self._answer(*command) for command in commands]

    async def execute_on(self, master: Any, *command: Any) -> Any:
        del master
        return (await self.execute([command]))[0]

    # ------------------------------------------------------------------------------------- its commands

    def _answer(self, name: str, *arguments: Any) -> Any:
        if self.mode == READ_ONLY and name in {"SET", "UNLINK"}:
            return ReadOnlyError("READONLY You can't write against a read only replica.")
        if name == "SET":
            key, value, _, milliseconds = arguments
            if key in self._values:
                self._former[key] = self._values[key][0]
            self._values[key] = value, self._now() + milliseconds / 1000
            return True
        if name == "UNLINK":
            return int(self._values.pop(arguments[0].decode(), None) is not None)
        if name == "SCAN":
            pattern = arguments[2]
            return [0, [key.encode() for key in self._values if fnmatch.fnmatchcase(key, pattern)]]
        assert name == "GETRANGE", name
        return self._lie(arguments[0]) if self.mode == LYING else self._value(arguments[0])

    def _value(self, key: str) -> bytes:
        value, expires = self._values.get(key, (b"", 0.0))
        return value if expires > self._now() else b""

    def _lie(self, key: str) -> Any:
        """What another key holds, what this one held before, a part of it, or nothing that was ever stored."""
        self.said += 1
        own = self._value(key)
        others = [value for name, (value, _) in self._values.items() if name != key] or [b""]
        lies = [others[self.said % len(others)], self._former.get(key, own), own[:-1], b"\x01" * 60, None, 7, [own]]
        return lies[self.said % len(lies)]
