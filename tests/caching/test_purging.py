"""After a purge no replica uses a verdict from before it, wherever it stands and whenever it comes."""

import asyncio

import pytest

from gateway.caching.cache_keys import cache_key_of, prefix_of
from gateway.caching.limits import CacheLimits
from gateway.caching.purges import Purges
from gateway.engine.answer_source import Source
from gateway.engine.verdicts import Deny
from gateway.redis.faults import RedisFault
from tests.caching.conftest import PATIENT
from tests.caching.world import ALLOW, START, policy_call, until

NAME = "test/p.test.example.com"
DENY = Deny(message="no")


def entries(redis):
    with redis.client as client:
        return [name for name in client.scan_iter(count=5000) if b":purged:" not in name]


async def test_it_reaches_the_others(gateway, redis, logs):
    """Another replica that has the verdict in its memory calls its worker again, within a poll of the markers."""
    first, second = await gateway(DENY), await gateway(ALLOW)
    await first.answer(policy_call())
    await first.answer(policy_call(name="q"))
    await until(lambda: len(entries(redis)) == 2)
    assert await second.answer(policy_call()) == (DENY, Source.REDIS)
    assert await second.answer(policy_call(name="q")) == (DENY, Source.REDIS)
    assert await first.cache.purge([NAME])
    await until(lambda: second.policy_caller.known(policy_call()) is None)
    assert await second.answer(policy_call()) == (ALLOW, Source.CALLED)
    assert await second.answer(policy_call(name="q")) == (DENY, Source.MEMORY)
    assert second.events.counts["purged"] == 1
    logged = [entry["policies"] for entry in logs if entry["event"] == "a purge by another replica is in force"]
    assert logged == [1], "the replica that purged does not report its own purge"


async def test_entries_are_deleted(gateway, redis):
    """The policy's entries leave Redis, more than one step of a SCAN of them; others' stay."""
    made = await gateway(ALLOW)
    replies = [made.put(policy_call(f"[{number}]"))[0] for number in range(2500)]
    for reply in replies:
        await reply.wait()
    await made.answer(policy_call(name="q"))
    await until(lambda: len(entries(redis)) == 2501)
    await made.cache.purge([NAME])
    await until(lambda: len(entries(redis)) == 1)


async def test_several_at_once(gateway, redis):
    """Purges of one policy at the same time all hear that the others will know, and cost no connection of a lookup."""
    first, second = await gateway(DENY), await gateway(ALLOW)
    assert await first.answer(policy_call()) == (DENY, Source.CALLED)
    await until(lambda: entries(redis))
    assert await asyncio.gather(*(first.cache.purge([NAME]) for _ in range(20))) == [True] * 20
    assert await second.answer(policy_call()) == (ALLOW, Source.CALLED)
    assert not first.events.faults


async def test_a_purge_that_is_reported_late(gateway, redis):
    """It does not set back the moment of one that another replica has made meanwhile."""
    first, second, third = await gateway(DENY), await gateway(DENY), await gateway(ALLOW)
    late = START - 100
    assert await first.cache.purge([NAME])
    (mark,) = {prefix_of(cache_key_of(policy_call()))}
    second.store._unwritten[mark] = late
    await until(lambda: not second.store._unwritten)
    assert await third.answer(policy_call()) == (ALLOW, Source.CALLED)
    assert third.cache._purges.latest(mark) == first.cache._purges.latest(mark) > late


async def test_deleting_delays_no_call(gateway, redis, monkeypatch):
    """A purge returns once its markers are written, before the entries are deleted; closing does not wait for that."""
    made = await gateway(ALLOW)
    reached = asyncio.Event()

    async def hang(*_):
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(made.store._link, "execute_on", hang)
    assert await made.cache.purge([NAME])
    await reached.wait()
    await made.cache.close()


async def test_entries_that_stay_are_not_used(gateway, redis):
    """An entry that was put back, or written by a replica that did not know yet, is not used after a purge."""
    first, second = await gateway(DENY), await gateway(ALLOW)
    await first.answer(policy_call())
    await until(lambda: entries(redis))
    with redis.client as client:
        (name,) = entries(redis)
        content = client.get(name)
        await first.cache.purge([NAME])
        client.set(name, content)
    assert await second.answer(policy_call()) == (ALLOW, Source.CALLED), "the marker is read with the first lookup"
    assert await first.answer(policy_call()) == (DENY, Source.CALLED)


