"""Replicas find each other's decisions through a real Redis; who can write to it forges nothing."""

import base64
import json
import secrets
from contextlib import AsyncExitStack

import msgspec
import pytest

from gateway.engine.verdicts import Deny
from gateway.redis.addresses import redis_address
from gateway.redis.sealing import Context, SealKeys
from gateway.serving import replica_findings as module
from gateway.serving.replica_findings import MEMBERS, STREAM, ReplicaFindings
from gateway.telemetry.decision_memory import DecisionMemory
from gateway.telemetry.findings import Query, find, subject_of
from tests.caching import servers
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import until
from tests.world import decide, policy, request


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory):
    """One server for all tests."""
    with servers.server(tmp_path_factory.mktemp("redis")) as made:
        yield made


class Replica:
    """One gateway's findings: its decisions, and the queries that it answered."""

    def __init__(self, name, url, file):
        self.name, self.memory, self.queries = name, DecisionMemory(), []
        self.seals = SealKeys(file)
        self.findings = ReplicaFindings(
            redis_address(url), self.seals, is_shared=file is not None, find=self.find, process=name
        )

    def find(self, query):
        self.queries.append(query)
        return find(self.memory, query, replica=self.name, process=self.name)

    async def found(self, uid):
        """What the other replicas find."""
        return await self.findings.find_elsewhere(Query(uid=uid))


@pytest.fixture
async def replicas(redis, tmp_path, monkeypatch):
    """Makes replicas with one key, connected by default."""
    # A reply that is lost fails a test; none waits for one.
    monkeypatch.setattr(module, "REPLY_SECONDS", WAIT_SECONDS)
    file = tmp_path / "keys"
    file.write_text(base64.b64encode(b"k" * 32).decode() + "\n")
    async with AsyncExitStack() as stack:

        async def make(name, *, file=file, connected=True):
            made = Replica(name, redis.url, file)
            made.findings.start()
            stack.push_async_callback(made.findings.close)
            if connected:
                await until(lambda: made.findings.is_up)
            return made

        yield make


def denied(uid):
    """A decision."""
    return decide([policy("a")], {"a": Deny(message="no")}, on=request(uid=uid, name="p"))[0]


async def test_a_decision_is_found_in_another_replica(replicas):
    """Each replica answers, and says what it searched; its own query is not answered."""
    one, two, three = [await replicas(name) for name in ("one", "two", "three")]
    two.memory.decided(denied("u1"))
    # With the subject: else nothing waits for those that have not found it.
    query = Query(uid="u1", subject=subject_of(two.find(Query(uid="u1")).decisions[0]))
    answer = await one.findings.find_elsewhere(query)
    found = {each.replica: each for each in answer.findings}
    assert [each["uid"] for each in found["two"].decisions] == ["u1"]
    assert (found["three"].decisions, found["three"].retained, answer.why) == ([], 0, "")
    assert (one.queries, three.queries) == ([], [query])


async def test_a_decision_that_is_found_ends_the_first_query(replicas, redis):
    """One that does not answer is waited for once only: with the subject."""
    one, two = [await replicas(name) for name in ("one", "two")]
    announce(redis, one.seals, "gone")
    two.memory.decided(denied("u1"))
    answer = await one.found("u1")
    assert ([each.replica for each in answer.findings], answer.why) == (["two"], "")


async def test_who_does_not_answer_is_named(replicas, redis, monkeypatch):
    """So that an operator does not take what was not searched for what is not there."""
    one, two = [await replicas(name) for name in ("one", "two")]
    announce(redis, one.seals, "gone", "stuck")
    monkeypatch.setattr(module, "REPLY_SECONDS", 0.2)
    answer = await one.found("u1")
    assert answer.why == "host-gone, host-stuck did not answer within 0.2 s"
    assert ([each.replica for each in answer.findings], len(two.queries)) == (["two"], 1)


async def test_a_replica_that_has_ended_is_not_waited_for(replicas):
    """It says so; one that is killed is waited for until it is no member any more."""
    one, two, three = [await replicas(name) for name in ("one", "two", "three")]
    await two.findings.close()
    answer = await one.found("u1")
    assert ([each.replica for each in answer.findings], answer.why) == (["three"], "")
    assert len(three.queries) == 1


async def test_a_member_is_one_for_some_seconds(replicas, redis, monkeypatch):
    """By the clock of Redis."""
    monkeypatch.setattr(module, "MEMBER_SECONDS", -1.0)
    one, two = [await replicas(name) for name in ("one", "two")]
    announce(redis, one.seals, "gone")
    assert (await one.found("u1")).findings == []
    await until(lambda: two.queries)


