"""Replicas share verdicts through Redis; whatever Redis does, the worst case is a miss."""

import asyncio
import itertools
import os

import pytest
from redis.asyncio.cluster import ClusterNode
from structlog.testing import capture_logs

from gateway.caching.link import LinkError
from gateway.engine.answer_source import Source
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny
from gateway.policies.model import Cache
from gateway.redis.addresses import redis_address
from gateway.redis.clients import close_client, make_client
from gateway.redis.faults import RedisFault
from gateway.telemetry.labels import LookupResult
from tests.caching.conftest import IMPATIENT
from tests.caching.world import ALLOW, WAIT_SECONDS, policy_call, turns, until

DENY = Deny(code=409, message="no", reason="Conflict", details={"causes": [{"field": "a"}]}, warnings=("w",))
PATCHED = Allow(
    change=Change(kind=ChangeKind.JSON_PATCH, content=b"[]"), audit_annotations={"k": "v"}, version="1", reuse=50.0
)


def names(redis):
    with redis.client as client:
        return client.keys()


async def written(redis, count=1):
    await until(lambda: len(names(redis)) == count)


@pytest.mark.parametrize("verdict", [ALLOW, DENY, PATCHED])
async def test_a_verdict_is_shared_whole(gateway, redis, verdict):
    """Another replica gets the verdict from Redis, with its age, and then from its own memory."""
    first, second = await gateway(verdict), await gateway()
    await first.answer(policy_call())
    await written(redis)
    second.clock.now += 9
    reply, _ = second.put(policy_call())
    assert await reply.wait() == (verdict, Source.REDIS)
    assert reply.answers[0][1].age == 9
    assert not second.workers.calls
    assert await second.answer(policy_call()) == (verdict, Source.MEMORY)
    assert second.events.results == {LookupResult.REDIS: 1, LookupResult.MEMORY: 1}


async def test_followers_share_what_redis_had(gateway, redis):
    """Reviews with one call make one lookup."""
    first, second = await gateway(DENY), await gateway()
    await first.answer(policy_call())
    await written(redis)
    replies = [second.put(policy_call())[0] for _ in range(3)]
    assert [await reply.wait() for reply in replies] == [
        (DENY, Source.REDIS),
        (DENY, Source.SHARED),
        (DENY, Source.SHARED),
    ]


async def test_redis_forgets(gateway, redis):
    """An entry stands in Redis for ttl and staleIfError, no longer."""
    made = await gateway(ALLOW)
    await made.answer(policy_call(cache=Cache(ttl=30, stale_if_error=70)))
    await written(redis)
    with redis.client as client:
        assert 99_000 < client.pttl(names(redis)[0]) <= 100_000


async def test_stale_from_redis(gateway, redis):
    """A stale verdict that only Redis has is handed over while the worker is called."""
    first, second = await gateway(DENY), await gateway()
    call = policy_call(cache=Cache(ttl=10, stale_if_error=100))
    await first.answer(call)
    await written(redis)
    second.clock.now += 50
    reply, _ = second.put(call)
    await until(lambda: second.workers.calls)
    assert [(verdict, origin.source, origin.age) for verdict, origin in reply.fallbacks] == [(DENY, Source.STALE, 50)]
    assert second.events.results == {LookupResult.STALE: 1}


async def test_a_tick_is_one_pipeline(gateway, redis):
    """A hundred calls of one loop tick reach Redis in one pipeline, and so do their verdicts."""
    made = await gateway(ALLOW)
    with redis.client as client:
        before = client.info("stats")
        replies = [made.put(policy_call(f"[{number}]"))[0] for number in range(100)]
        for reply in replies:
            await reply.wait()
        await written(redis, 100)
        after = client.info("stats")
    assert after["total_commands_processed"] - before["total_commands_processed"] >= 200
    reads = after["total_net_input_bytes"] - before["total_net_input_bytes"]
    assert reads < 100 * 500, "an entry costs a name twice and a few words"
    assert made.events.counts["stored"] == 100


async def test_leaving_cancels_the_lookup(gateway, redis):
    """A call that leaves during the lookup gets no answer, and no worker is called."""
    made = await gateway(ALLOW)
    reply, leave = made.put(policy_call())
    leave()
    assert await made.answer(policy_call("[2]")) == (ALLOW, Source.CALLED)
    assert len(made.workers.calls) == 1
    assert not reply.answers


