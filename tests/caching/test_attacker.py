"""An attacker who can read and write everything in Redis learns nothing and forges nothing.

The attacker of these tests has all bytes that are or were in Redis, and may delete, copy, move, alter, replay and
invent values. Each verdict that is used nevertheless is a worker's, for the same call, within its lifetime; and no
secret is in Redis in plain text.
"""

import os
import random

import pytest

from gateway.caching.cache_keys import cache_key_of
from gateway.caching.entries import Entry, packed
from gateway.caching.names import entry_name, named
from gateway.engine.answer_source import Source
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny
from gateway.policies.model import Cache, Phase
from gateway.redis.faults import RedisFault
from gateway.redis.sealing import SealKey
from tests.caching.world import policy_call, until

SECRET = "hunter2-s3cr3t-0123456789"
DENIED = Deny(message=f"password {SECRET} is weak", warnings=(SECRET,), details={"name": SECRET})
PATCHED = Allow(change=Change(kind=ChangeKind.JSON_PATCH, content=SECRET.encode()), audit_annotations={SECRET: SECRET})


def verdict_for(call):
    """Denies documents that say so."""
    return DENIED if b"deny" in call.document.content else PATCHED


def document(number, what):
    return f'{{"n":{number},"what":"{what}","password":"{SECRET}"}}'


@pytest.fixture
async def filled(gateway, redis):
    """A gateway that has written twenty verdicts, and another one that has called nothing yet."""
    first, second = await gateway(verdict_for), await gateway()
    for number in range(10):
        for what in ("deny", "allow"):
            await first.answer(policy_call(document(number, what), name=f"{SECRET.lower()}"))
    with redis.client as client:
        await until(lambda: len(client.keys()) == 20)
    return first, second


def dump(redis):
    with redis.client as client:
        return {name: client.get(name) for name in client.scan_iter()}


def call_for(number, what, **fields):
    return policy_call(document(number, what), name=SECRET.lower(), **fields)


async def test_nothing_can_be_read(filled, redis):
    """No name and no value has a planted secret, a policy's name, a document, or a worker's message."""
    everything = b"\n".join(name + b"\n" + value for name, value in dump(redis).items())
    for word in (SECRET, "hunter2", "test.example.com", "weak", "deny", "allow", "password", "json_patch", "test/"):
        assert word.encode() not in everything


async def test_equal_verdicts_look_different(filled, redis):
    """Equal verdicts of two calls cannot be recognized: all values differ, and disclose only their length."""
    values = list(dump(redis).values())
    assert len({value[:13] for value in values}) == len(values)
    assert len({value[13:] for value in values}) == len(values)


async def test_nothing_can_be_moved(filled, redis):
    """However the entries are exchanged, no call gets another one's verdict; a deny never becomes an allow."""
    _, second = filled
    stolen = dump(redis)
    names, values = list(stolen), list(stolen.values())
    shuffle = random.Random(1)
    with redis.client as client:
        shuffle.shuffle(values)
        for name, value in zip(names, values, strict=True):
            client.set(name, value)
    moved = sum(stolen[name] != value for name, value in zip(names, values, strict=True))
    second.workers.verdict = verdict_for
    for number in range(10):
        for what in ("deny", "allow"):
            answer, _ = await second.answer(call_for(number, what))
            assert answer == verdict_for(call_for(number, what))
    assert second.events.counts["seal_failed"] == moved > 0


async def test_nothing_can_be_altered(filled, redis):
    """A flipped bit anywhere, a cut end, bytes added or made up: a miss, and it counts."""
    _, second = filled
    second.workers.verdict = Deny(message="called")
    chance = random.Random(2)
    with redis.client as client:
        for name, value in dump(redis).items():
            altered = bytearray(value)
            altered[chance.randrange(len(altered))] ^= 1 << chance.randrange(8)
            client.set(name, chance.choice([bytes(altered), value[:-1], value + b"\0", os.urandom(len(value))]))
    for number in range(10):
        for what in ("deny", "allow"):
            assert await second.answer(call_for(number, what)) == (Deny(message="called"), Source.CALLED)
    assert second.events.counts["seal_failed"] == 20


async def test_a_replay_is_as_old_as_it_is(filled, redis):
    """An old entry that is put back, without an end, is used within its time and not an instant longer."""
    first, second = filled
    stolen = dump(redis)
    second.workers.verdict = Deny(message="called")
    with redis.client as client:
        client.flushall()
        client.mset(stolen)
    second.clock.now += 59
    assert await second.answer(call_for(1, "allow")) == (PATCHED, Source.REDIS)
    second.clock.now += 2
    with redis.client as client:
        client.mset(stolen)
    assert await second.answer(call_for(2, "allow")) == (Deny(message="called"), Source.CALLED)
    assert first.clock.now < second.clock.now


async def test_a_replay_after_a_purge(filled, redis):
    """Entries from before a purge that are put back are not used, by who purged and by who knows of it."""
    first, second = filled
    second.workers.verdict = Deny(message="called")
    await second.answer(call_for(99, "x"))
    stolen = dump(redis)
    await first.cache.purge([call_for(0, "x").policy.qualified_name])
    await until(lambda: second.events.counts["purged"])
    with redis.client as client:
        client.flushall()
        client.mset(stolen)
    for made in (first, second):
        made.workers.verdict = Deny(message="called")
        assert await made.answer(call_for(1, "allow")) == (Deny(message="called"), Source.CALLED)


async def test_an_older_verdict_of_the_same_call(filled, redis):
    """A replaced verdict that is written back is authentic for this call: it keeps its own age, and expires with it."""
    first, second = filled
    stolen = dump(redis)
    short = Cache(ttl=10)
    first.clock.now += 11
    first.workers.verdict = Deny(message="new")
    assert (await first.answer(call_for(1, "allow", cache=short)))[1] is Source.CALLED
    with redis.client as client:
        await until(lambda: dump(redis) != stolen)
        client.mset(stolen)
    second.clock.now += 11
    second.workers.verdict = Deny(message="called")
    assert await second.answer(call_for(1, "allow", cache=short)) == (Deny(message="called"), Source.CALLED)


async def test_another_call_finds_nothing(filled, redis):
    """Another version, configuration, phase, policy or document has another name: no entry can be offered to it that
    opens.
    """
    _, second = filled
    second.workers.verdict = Deny(message="called")
    stolen = list(dump(redis).values())
    others = [
        call_for(1, "allow", version="2"),
        call_for(1, "allow", identity=b"other"),
        call_for(1, "allow", phase=Phase.MUTATING),
        policy_call(document(1, "allow"), name="another"),
        call_for(77, "allow"),
    ]
    for other in others:
        name = entry_name(second.store._seals.keys[0], cache_key_of(other))
        with redis.client as client:
            for value in stolen[:3]:
                client.set(name, value)
        assert await second.answer(other) == (Deny(message="called"), Source.CALLED)
    assert second.events.counts["seal_failed"] == len(others)


async def test_sealed_with_a_stolen_form(filled, redis):
    """Entries that are well formed but sealed with another key do not open."""
    _, second = filled
    second.workers.verdict = Deny(message="called")
    forged = packed(Entry(called_at=second.clock.now, verdict=Allow()))
    with redis.client as client:
        for name in client.scan_iter():
            client.set(name, SealKey(os.urandom(32)).seal(named(name.decode()), forged))
            assert client.get(name)
    assert await second.answer(call_for(1, "deny")) == (Deny(message="called"), Source.CALLED)
    assert second.events.counts["seal_failed"] == 1
    assert not second.events.faults[RedisFault.UNREADABLE]
