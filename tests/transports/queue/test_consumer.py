"""A consumer answers each call once, or drops it, and leaves nothing of it in Redis."""

import base64
import os
from time import monotonic

import pytest

from gateway.transports.limits import ConsumerLimits
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue import consumer_context, heartbeat
from gateway.transports.queue.seals import QueueSeals
from tests.transports.queue.consumers import (
    ALLOW,
    DESCRIBED,
    LANE,
    STREAM,
    FakeHandler,
    consumer_description,
    consuming,
    until,
)


@pytest.fixture
async def queue(queue):
    """With a reply stream, as a gateway has."""
    return await queue.listen()


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """No consumer counts as dead because this machine has paused."""
    monkeypatch.setattr(heartbeat, "DEAD_SECONDS", 60.0)


@pytest.fixture
def quick(monkeypatch):
    """Heartbeats all the time instead of each second."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 0.02)


# --------------------------------------------------------------------------------------------------- answers


async def test_a_call_is_handled_and_answered(queue):
    """The handler gets the call unchanged, and the gateway gets its outcome unchanged."""
    async with consuming(queue, FakeHandler(holds=True)) as running:
        number = await queue.put(b'{"a":1}')
        (called,) = await until(lambda: running.handler.calls)
        assert (called.call.policy, called.call.document, called.call.uid, called.once) == ("p", b'{"a":1}', "u", False)
        outcome = pb.Outcome(deny=pb.Deny(message="no"), warnings=["w"], audit_annotations={"k": "v"}, version="7")
        called.answer(outcome)
        assert (await queue.reply(number)).verdict == outcome
        await until(queue.is_empty)


async def test_a_handler_gets_the_deadline(queue, monkeypatch):
    """The deadline is in seconds of the local clock, converted by the sample of Redis' clock."""
    now = monotonic()
    # The consumer's clock stands still: only Redis' clock advances.
    monkeypatch.setattr(heartbeat, "monotonic", lambda: now)
    before = await queue.now()
    async with consuming(queue, FakeHandler(holds=True)) as running:
        await queue.put(deadline=before + 60_000)
        (called,) = await until(lambda: running.handler.calls)
        after = await queue.now()
    assert now + 60 - (after - before + 1) / 1000 <= called.until <= now + 60.001


async def test_settings_are_validated(queue):
    """ValidateSettings goes through the queue, too."""
    async with consuming(queue) as running:
        running.handler.settings = pb.ValidateSettingsResponse(errors=[pb.SettingsError(message="wrong")])
        request = pb.ValidateSettingsRequest(policy="p", settings=b'{"a":1}')
        number = await queue.put_request(q.Request(validate_settings=request))
        assert (await queue.reply(number)).settings == running.handler.settings
        assert running.handler.calls == [request]


async def test_a_thousand_calls(queue):
    """A thousand calls are answered once each, and leave nothing in Redis."""
    async with consuming(queue) as running:
        numbers = {await queue.put(b"%d" % index) for index in range(1000)}

        async def answered():
            replies = await queue.replies()
            return replies if len(replies) >= 1000 else None

        replies = await until(answered)
        assert sorted(reply.id for reply in replies) == sorted(numbers)
        assert len(set(running.handler.documents)) == 1000
        await until(queue.is_empty)


async def test_answers_of_one_moment_are_one_transaction(queue):
    """One EXEC writes all replies and acknowledges their entries."""
    async with consuming(queue, FakeHandler(holds=True)) as running:
        for _ in range(50):
            await queue.put()
        await until(lambda: len(running.handler.calls) == 50)
        await queue.client.config_resetstat()
        for called in running.handler.calls:
            called.answer()
        await until(queue.is_empty)
        stats = await queue.client.info("commandstats")
        assert stats["cmdstat_exec"]["calls"] == 1
        assert stats["cmdstat_xadd"]["calls"] == 1
        assert len(await queue.replies()) == 50


async def test_calls_from_before_the_first_consumer(queue):
    """They wait for the first consumer."""
    number = await queue.put()
    async with consuming(queue):
        assert (await queue.reply(number)).verdict == ALLOW


# --------------------------------------------------------------------------------------- what reaches no worker


async def test_expired_work_is_dropped(queue):
    """A call whose deadline is over is dropped without calling the worker."""
    await queue.put(b"late", deadline=await queue.now() - 1)
    number = await queue.put(b"timely")
    async with consuming(queue) as running:
        await queue.reply(number)
        await until(queue.is_empty)
        assert running.handler.documents == [b"timely"]
        assert running.events["expired"] == 1


def foreign_seals(tmp_path):
    """Seals of another key file, for the same queue."""
    file = tmp_path / "other-keys"
    file.write_text(base64.b64encode(os.urandom(32)).decode())
    return QueueSeals(STREAM, file)


UNREADABLE = {
    "no seal": {"m": b"\x01" * 100},
    "nothing": {"m": None},
    "empty": {"m": b""},
    "another deadline": {"d": 2**47},
    "a deadline that is none": {"d": "soon"},
    "no deadline": {"d": None},
    "another id": {"i": b"\0" * 8},
    "no id": {"i": None},
    "an id that is too long": {"i": b"1" * 10_000},
    "another gateway": {"g": "0" * 32},
    "a gateway that is none": {"g": b"\xff\0"},
    "another field besides": {"m": b"?", "x": "y"},
}