async def test_paused(gateway, redis):
    """A Redis that answers nothing costs its budget a few times, then nothing; it is used again when it answers."""
    made = await gateway(ALLOW, limits=IMPATIENT)
    redis.pause()
    for number in range(3):
        assert await made.answer(policy_call(f"[{number}]")) == (ALLOW, Source.CALLED)
    await until(lambda: not made.store.up)
    assert made.events.faults[RedisFault.TIMEOUT] >= 2
    for number in range(3, 10):
        reply, _ = made.put(policy_call(f"[{number}]"))
        assert len(made.workers.calls) == number + 1, "no call waits for a Redis that is skipped"
        await reply.wait()
    redis.resume()
    await until(lambda: made.store.up)
    # On a machine that stands still for a moment, a write may be late, too: then the next one is not.
    async with asyncio.timeout(WAIT_SECONDS):
        for number in itertools.count(10):
            await made.answer(policy_call(f"[{number}]"))
            await asyncio.sleep(0.01)
            if names(redis):
                break


async def test_late_is_too_late(gateway, redis):
    """An answer of Redis after the budget is ignored: the worker's verdict counts."""
    first, second = await gateway(DENY), await gateway(ALLOW, limits=IMPATIENT)
    await first.answer(policy_call())
    await written(redis)
    redis.pause()
    reply, _ = second.put(policy_call())
    assert await reply.wait() == (ALLOW, Source.CALLED)
    redis.resume()
    await until(lambda: second.store.up)
    assert reply.only == (ALLOW, Source.CALLED)


async def test_killed_and_restarted(gateway, redis):
    """A Redis that dies under load fails no call; when it is back, empty, it is used again."""
    made = await gateway(ALLOW)

    async def load(numbers):
        return {(await made.answer(policy_call(f"[{number}]")))[1] for number in numbers}

    assert await load(range(20)) == {Source.CALLED}
    task = asyncio.create_task(load(range(20, 400)))
    await turns(20)
    redis.kill()
    assert await task == {Source.CALLED}
    await until(lambda: not made.store.up)
    assert await load(range(1000, 1010)) == {Source.CALLED}
    assert made.events.counts["write_dropped"] >= 10
    redis.start()
    await until(lambda: made.store.up)
    await load(range(2000, 2010))
    await written(redis, 10)


async def test_who_connects_while_the_link_ends_leaves_nothing_open(gateway, redis, monkeypatch):
    """A connection that is made while its client is closed is closed as well."""
    made = await gateway(ALLOW)
    link = made.store._link
    pool = link._client.connection_pool
    await pool.disconnect()
    connect, connecting, go = asyncio.open_connection, asyncio.Event(), asyncio.Event()

    async def late(*arguments, **options):
        connecting.set()
        await go.wait()
        return await connect(*arguments, **options)

    monkeypatch.setattr(asyncio, "open_connection", late)
    calling = asyncio.create_task(link.execute([("GETRANGE", "n", 0, 1)]))
    await connecting.wait()
    closing = asyncio.create_task(link.close())
    await turns(20)
    go.set()
    await asyncio.gather(calling, closing, return_exceptions=True)
    assert not [each for each in (*pool._available_connections, *pool._in_use_connections) if each.is_connected]


@pytest.mark.parametrize("turn", range(1, 6))
async def test_a_cancelled_close_leaves_nothing_open(redis, turn):
    """At whatever moment of it."""
    client = make_client(redis_address(redis.url), seconds=WAIT_SECONDS, connections=3)
    pool = client.connection_pool
    for connection in [await pool.get_connection() for _ in range(3)]:
        await pool.release(connection)
    closing = asyncio.create_task(close_client(client))
    await turns(turn)  # the first one begins it
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    assert not [each for each in pool._available_connections if each.is_connected]


async def test_a_server_of_a_link_that_has_gone_down_is_not_called(gateway, redis, monkeypatch):
    """Its connections would stay open. For redis-py it equals the present one at the same address."""
    made = await gateway(ALLOW)
    now, before = (ClusterNode("127.0.0.1", redis.port) for _ in range(2))
    monkeypatch.setattr(made.store._link, "masters", lambda: [now])
    assert await made.store._link.execute_on(now, "PING")
    with pytest.raises(LinkError):
        await made.store._link.execute_on(before, "PING")
    await now.disconnect()


