"""An attacker who can read Redis learns nothing, and one who can write to it forges nothing.

The attacker has full access to Redis, but not the key file: reads and writes every key, moves and replays messages.
"""

import asyncio
import base64
import os

import pytest

from gateway.engine.verdicts import Allow
from gateway.reasons import Reason
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue.codec import sealed_presence, sealed_replies
from gateway.transports.queue.names import Names
from gateway.transports.queue.seals import QueueSeals
from tests.transports.queue.consumers import ALLOW, DESCRIBED, LANE, STREAM, FakeHandler, Queue, consuming, until
from tests.transports.queue.gateways import running_gateway

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


async def test_redis_holds_no_plain_text(redis, queue, key_file):
    """Documents, settings, policies, answers and descriptions are never in Redis in plain text."""
    handler = FakeHandler(holds=True)
    async with consuming(queue, handler), running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        waiting = gateway.put(b'{"object":{"data":"%s"}}' % SECRET)
        await until(lambda: handler.calls)
        seen = await everything(queue.client)
        answer = pb.Outcome(allow=pb.Allow(json_patch=b"[]"), warnings=[SECRET.decode()], version="1")
        handler.calls[0].answer(answer)
        await waiting.answer()
        seen += await everything(queue.client)
    for word in (SECRET, b"uid-1", b"labels", b"object", DESCRIBED.SerializeToString(), b"password"):
        assert word not in seen
    assert len(seen) > 1000


async def test_a_forged_call_reaches_no_worker(redis, queue, key_file, forged_keys):
    """A call sealed with another key, or not sealed, is removed without calling the worker."""
    async with consuming(queue) as consumer:
        await queue.put_request(q.Request(call=pb.PolicyCall(policy="p")), seals=QueueSeals(STREAM, forged_keys))
        await queue.put(m=pb.PolicyCall(policy="p").SerializeToString())
        await until(queue.is_empty)
        assert consumer.handler.calls == []