@pytest.mark.parametrize("name", UNREADABLE)
async def test_an_unreadable_entry(queue, log, name):
    """It is dropped, counted and logged; the next call is answered."""
    await queue.put(b"bad", **UNREADABLE[name])
    number = await queue.put(b"good")
    async with consuming(queue) as running:
        await queue.reply(number)
        await until(queue.is_empty)
        assert running.handler.documents == [b"good"]
        assert running.events["unreadable"] == 1
        assert any("no gateway with this key file has written" in entry["event"] for entry in log)


async def test_sealed_messages_without_a_request(queue):
    """Authentic messages without a valid request are dropped, and counted."""
    for content in (b"", b"\xff" * 20, q.Request(once=True)):
        await queue.put_request(content)
    number = await queue.put()
    async with consuming(queue) as running:
        await queue.reply(number)
        await until(queue.is_empty)
        assert running.events["unreadable"] == 3


async def test_a_call_of_another_key_or_lane(queue, tmp_path):
    """A call sealed with another key, or for another lane, is dropped."""
    await queue.put(b"foreign", seals=foreign_seals(tmp_path))
    await queue.put(b"elsewhere", lane="0" * 32)
    number = await queue.put(b"good")
    async with consuming(queue) as running:
        await queue.reply(number)
        await until(queue.is_empty)
        assert running.handler.documents == [b"good"]


async def test_many_unreadable_entries_are_one_line(queue, log):
    """An attacker cannot fill the log with them."""
    for _ in range(200):
        await queue.client.xadd(queue.names.calls(LANE), {"x": "y"})
    async with consuming(queue) as running:
        await until(lambda: running.events["unreadable"] == 200)
        await until(queue.is_empty)
    assert sum("no gateway with this key file has written" in entry["event"] for entry in log) == 1


async def test_a_call_with_two_entries_at_once(queue):
    """The handler is called once; its answer ends both entries."""
    async with consuming(queue, FakeHandler(holds=True)) as running:
        deadline = await queue.now() + 30_000
        number = await queue.put(deadline=deadline)
        await until(lambda: running.handler.calls)
        await queue.put(number=number, deadline=deadline)
        await until(lambda: running.events["repeated"])
        running.handler.calls[0].answer()
        await queue.reply(number)
        await until(queue.is_empty)
        assert len(running.handler.calls) == 1


async def test_a_call_that_is_written_again(queue):
    """A call that was answered recently gets the same reply from memory."""
    async with consuming(queue) as running:
        deadline = await queue.now() + 30_000
        number = await queue.put(deadline=deadline)
        await queue.reply(number)
        await queue.put(number=number, deadline=deadline)
        await queue.reply(number, 2)
        await until(queue.is_empty)
        assert len(running.handler.calls) == 1


async def test_another_deadline_is_another_call(queue):
    """A remembered reply is only for a call with the same ID and deadline."""
    async with consuming(queue) as running:
        number = await queue.put(b"1")
        await queue.reply(number)
        await queue.put(b"2", number=number, seconds=50)
        await queue.reply(number, 2)
        assert running.handler.documents == [b"1", b"2"]


# ------------------------------------------------------------------------------------------------ bounds


async def test_no_more_is_read_than_there_is_room_for(queue):
    """The other calls wait in the queue for another consumer with room."""
    async with consuming(queue, FakeHandler(holds=True), limits=ConsumerLimits(in_flight=3)) as running:
        for index in range(8):
            await queue.put(b"%d" % index)
        await until(lambda: len(running.handler.calls) == 3)
        async with consuming(queue) as other:
            await until(lambda: len(other.handler.calls) == 5)
        assert len(running.handler.calls) == 3
        running.handler.calls[0].answer()
        await queue.put(b"8")
        await until(lambda: len(running.handler.calls) == 4)


async def test_large_calls_are_read_one_by_one(queue):
    """The bytes in hand are limited, too."""
    async with consuming(queue, FakeHandler(holds=True), limits=ConsumerLimits(in_flight_bytes=100_000)) as running:
        for _ in range(4):
            await queue.put(b"x" * 80_000)
        for taken in range(1, 5):
            await until(lambda taken=taken: len(running.handler.calls) >= taken)
            assert running.consumer.in_hand <= 2
            running.handler.calls[taken - 1].answer()
        await until(queue.is_empty)


async def test_large_answers_are_several_messages(queue):
    """Replies beyond the size limit of a message are split."""
    large = pb.Outcome(allow=pb.Allow(object=b"x" * 600_000), version="1")
    async with consuming(queue, FakeHandler(holds=True)) as running:
        numbers = [await queue.put() for _ in range(3)]
        await until(lambda: len(running.handler.calls) == 3)
        for called in running.handler.calls:
            called.answer(large)
        for number in numbers:
            assert (await queue.reply(number)).verdict == large
        assert await queue.client.xlen(queue.names.replies(queue.gateway)) == 3


