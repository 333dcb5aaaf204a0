"""The cache as a gateway has it: made of settings, watched over, purged, and let go of at any time."""

import asyncio
import base64
import gc
import os
from types import SimpleNamespace

import pytest

from gateway.caching.limits import CacheLimits
from gateway.caching.redis import RedisStore
from gateway.policies.model import Cache, Phase
from gateway.serving.verdict_cache import CacheError, ServedCache
from gateway.telemetry.events import NoEvents
from tests.integration.running import until
from tests.world import policy

NO_CONSUMER = "redis://127.0.0.1:1"


def key():
    """A line of a key file."""
    return base64.b64encode(os.urandom(32)).decode() + "\n"


def served(*policies, redis="", seal_key_file=None):
    """A cache of a gateway with these policies."""
    return ServedCache(
        NoEvents(),
        redis=redis,
        seal_key_file=seal_key_file,
        limits=CacheLimits(),
        configuration=lambda: SimpleNamespace(policies_in_force=lambda: policies),
    )


@pytest.mark.parametrize(
    ("url", "content", "words"),
    [
        ("http://u:hunter2@h", None, "the Redis URL"),
        ("redis://u:hunter2@h:x", None, "the Redis URL"),
        (NO_CONSUMER, b"hunter2", "line 1"),
        (NO_CONSUMER, b"", "it contains no key"),
        (NO_CONSUMER, None, "No such file"),
    ],
)
def test_settings_that_cannot_be_used_are_reported(tmp_path, url, content, words):
    """One line, without a word of a password or key."""
    path = tmp_path / "keys"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CacheError, match=words) as raised:
        served(redis=url, seal_key_file=path)
    assert "hunter2" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_only_policies_with_a_cache_can_be_purged():
    """The others have nothing to forget."""
    one, two = policy("one", cache=Cache(ttl=1)), policy("two")
    three = policy("three", phase=Phase.VALIDATING, cache=Cache(ttl=1))
    assert served(one, two, three).policies() == [one, three]


async def test_without_redis_there_is_nothing_to_note():
    """The memory is always there."""
    cache = served()
    await cache.start()
    assert cache.note is None
    assert await cache.purge(["a/b"]) is None, "there is no Redis to report to"
    await cache.watch(0.0)
    await cache.close()


@pytest.mark.parametrize("turns", [0, 1, 2, 5, 20])
async def test_it_can_be_closed_at_any_time(logs, turns, request):
    """While it connects to an absent server, too: no task is left behind, and no traceback."""
    # What earlier tests have left for the collector is none of this one's.
    gc.freeze()
    request.addfinalizer(gc.unfreeze)
    failures = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    cache = served(redis=NO_CONSUMER)
    await cache.start()
    for _ in range(turns):
        await asyncio.sleep(0)
    assert "Redis cannot be used" in cache.note
    await cache.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    gc.collect()
    assert failures == []
    assert not [entry for entry in logs if "exc_info" in entry]


async def test_what_redis_refuses_is_noted(monkeypatch):
    """Each command and why, as long as Redis refuses it."""
    cache = served(redis=NO_CONSUMER)
    refused = {"SET": "NoPermissionError: its ACL", "GETRANGE": "it is full"}
    monkeypatch.setattr(RedisStore, "up", True)
    monkeypatch.setattr(RedisStore, "refused", refused)
    assert "refuses GETRANGE (it is full), SET (NoPermissionError: its ACL);" in cache.note
    refused.clear()
    assert cache.note is None
    await cache.close()


async def test_one_that_was_never_started_can_be_closed():
    """As when the address to listen on is in use."""
    await served(redis=NO_CONSUMER).close()


async def test_keys_are_read_again_when_their_file_changes(tmp_path, logs):
    """By another file in its place, as a mounted Secret changes; one without a key changes nothing, and is reported."""
    path, other = tmp_path / "keys", tmp_path / "other"
    path.write_text(key())
    cache = served(redis=NO_CONSUMER, seal_key_file=path)
    watching = asyncio.create_task(cache.watch(0.001))

    def reported():
        return sum(entry["log_level"] == "error" for entry in logs)

    other.write_text(key() + path.read_text())
    other.rename(path)
    await until(lambda: len(cache._keys.keys) == 2)
    other.write_text("nonsense")
    other.rename(path)
    await until(lambda: reported() == 1)
    path.unlink()
    await until(lambda: reported() == 2)
    assert len(cache._keys.keys) == 2
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await cache.close()
