"""Whoever can read Redis learns nothing, and whoever can write to it forges nothing.

The attacker has all of Redis, and not the key file: reads every key, writes whatever it likes, moves and repeats what
it has seen.
"""

import asyncio
import base64
import os

import pytest

from gateway.engine.verdicts import Allow
from gateway.reasons import Reason
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue.names import Names
from gateway.transports.queue.seals import QueueSeals
from gateway.transports.queue.wire import sealed_presence, sealed_replies
from tests.transports.queue.consumers import ALLOW, DESCRIBED, LANE, STREAM, FakeHandler, Queue, consuming, until
from tests.transports.queue.gateways import gateway

SECRET = b"the-password-of-the-database"


@pytest.fixture
def forged_keys(tmp_path):
    """A key file of the attacker's own."""
    file = tmp_path / "forged"
    file.write_text(base64.b64encode(os.urandom(32)).decode())
    return file


async def everything(client):
    """All bytes in Redis."""
    found = b""
    async for name in client.scan_iter():
        found += name + (await client.dump(name) or b"")
        if await client.type(name) == b"stream":
            for _, fields in await client.xrange(name):
                found += b"".join(key + value for key, value in fields.items())
        elif await client.type(name) == b"hash":
            found += b"".join(key + value for key, value in (await client.hgetall(name)).items())
    return found


async def test_who_reads_redis_learns_nothing(redis, queue, key_file):
    """No word of a document, of settings, of a policy, of an answer or of a description stands in Redis in clear."""
    judge = FakeHandler(holds=True)
    async with consuming(queue, judge), gateway(redis, key_file) as made:
        await made.met()
        waiting = made.put(b'{"object":{"data":"%s"}}' % SECRET)
        await until(lambda: judge.called)
        seen = await everything(queue.client)
        answer = pb.Outcome(allow=pb.Allow(json_patch=b"[]"), warnings=[SECRET.decode()], version="1")
        judge.called[0].answer(answer)
        await waiting.answer()
        seen += await everything(queue.client)
    for word in (SECRET, b"uid-1", b"labels", b"object", DESCRIBED.SerializeToString(), b"password"):
        assert word not in seen
    assert len(seen) > 1000


async def test_a_forged_call_is_not_put_to_a_worker(redis, queue, key_file, forged_keys):
    """Sealed with another key, or with none: the worker hears nothing of it, and the entry is gone."""
    async with consuming(queue) as consumer:
        await queue.put_request(q.Request(call=pb.PolicyCall(policy="p")), seals=QueueSeals(STREAM, forged_keys))
        await queue.put(m=pb.PolicyCall(policy="p").SerializeToString())
        await until(queue.is_empty)
        assert consumer.handler.called == []


async def test_a_forged_answer_is_no_answer(redis, queue, key_file, forged_keys):
    """The gateway that waits takes nothing but what its own bridges have sealed for it; each attempt is counted."""
    judge = FakeHandler(holds=True)
    async with consuming(queue, judge), gateway(redis, key_file) as made:
        await made.met()
        waiting = made.put()
        await until(lambda: judge.called)
        exchange = made.worker._exchange
        entry = (await queue.client.xrange(queue.names.calls(LANE)))[0][1]
        reply = q.Reply(id=entry[b"i"], deadline=int(entry[b"d"]), verdict=ALLOW)
        replies, now = queue.names.replies(exchange.instance), await queue.now()
        forgeries = [
            sealed_replies(QueueSeals(STREAM, forged_keys), exchange.instance, [reply], now),
            q.Replies(replies=[reply], at=now).SerializeToString(),
            # Authentic, for somebody else.
            sealed_replies(queue.seals, "0" * 32, [reply], now),
            sealed_replies(QueueSeals("other", key_file), exchange.instance, [reply], now),
            # Authentic, of another kind.
            queue.seals.seal_presence(exchange.instance, q.Replies(replies=[reply], at=now).SerializeToString()),
            entry[b"m"],
            b"\x01",
        ]
        for forgery in forgeries:
            await queue.client.xadd(replies, {"m": forgery})
        await queue.client.xadd(replies, {"x": forgeries[0]})
        await until(lambda: made.events["unreadable"] == len(forgeries) + 1)
        assert waiting.answers == []
        judge.called[0].answer(pb.Outcome(deny=pb.Deny(message="no"), version="1"))
        assert (await waiting.answer()).message == "no"