async def test_absent_from_the_start(gateway, redis):
    """A Redis that is not there holds up neither the start nor a review, and is found when it comes."""
    redis.kill()
    made = await gateway(ALLOW, connected=False)
    assert await made.answer(policy_call()) == (ALLOW, Source.CALLED)
    redis.start()
    await until(lambda: made.store.up)
    await made.answer(policy_call("[2]"))
    await written(redis)


async def test_full(gateway, redis):
    """A Redis that takes no more (noeviction, out of memory) still gives what it has, and the refusals are counted."""
    first, second = await gateway(ALLOW), await gateway(DENY)
    await first.answer(policy_call())
    await written(redis)
    with redis.client as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
    assert await second.answer(policy_call("[2]")) == (DENY, Source.CALLED)
    await until(lambda: second.events.faults[RedisFault.RESPONSE])
    assert await second.answer(policy_call()) == (ALLOW, Source.REDIS)
    assert second.store.up
    assert "OutOfMemoryError" in second.store.refused["SET"]
    with redis.client as client:
        client.config_set("maxmemory", 0)
    await second.answer(policy_call("[3]"))
    await until(lambda: not second.store.refused)


async def test_refused(gateway, redis):
    """Each command that Redis refuses is logged once, and every call is answered."""
    with redis.client as client:
        client.execute_command("ACL", "SETUSER", "limited", "on", ">hunter2", "+ping", "+hello", "+client", "+select")
    with capture_logs() as logs:
        made = await gateway(ALLOW, url=f"redis://limited:hunter2@127.0.0.1:{redis.port}")
        for number in range(3):
            assert await made.answer(policy_call(f"[{number}]")) == (ALLOW, Source.CALLED)
        await until(lambda: made.events.faults[RedisFault.RESPONSE] >= 6)
    logged = [(entry["command"], entry["why"]) for entry in logs if entry["log_level"] == "warning"]
    why = "NoPermissionError: its ACL does not permit this user the command"
    assert sorted(logged) == [("GETRANGE", why), ("SET", why)]
    assert made.store.refused == {"GETRANGE": why, "SET": why}


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (
            "redis://:hunter2@127.0.0.1:{port}",
            "AuthenticationError: it requires a user and password, or rejects those given",
        ),
        ("redis://127.0.0.1:{port}/99", "ResponseError: it answers with an error; check that"),
        ("redis+sentinel://127.0.0.1:{port}/main", "ResponseError: it answers with an error; check that"),
        ("redis+cluster://127.0.0.1:{port}", "RedisClusterException: no node of the cluster answers"),
    ],
)
async def test_why_it_cannot_be_used(gateway, redis, url, why):
    """The log has the gateway's own text, once, and no part of the URL."""
    with capture_logs() as logs:
        made = await gateway(ALLOW, url=url.format(port=redis.port), connected=False)
        await until(lambda: made.events.faults.total() > 2)
    (warning,) = [entry for entry in logs if entry["log_level"] == "warning"]
    assert warning["why"].startswith(why)
    assert "hunter2" not in repr(warning)


async def test_flushed(gateway, redis):
    """After FLUSHALL each worker is called once more."""
    first, second = await gateway(ALLOW), await gateway(DENY)
    await first.answer(policy_call())
    await written(redis)
    with redis.client as client:
        client.flushall()
    assert await second.answer(policy_call()) == (DENY, Source.CALLED)
    assert not second.events.faults


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda client, name: client.set(name, b"x"), "seal"),
        (lambda client, name: client.set(name, b""), "miss"),
        (lambda client, name: client.set(name, b"\x01" + os.urandom(200)), "seal"),
        (lambda client, name: client.set(name, b"\x00" * 2_000_000), "garbage"),
        (lambda client, name: client.append(name, b"x"), "seal"),
        (lambda client, name: client.setrange(name, 20, b"x!"), "seal"),
        (lambda client, name: (client.delete(name), client.lpush(name, "x")), "response"),
        (lambda client, name: (client.delete(name), client.hset(name, "a", "b")), "response"),
        (lambda client, name: (client.delete(name), client.xadd(name, {"a": "b"})), "response"),
        (lambda client, name: client.setbit(name, 8 * 30_000, 1), "seal"),
    ],
)
async def test_garbage(gateway, redis, spoil, kind):
    """Values of any kind under an entry's name are a miss, counted, and the link stays up."""
    first, second = await gateway(DENY), await gateway(ALLOW)
    await first.answer(policy_call())
    await written(redis)
    with redis.client as client:
        spoil(client, names(redis)[0])
    assert await second.answer(policy_call()) == (ALLOW, Source.CALLED)
    assert second.events.counts["seal_failed"] == (kind == "seal")
    assert second.events.faults[RedisFault.UNREADABLE] == (kind == "garbage")
    assert second.events.faults[RedisFault.RESPONSE] == (kind == "response")
    assert second.store.up