async def test_who_can_write_to_redis_is_no_member(replicas, redis):
    """Nothing waits for garbage, or for what another key has sealed."""
    one = await replicas("one")
    announce(redis, SealKeys(None), "forged")
    with redis.client as client:
        for content in (b"garbage", one.seals.seal(Context(b"explain", MEMBERS.encode()), b"[]")):
            client.xadd(MEMBERS, {"m": content})
        client.xadd(MEMBERS, {"other": b"x"})
    answer = await one.found("u1")
    assert (answer.findings, answer.why) == ([], "")


async def test_a_member_says_that_it_is_there(replicas, redis, monkeypatch):
    """After each read, and so without any query."""
    monkeypatch.setattr(module, "BLOCK_SECONDS", 0.01)
    await replicas("one")
    with redis.client as client:
        await until(lambda: client.xlen(MEMBERS) > 2)


async def test_without_a_common_key_there_is_a_reason(replicas):
    """Nothing is sent that no other replica can read."""
    one = await replicas("one", file=None)
    assert "--seal-key-file" in (await one.found("u1")).why


async def test_a_redis_that_is_away_delays_nothing(replicas, redis, monkeypatch):
    """Not there at all, and there without an answer."""
    one = await replicas("one")
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.2)
    redis.pause()
    assert "Redis did not answer" in (await one.found("u1")).why
    redis.resume()
    redis.kill()
    await until(lambda: not one.findings.is_up)
    assert (await one.found("u1")).why.startswith("Redis cannot be used, so other replicas were not reached")
    redis.start()
    await until(lambda: one.findings.is_up)


async def test_who_can_write_to_redis_asks_nothing(replicas, redis):
    """Queries that are garbage, without the key, old, or repeated are not answered."""
    one, two = [await replicas(name) for name in ("one", "two")]
    sealed = {
        "garbage": b"x",
        "not a query": one.seals.seal(Context(b"explain", STREAM.encode()), b"[]"),
        "old": _query(one.seals, at=1.0),
        "elsewhere": _query(one.seals, place="other"),
        "of another key": _query(SealKeys(None)),
        "good": (good := _query(one.seals)),
        "again": good,
    }
    with redis.client as client:
        client.xadd(STREAM, {"other": b"x"})
        for content in sealed.values():
            client.xadd(STREAM, {"m": content})
    await until(lambda: one.queries and two.queries)
    found = await one.found("u2")
    assert ([each.uid for each in one.queries], found.why) == (["u1"], "")
    assert [each.uid for each in two.queries] == ["u1", "u2"]


async def test_a_forged_reply_is_no_finding(replicas, redis, monkeypatch):
    """It opens only for the query's own stream, and must be findings."""
    one = await replicas("one")
    name = module._reply_name("f" * 32)
    monkeypatch.setattr(secrets, "token_hex", lambda _: "f" * 32)
    forged = {"replica": "evil", "retained": 1, "since": 0.0, "decisions": [{}], "related": []}
    content = json.dumps(forged).encode()
    announce(redis, one.seals, "silent")
    monkeypatch.setattr(module, "REPLY_SECONDS", 0.2)
    with redis.client as client:
        for sealed in (
            b"garbage",
            SealKeys(None).seal(Context(b"explain", name.encode()), content),
            one.seals.seal(Context(b"explain", STREAM.encode()), content),
            one.seals.seal(Context(b"explain", name.encode()), b"[]"),
            one.seals.seal(Context(b"explain", name.encode()), content),
        ):
            client.xadd(name, {"m": sealed})
    assert (await one.found("u1")).findings == []
    with redis.client as client:
        assert not client.exists(name)


async def test_a_flood_of_queries_is_not_answered(replicas, redis):
    """Each answer takes milliseconds in which reviews wait."""
    two = await replicas("two")
    with redis.client as client:
        for _ in range(3 * module.QUERIES):
            client.xadd(STREAM, {"m": _query(two.seals)})
        client.xadd(STREAM, {"m": b"last"})
        last = client.xinfo_stream(STREAM)["last-generated-id"]
    await until(lambda: two.findings._read_to == last)
    assert 1 <= len(two.queries) <= 2 * module.QUERIES


def announce(redis, seals, *names):
    """Members that never answer."""
    with redis.client as client:
        for name in names:
            member = json.dumps({"process": name, "replica": f"host-{name}"}).encode()
            client.xadd(MEMBERS, {"m": seals.seal(Context(b"explain", MEMBERS.encode()), member)})


def _query(seals, *, at=None, place=STREAM):
    """A sealed query for u1."""
    at = module.time() if at is None else at
    message = {"id": secrets.token_hex(16), "at": at, "query": {"uid": "u1"}}
    return seals.seal(Context(b"explain", place.encode()), msgspec.json.encode(message))