async def test_an_answer_that_is_shown_again_answers_nothing_else(redis, queue, key_file):
    """An allow that was seen cannot be had for another call, nor for the same one twice."""
    judge = FakeHandler(holds=True)
    async with consuming(queue, judge), gateway(redis, key_file) as made:
        await made.met()
        first = made.put(b'{"first":1}')
        await until(lambda: judge.called)
        replies = queue.names.replies(made.worker._exchange.instance)
        last = (await queue.client.xinfo_stream(replies))["last-generated-id"]
        recorded = asyncio.create_task(queue.client.xread({replies: last}, block=10_000))
        await until(lambda: queue.client.connection_pool._in_use_connections)
        judge.called.pop().answer()
        assert isinstance(await first.answer(), Allow)
        ((_, ((_, seen),)),) = await recorded
        second = made.put(b'{"second":2}')
        await until(lambda: judge.called)
        for _ in range(3):
            await queue.client.xadd(replies, seen)
        await until(lambda: made.events["unsolicited"] == 3)
        assert second.answers == []
        judge.called.pop().answer(pb.Outcome(deny=pb.Deny(), version="1"))
        assert not isinstance(await second.answer(), Allow)
        assert first.answers == [Allow(version="1")]


async def test_answers_to_another_deadline_or_id_answer_nothing(redis, queue, key_file):
    """Even sealed with the right key: an answer says to what it is one."""
    judge = FakeHandler(holds=True)
    async with consuming(queue, judge), gateway(redis, key_file) as made:
        await made.met()
        waiting = made.put()
        await until(lambda: judge.called)
        entry = (await queue.client.xrange(queue.names.calls(LANE)))[0][1]
        instance, now = made.worker._exchange.instance, await queue.now()
        wrong = [
            q.Reply(id=entry[b"i"], deadline=int(entry[b"d"]) + 1, verdict=ALLOW),
            q.Reply(id=b"87654321", deadline=int(entry[b"d"]), verdict=ALLOW),
            q.Reply(),
        ]
        sealed = sealed_replies(queue.seals, instance, wrong, now)
        await queue.client.xadd(queue.names.replies(instance), {"m": sealed})
        await queue.client.xadd(
            queue.names.replies(instance), {"m": sealed_replies(queue.seals, instance, [], await queue.now())}
        )
        await until(lambda: made.events["unsolicited"] == len(wrong) + 1)
        assert waiting.answers == []
        right = q.Reply(id=entry[b"i"], deadline=int(entry[b"d"]))
        await queue.client.xadd(
            queue.names.replies(instance), {"m": sealed_replies(queue.seals, instance, [right], await queue.now())}
        )
        assert (await waiting.answer()).reason is Reason.INVALID_RESPONSE


async def test_an_call_that_is_moved_or_altered_is_not_put_to_a_worker(redis, queue, key_file):
    """An authentic entry in another gateway's name, with more time, under another id, or in another queue."""
    other = Queue(redis.url, key_file, stream="other")
    judge = FakeHandler(holds=True)
    async with gateway(redis, key_file) as made, consuming(queue, judge), consuming(other) as elsewhere:
        await made.met()
        waiting = made.put()
        await until(lambda: judge.called)
        entry = (await queue.client.xrange(queue.names.calls(LANE)))[0][1]
        for changed in ({b"g": b"0" * 32}, {b"d": b"%d" % (int(entry[b"d"]) + 1)}, {b"i": b"87654321"}):
            await queue.client.xadd(queue.names.calls(LANE), entry | changed)
        await queue.client.xadd(Names("other").calls(LANE), entry)
        await until(other.is_empty)
        assert elsewhere.handler.called == []
        assert len(judge.called) == 1
        judge.called[0].answer()
        await waiting.answer()
        await until(queue.is_empty)
        assert len(judge.called) == 1
    await other.client.aclose()