# ------------------------------------------------------------------------------------- gateways that are gone


async def test_an_answer_for_a_gateway_that_is_gone(queue):
    """A reply to a gateway that is gone is counted, and leaves nothing in Redis."""
    await queue.client.delete(queue.names.replies(queue.gateway))
    async with consuming(queue) as running:
        await queue.put()
        await until(lambda: running.events["orphaned"] == 1)
        await until(queue.is_empty)
        assert not await queue.client.exists(queue.names.replies(queue.gateway))


async def test_an_answer_that_cannot_be_written(queue, log):
    """If the reply stream has another type, the entry is acknowledged, and the log has the reason."""
    await queue.client.delete(queue.names.replies(queue.gateway))
    await queue.client.set(queue.names.replies(queue.gateway), "something else")
    async with consuming(queue) as running:
        await queue.put()
        await until(lambda: running.events["unwritable"] == 1)
        await until(queue.is_empty)
    assert any(entry["event"] == "replies cannot be written" for entry in log)


# ------------------------------------------------------------------------------------------- presence, lanes


async def test_presence(queue):
    """A presence has the worker's description, the lane, and the numbers of calls."""
    async with consuming(queue, FakeHandler(holds=True), limits=ConsumerLimits(in_flight=7)) as running:
        await queue.put()
        await until(lambda: running.handler.calls)

        async def has_call():
            presence = (await queue.present())[running.name]
            return presence if presence.in_flight else None

        presence = await until(has_call)
        assert pb.DescribeResponse.FromString(presence.description) == DESCRIBED
        assert (presence.lane, presence.capacity, presence.in_flight, presence.answered) == (LANE, 7, 1, 0)
        assert abs(await queue.now() - presence.at) < 30_000
        running.handler.calls[0].answer()

        async def answered():
            return (await queue.present())[running.name].answered == 1

        await until(answered)


async def test_a_worker_that_is_gone(queue):
    """Without a worker a consumer removes its presence and reads no calls; when the worker is back, it continues."""
    async with consuming(queue) as running:
        running.handler.become(None)

        async def absent():
            return not await queue.present()

        await until(absent)
        number = await queue.put()
        assert "not described" in running.consumer.why
        running.handler.become(consumer_description())
        await queue.reply(number)
        assert not running.consumer.why


async def test_a_worker_whose_claims_change(queue):
    """The consumer moves to the lane of the new claims, and answers the calls of the old one that it has in hand."""
    other = pb.DescribeResponse(worker="labels", version="2")
    lane = consumer_description(other).lane
    async with consuming(queue, FakeHandler(holds=True)) as running:
        old = await queue.put(b"old")
        await until(lambda: running.handler.calls)
        running.handler.become(consumer_description(other))

        async def moved():
            return (await queue.present())[running.name].lane == lane

        await until(moved)
        running.handler.calls[0].answer()
        await queue.reply(old)
        await until(queue.is_empty)
        await until(lambda: queue.client.exists(queue.names.calls(lane)))


async def test_a_delivery_just_after_the_worker_has_gone(queue, quick):
    """A read in progress may still deliver calls; another consumer answers them, side effects or not."""
    async with consuming(queue) as running:
        await until(lambda: queue.client.exists(queue.names.calls(LANE)))
        running.handler.consumer_description = None
        async with consuming(queue, FakeHandler(holds=True), limits=ConsumerLimits(in_flight=1)) as other:
            numbers = [await queue.put(once=True) for _ in range(4)]
            other.handler.holds = False
            for called in other.handler.calls:
                called.answer()
            for number in numbers:
                assert (await queue.reply(number)).verdict == ALLOW
            await until(queue.is_empty)
        assert running.handler.calls == []


async def test_keys_are_read_again(queue, quick):
    """After a rotation of the key file the consumer opens what the new key seals."""
    async with consuming(queue):
        old = queue.key_file.read_text()
        new = base64.b64encode(os.urandom(32)).decode() + "\n"
        queue.key_file.write_text(new + old)
        queue.seals.refresh()
        number = await queue.put()
        assert (await queue.reply(number)).verdict == ALLOW


async def test_why_the_worker_is_unavailable(queue, quick, log, monkeypatch):
    """``why`` has the current reason; each time that the worker stays unavailable, there is one warning."""
    monkeypatch.setattr(consumer_context, "REPORT_SECONDS", 0.0)
    handler = FakeHandler()
    handler.consumer_description = None

    def warned():
        return [entry["why"].rpartition(": ")[2] for entry in log if entry["log_level"] == "warning"]

    async with consuming(queue, handler, ready=False) as running:
        await until(lambda: "not described yet" in running.consumer.why)
        assert warned() == []
        for why in ("connection refused", "certificate has expired"):
            handler.why = why
            await until(lambda why=why: running.consumer.why.endswith(f": {why}"))
        assert warned() == ["connection refused"]
        handler.become(consumer_description())
        await running.ready()
        handler.become(None)
        await until(lambda: len(warned()) > 1)
        assert warned() == ["connection refused", "certificate has expired"]