async def test_a_replica_that_takes_no_writes(gateway, redis):
    """READONLY is a lost connection: the master is somewhere else now, and it is looked for; answers go on."""
    made = await gateway(ALLOW)
    with redis.client as client:
        client.replicaof("127.0.0.1", "1")
        try:
            assert await made.answer(policy_call()) == (ALLOW, Source.CALLED)
            await until(lambda: made.events.faults[RedisFault.CONNECTION])
        finally:
            client.replicaof("NO", "ONE")


async def test_a_wrong_password(gateway, redis, logs):
    """A rejected password is logged without its value, and everything else works."""
    with redis.client as client:
        client.config_set("requirepass", "right")
        try:
            made = await gateway(ALLOW, url=f"redis://:hunter2@127.0.0.1:{redis.port}", connected=False)
            await until(lambda: made.events.faults[RedisFault.CONNECTION])
            assert await made.answer(policy_call()) == (ALLOW, Source.CALLED)
        finally:
            client.config_set("requirepass", "")
    assert "AuthenticationError" in str(logs)
    assert "hunter2" not in str(logs)


async def test_garbage_for_a_server(gateway):
    """Something at the address that speaks no Redis is a link that does not come up."""

    async def babble(reader, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read(100)
        writer.close()

    listener = await asyncio.start_server(babble, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    made = await gateway(ALLOW, url=f"redis://127.0.0.1:{port}", connected=False)
    await until(lambda: made.events.faults)
    assert await made.answer(policy_call()) == (ALLOW, Source.CALLED)
    listener.close()


async def test_the_queue_of_writes_is_bounded(gateway, redis):
    """What does not fit into the queue of writes is dropped and counted; who called has the answer."""
    made = await gateway(Allow(warnings=("x" * 1000,)), limits=IMPATIENT)
    limits = made.limits
    object.__setattr__(limits, "redis_write_bytes", 5000)
    try:
        replies = [made.put(policy_call(f"[{number}]"))[0] for number in range(50)]
        for reply in replies:
            await reply.wait()
    finally:
        object.__setattr__(limits, "redis_write_bytes", 32_000_000)
    assert made.events.counts["write_dropped"] >= 40
    assert made.events.counts["stored"] == 50


async def test_rotation(gateway, redis, seal_file):
    """With an overlap of two keys, replicas with the old file and the new one have each other's entries."""
    first = await gateway(DENY)
    await first.answer(policy_call())
    await written(redis)
    old = seal_file.read_text()
    new_file = seal_file.with_name("new")
    new_file.write_text("1" * 43 + "=\n" + old)
    second = await gateway(ALLOW, file=new_file)
    assert await second.answer(policy_call()) == (DENY, Source.REDIS)
    await second.answer(policy_call("[2]"))
    await written(redis, 2)
    seal_file.write_text(old + "1" * 43 + "=\n")
    assert first.store._seals.refresh()
    assert await first.answer(policy_call("[2]")) == (ALLOW, Source.REDIS)


async def test_strangers_share_nothing(gateway, redis, tmp_path):
    """Replicas with different keys call their workers themselves, and report no failure."""
    first = await gateway(DENY)
    await first.answer(policy_call())
    await written(redis)
    other = tmp_path / "other"
    other.write_text("2" * 43 + "=\n")
    second = await gateway(ALLOW, file=other)
    assert await second.answer(policy_call()) == (ALLOW, Source.CALLED)
    assert not second.events.counts["seal_failed"]