async def test_a_marker_that_cannot_be_read(gateway, redis):
    """Where Redis has an entry, and an error in its marker's place, it may be purged: a miss."""
    first, second = await gateway(DENY), await gateway(ALLOW)
    await first.answer(policy_call())
    await until(lambda: entries(redis))
    with redis.client as client:
        (name,) = entries(redis)
        content = client.get(name)
        await first.cache.purge([NAME])
        await until(lambda: not entries(redis))
        for marker in [each for each in client.scan_iter(count=5000) if b":purged:" in each]:
            client.delete(marker)
            client.rpush(marker, "of another type")
        client.set(name, content)
    assert await second.answer(policy_call()) == (ALLOW, Source.CALLED)
    # Neither does a poll of the markers know.
    second.store._watch(prefix_of(cache_key_of(policy_call())))
    assert await second.store._read_markers(list(second.store._watched)) == set()


async def test_purged_while_redis_is_away(gateway, redis):
    """A purge without Redis is in force here at once, returns False, and is written when Redis is back."""
    first, second = await gateway(DENY), await gateway(ALLOW)
    await first.answer(policy_call())
    await until(lambda: entries(redis))
    redis.pause()
    before, limited = PATIENT.redis_answer_seconds, CacheLimits(redis_answer_seconds=0.1)
    object.__setattr__(PATIENT, "redis_answer_seconds", limited.redis_answer_seconds)
    try:
        assert not await first.cache.purge([NAME])
    finally:
        object.__setattr__(PATIENT, "redis_answer_seconds", before)
    assert first.events.faults[RedisFault.TIMEOUT]
    assert first.policy_caller.known(policy_call()) is None
    redis.resume()
    await until(lambda: not first.store._unwritten)
    await until(lambda: second.store.up)
    assert await second.answer(policy_call()) == (ALLOW, Source.CALLED)


@pytest.mark.parametrize("missing", ["set", "getrange"])
async def test_a_purge_that_redis_refuses(gateway, redis, missing):
    """A purge returns False while replicas may not write markers, or not read them."""
    with redis.client as client:
        rules = ("on", ">p", "~*", "+@all", f"-{missing}")
        client.execute_command("ACL", "SETUSER", missing, "reset", *rules)
        made = await gateway(ALLOW, url=f"redis://{missing}:p@127.0.0.1:{redis.port}")
        assert await made.cache.purge([NAME]) is False
        assert missing.upper() in made.store.refused
        client.execute_command("ACL", "SETUSER", missing, f"+{missing}")
    assert await made.cache.purge([NAME]) is True
    assert not made.store.refused


async def test_a_forged_marker(gateway, redis):
    """A marker that we did not seal purges nothing, and counts."""
    first, second = await gateway(DENY), await gateway(ALLOW)
    await first.answer(policy_call())
    await until(lambda: entries(redis))
    await first.cache.purge(["test/other"])
    with redis.client as client:
        for name in client.scan_iter(count=5000):
            if b":purged:" in name:
                content = client.get(name)
        (entry,) = entries(redis)
        tag = entry.split(b":")[2]
        client.set(b"admission-gateway:v1:purged:" + tag, content)
    assert await second.answer(policy_call()) == (DENY, Source.REDIS)
    assert second.events.counts["seal_failed"] >= 1


def test_a_purge_covers_what_clocks_differ():
    """A verdict that another replica's clock dates a little after the purge may be from before it: it is covered."""
    limits = CacheLimits(clock_skew_seconds=5)
    purges = Purges(limits)
    assert purges.note(b"m", START, START)
    assert not purges.note(b"m", START - 1, START), "an earlier one is no news"
    assert purges.covers(b"m", START + 5)
    assert not purges.covers(b"m", START + 5.1)
    assert not purges.covers(b"n", START - 100)


def test_a_purge_from_the_future():
    """A moment that lies further ahead than clocks differ silences the cache no longer than one that is now."""
    purges = Purges(CacheLimits(clock_skew_seconds=5))
    assert purges.note(b"m", START + 1e9, START)
    assert not purges.covers(b"m", START + 11)
    assert not purges.note(b"m", START + 1e9, START + 100), "it is read each second"
    assert not purges.covers(b"m", START + 11)
    assert purges.note(b"m", START + 2e9, START + 200), "the same clock purges again"
    assert purges.covers(b"m", START + 200)
    assert purges.note(b"m", START + 300, START + 300), "so does another one"


def test_purges_are_forgotten():
    """A purge older than any verdict may be takes no room."""
    limits = CacheLimits(entry_seconds=100)
    purges = Purges(limits)
    for number in range(1000):
        purges.note(number.to_bytes(2), START + number, START + number)
    assert len(purges._times) <= 112