async def test_an_call_that_is_shown_again_has_one_answer(redis, queue, key_file):
    """A copy of an authentic entry is the same call: answered from memory, and no second answer is believed."""
    async with consuming(queue, FakeHandler(holds=True)) as consumer, gateway(redis, key_file) as made:
        await made.met()
        waiting = made.put(once=True)
        await until(lambda: consumer.handler.called)
        entry = (await queue.client.xrange(queue.names.calls(LANE)))[0][1]
        consumer.handler.called[0].answer()
        assert isinstance(await waiting.answer(), Allow)
        await queue.client.xadd(queue.names.calls(LANE), entry)
        await until(lambda: made.events["unsolicited"] == 1)
        await until(queue.is_empty)
        assert len(consumer.handler.called) == 1
        assert len(waiting.answers) == 1


async def test_a_forged_presence_is_nobody(redis, queue, key_file, forged_keys):
    """Nobody is described by what somebody else wrote: with another key, name or queue, or what is no message."""
    async with gateway(redis, key_file) as made:
        await until(lambda: "no bridge" in made.worker.why)
        now = await queue.now()
        presence = q.Presence(description=DESCRIBED.SerializeToString(), at=now, lane=LANE, capacity=1)
        fields = {
            "a": sealed_presence(QueueSeals(STREAM, forged_keys), "a", presence),
            "b": sealed_presence(queue.seals, "c", presence),
            "c": sealed_presence(QueueSeals("other", key_file), "c", presence),
            "d": presence.SerializeToString(),
            "e": sealed_presence(queue.seals, "e", q.Presence(description=b"\xff", at=now, lane=LANE, capacity=1)),
            b"\xff\xfe": b"",
        }
        await queue.client.hset(queue.names.workers, mapping=fields)
        await until(lambda: made.events["unreadable"] == len(fields))
        assert made.worker.live == ()
        # The same garbage is counted once, and what is authentic is found beside it.
        good = sealed_presence(
            queue.seals,
            "good",
            q.Presence(description=presence.description, at=await queue.now(), lane=LANE, capacity=1),
        )
        await queue.client.hset(queue.names.workers, "good", good)
        await made.met()
        assert made.events["unreadable"] == len(fields)


async def test_an_old_presence_is_nobody(redis, queue, key_file):
    """What a bridge said of itself yesterday, put back, makes nobody believe that it is there; and it is removed."""
    async with gateway(redis, key_file) as made:
        old = q.Presence(
            description=DESCRIBED.SerializeToString(), at=await queue.now() - 70_000, lane=LANE, capacity=1
        )
        await queue.client.hset(queue.names.workers, "old", sealed_presence(queue.seals, "old", old))
        await until(lambda: made.worker._exchange.has_looked)

        async def removed():
            return not await queue.client.hexists(queue.names.workers, "old")

        await until(removed)
        assert made.worker.live == ()


@pytest.mark.parametrize("what", ["workers", "replies", "lane"])
async def test_a_name_of_another_type_breaks_nothing_for_good(redis, queue, key_file, what):
    """A string where a hash or a stream should be: calls fail by a named failure, and go through when it is gone."""
    async with consuming(queue), gateway(redis, key_file, queue_redis_seconds=0.5) as made:
        await made.met()
        name = {
            "workers": queue.names.workers,
            "replies": queue.names.replies(made.worker._exchange.instance),
            "lane": queue.names.calls(LANE),
        }[what]
        await queue.client.set(name, "x")
        waiting = made.put(seconds=2.0)
        answer = await waiting.answer()
        assert isinstance(answer, Allow) or answer.reason in {Reason.WORKER_UNAVAILABLE, Reason.WORKER_TIMEOUT}
        await queue.client.delete(name)

        async def works():
            return isinstance(await made.call(seconds=2.0), Allow)

        await until(works)