async def test_a_forged_reply_is_dropped(redis, queue, key_file, forged_keys):
    """The gateway accepts only replies that its bridges have sealed for it, and counts each other one."""
    handler = FakeHandler(holds=True)
    async with consuming(queue, handler), running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        waiting = gateway.put()
        await until(lambda: handler.calls)
        exchange = gateway.worker._exchange
        entry = (await queue.client.xrange(queue.names.calls(LANE)))[0][1]
        reply = q.Reply(id=entry[b"i"], deadline=int(entry[b"d"]), verdict=ALLOW)
        replies, now = queue.names.replies(exchange.instance), await queue.now()
        forgeries = [
            sealed_replies(QueueSeals(STREAM, forged_keys), exchange.instance, [reply], now),
            q.Replies(replies=[reply], at=now).SerializeToString(),
            # Authentic, for another gateway.
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
        await until(lambda: gateway.events["unreadable"] == len(forgeries) + 1)
        assert waiting.answers == []
        handler.calls[0].answer(pb.Outcome(deny=pb.Deny(message="no"), version="1"))
        assert (await waiting.answer()).message == "no"


async def test_a_replayed_reply_answers_no_other_call(redis, queue, key_file):
    """A recorded allow answers no other call, and the same call only once."""
    handler = FakeHandler(holds=True)
    async with consuming(queue, handler), running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        first = gateway.put(b'{"first":1}')
        await until(lambda: handler.calls)
        replies = queue.names.replies(gateway.worker._exchange.instance)
        last = (await queue.client.xinfo_stream(replies))["last-generated-id"]
        recorded = asyncio.create_task(queue.client.xread({replies: last}, block=10_000))
        await until(lambda: queue.client.connection_pool._in_use_connections)
        handler.calls.pop().answer()
        assert isinstance(await first.answer(), Allow)
        ((_, ((_, seen),)),) = await recorded
        second = gateway.put(b'{"second":2}')
        await until(lambda: handler.calls)
        for _ in range(3):
            await queue.client.xadd(replies, seen)
        await until(lambda: gateway.events["unsolicited"] == 3)
        assert second.answers == []
        handler.calls.pop().answer(pb.Outcome(deny=pb.Deny(), version="1"))
        assert not isinstance(await second.answer(), Allow)
        assert first.answers == [Allow(version="1")]


async def test_answers_to_another_deadline_or_id_answer_nothing(redis, queue, key_file):
    """A reply with the right seal but another deadline or ID is dropped."""
    handler = FakeHandler(holds=True)
    async with consuming(queue, handler), running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        waiting = gateway.put()
        await until(lambda: handler.calls)
        entry = (await queue.client.xrange(queue.names.calls(LANE)))[0][1]
        instance, now = gateway.worker._exchange.instance, await queue.now()
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
        await until(lambda: gateway.events["unsolicited"] == len(wrong) + 1)
        assert waiting.answers == []
        right = q.Reply(id=entry[b"i"], deadline=int(entry[b"d"]))
        await queue.client.xadd(
            queue.names.replies(instance), {"m": sealed_replies(queue.seals, instance, [right], await queue.now())}
        )
        assert (await waiting.answer()).reason is Reason.INVALID_RESPONSE


async def test_a_call_that_is_moved_or_altered_reaches_no_worker(redis, queue, key_file):
    """An authentic entry with another gateway, deadline or ID, or in another queue, is dropped."""
    other = Queue(redis.url, key_file, stream="other")
    handler = FakeHandler(holds=True)
    async with running_gateway(redis, key_file) as gateway, consuming(queue, handler), consuming(other) as elsewhere:
        await gateway.sees_bridges()
        waiting = gateway.put()
        await until(lambda: handler.calls)
        entry = (await queue.client.xrange(queue.names.calls(LANE)))[0][1]
        for changed in ({b"g": b"0" * 32}, {b"d": b"%d" % (int(entry[b"d"]) + 1)}, {b"i": b"87654321"}):
            await queue.client.xadd(queue.names.calls(LANE), entry | changed)
        await queue.client.xadd(Names("other").calls(LANE), entry)
        await until(other.is_empty)
        assert elsewhere.handler.calls == []
        assert len(handler.calls) == 1
        handler.calls[0].answer()
        await waiting.answer()
        await until(queue.is_empty)
        assert len(handler.calls) == 1
    await other.client.aclose()


async def test_a_replayed_call_has_one_answer(redis, queue, key_file):
    """A copy of an authentic entry is the same call: the bridge replies from memory, which the gateway drops."""
    async with consuming(queue, FakeHandler(holds=True)) as consumer, running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        waiting = gateway.put(once=True)
        await until(lambda: consumer.handler.calls)
        entry = (await queue.client.xrange(queue.names.calls(LANE)))[0][1]
        consumer.handler.calls[0].answer()
        assert isinstance(await waiting.answer(), Allow)
        await queue.client.xadd(queue.names.calls(LANE), entry)
        await until(lambda: gateway.events["unsolicited"] == 1)
        await until(queue.is_empty)
        assert len(consumer.handler.calls) == 1
        assert len(waiting.answers) == 1


async def test_a_forged_presence_is_no_bridge(redis, queue, key_file, forged_keys):
    """A presence with another key, name or queue, or that is not a message, adds no bridge."""
    async with running_gateway(redis, key_file) as gateway:
        await until(lambda: "no bridge" in gateway.worker.why)
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
        await until(lambda: gateway.events["unreadable"] == len(fields))
        assert gateway.worker.live == ()
        # The same invalid values are counted once, and an authentic one is found beside them.
        good = sealed_presence(
            queue.seals,
            "good",
            q.Presence(description=presence.description, at=await queue.now(), lane=LANE, capacity=1),
        )
        await queue.client.hset(queue.names.workers, "good", good)
        await gateway.sees_bridges()
        assert gateway.events["unreadable"] == len(fields)


async def test_a_replayed_presence_is_no_bridge(redis, queue, key_file):
    """An old presence that is written again adds no bridge, and is removed."""
    async with running_gateway(redis, key_file) as gateway:
        old = q.Presence(
            description=DESCRIBED.SerializeToString(), at=await queue.now() - 70_000, lane=LANE, capacity=1
        )
        await queue.client.hset(queue.names.workers, "old", sealed_presence(queue.seals, "old", old))
        await until(lambda: gateway.worker._exchange.has_looked)

        async def removed():
            return not await queue.client.hexists(queue.names.workers, "old")

        await until(removed)
        assert gateway.worker.live == ()


@pytest.mark.parametrize("what", ["workers", "replies", "lane"])
async def test_a_key_of_another_type(redis, queue, key_file, what):
    """With a string in place of a hash or stream calls fail with a reason code; they succeed once it is deleted."""
    async with consuming(queue), running_gateway(redis, key_file, queue_redis_seconds=0.5) as gateway:
        await gateway.sees_bridges()
        name = {
            "workers": queue.names.workers,
            "replies": queue.names.replies(gateway.worker._exchange.instance),
            "lane": queue.names.calls(LANE),
        }[what]
        await queue.client.set(name, "x")
        waiting = gateway.put(seconds=2.0)
        answer = await waiting.answer()
        assert isinstance(answer, Allow) or answer.reason in {Reason.WORKER_UNAVAILABLE, Reason.WORKER_TIMEOUT}
        await queue.client.delete(name)

        async def works():
            return isinstance(await gateway.call(seconds=2.0), Allow)

        await until(works)
