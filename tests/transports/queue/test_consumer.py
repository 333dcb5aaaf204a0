"""What a consumer does with what it takes: answered once, by somebody, or dropped; and nothing of it stays in Redis."""

import base64
import os
from time import monotonic

import pytest

from gateway.transports.limits import ConsumerLimits
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue import consumer_context as consuming_module
from gateway.transports.queue import heartbeat
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
    """It listens, as a gateway does."""
    return await queue.listen()


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """No consumer takes another one for dead because this machine has stood still."""
    monkeypatch.setattr(heartbeat, "DEAD_SECONDS", 60.0)


@pytest.fixture
def quick(monkeypatch):
    """What a consumer does each second it does all the time."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 0.02)


# --------------------------------------------------------------------------------------------------- answers


async def test_an_call_is_judged_and_answered(queue):
    """The judge is given the call as it was put, and its outcome comes back as it was given."""
    async with consuming(queue, FakeHandler(holds=True)) as running:
        number = await queue.put(b'{"a":1}')
        (called,) = await until(lambda: running.handler.called)
        assert (called.call.policy, called.call.document, called.call.uid, called.once) == ("p", b'{"a":1}', "u", False)
        outcome = pb.Outcome(deny=pb.Deny(message="no"), warnings=["w"], audit_annotations={"k": "v"}, version="7")
        called.answer(outcome)
        assert (await queue.reply(number)).verdict == outcome
        await until(queue.is_empty)


async def test_a_judge_is_told_until_when_somebody_waits(queue, monkeypatch):
    """In seconds of its own clock: what is left by Redis', at the moment at which Redis told its time."""
    now = monotonic()
    # The consumer's own clock stands still: Redis' is all that passes here.
    monkeypatch.setattr(heartbeat, "monotonic", lambda: now)
    before = await queue.now()
    async with consuming(queue, FakeHandler(holds=True)) as running:
        await queue.put(deadline=before + 60_000)
        (called,) = await until(lambda: running.handler.called)
        after = await queue.now()
    assert now + 60 - (after - before + 1) / 1000 <= called.until <= now + 60.001


async def test_settings_are_judged(queue):
    """ValidateSettings goes the same way."""
    async with consuming(queue) as running:
        running.handler.settings = pb.ValidateSettingsResponse(errors=[pb.SettingsError(message="wrong")])
        request = pb.ValidateSettingsRequest(policy="p", settings=b'{"a":1}')
        number = await queue.put_request(q.Request(validate_settings=request))
        assert (await queue.reply(number)).settings == running.handler.settings
        assert running.handler.called == [request]


async def test_a_thousand_calls(queue):
    """All of them are answered, each once, and nothing is left."""
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
    """However many they are: one EXEC, in which their entries are done."""
    async with consuming(queue, FakeHandler(holds=True)) as running:
        for _ in range(50):
            await queue.put()
        await until(lambda: len(running.handler.called) == 50)
        await queue.client.config_resetstat()
        for called in running.handler.called:
            called.answer()
        await until(queue.is_empty)
        stats = await queue.client.info("commandstats")
        assert stats["cmdstat_exec"]["calls"] == 1
        assert stats["cmdstat_xadd"]["calls"] == 1
        assert len(await queue.replies()) == 50


async def test_calls_that_were_there_before_the_first_consumer(queue):
    """They wait for it."""
    number = await queue.put()
    async with consuming(queue):
        assert (await queue.reply(number)).verdict == ALLOW


# --------------------------------------------------------------------------------------- what is not put to it


async def test_expired_work_is_dropped(queue):
    """Nobody is called about what nobody waits for."""
    await queue.put(b"late", deadline=await queue.now() - 1)
    number = await queue.put(b"timely")
    async with consuming(queue) as running:
        await queue.reply(number)
        await until(queue.is_empty)
        assert running.handler.documents == [b"timely"]
        assert running.events["expired"] == 1


def strangers_seals(tmp_path):
    """Those of somebody else, for the same queue."""
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
async def test_an_entry_that_is_no_message(queue, log, name):
    """It is dropped, counted, said in the log; what comes after it is answered."""
    await queue.put(b"bad", **UNREADABLE[name])
    number = await queue.put(b"good")
    async with consuming(queue) as running:
        await queue.reply(number)
        await until(queue.is_empty)
        assert running.handler.documents == [b"good"]
        assert running.events["unreadable"] == 1
        assert any("no gateway with this key file has written" in entry["event"] for entry in log)


async def test_messages_that_are_no_questions(queue):
    """Sealed as they should be, and still nothing that can be called."""
    for content in (b"", b"\xff" * 20, q.Request(once=True)):
        await queue.put_request(content)
    number = await queue.put()
    async with consuming(queue) as running:
        await queue.reply(number)
        await until(queue.is_empty)
        assert running.events["unreadable"] == 3


async def test_an_call_of_another_key_or_lane(queue, tmp_path):
    """What was sealed with another key, or for another lane, is no message here."""
    await queue.put(b"strange", seals=strangers_seals(tmp_path))
    await queue.put(b"astray", lane="0" * 32)
    number = await queue.put(b"good")
    async with consuming(queue) as running:
        await queue.reply(number)
        await until(queue.is_empty)
        assert running.handler.documents == [b"good"]


async def test_many_entries_that_are_no_messages_are_one_line(queue, log):
    """Whoever writes them cannot fill the log."""
    for _ in range(200):
        await queue.client.xadd(queue.names.calls(LANE), {"x": "y"})
    async with consuming(queue) as running:
        await until(lambda: running.events["unreadable"] == 200)
        await until(queue.is_empty)
    assert sum("no gateway with this key file has written" in entry["event"] for entry in log) == 1


async def test_an_call_that_comes_twice_at_once(queue):
    """The judge is called once; both entries are done with its answer."""
    async with consuming(queue, FakeHandler(holds=True)) as running:
        deadline = await queue.now() + 30_000
        number = await queue.put(deadline=deadline)
        await until(lambda: running.handler.called)
        await queue.put(number=number, deadline=deadline)
        await until(lambda: running.events["repeated"])
        running.handler.called[0].answer()
        await queue.reply(number)
        await until(queue.is_empty)
        assert len(running.handler.called) == 1


async def test_an_call_that_comes_again(queue):
    """What was answered lately is answered again from memory."""
    async with consuming(queue) as running:
        deadline = await queue.now() + 30_000
        number = await queue.put(deadline=deadline)
        await queue.reply(number)
        await queue.put(number=number, deadline=deadline)
        await queue.reply(number, 2)
        await until(queue.is_empty)
        assert len(running.handler.called) == 1


async def test_another_deadline_is_another_call(queue):
    """What is answered again is exactly the question that was answered."""
    async with consuming(queue) as running:
        number = await queue.put(b"1")
        await queue.reply(number)
        await queue.put(b"2", number=number, seconds=50)
        await queue.reply(number, 2)
        assert running.handler.documents == [b"1", b"2"]


# ------------------------------------------------------------------------------------------------ bounds


async def test_no_more_is_taken_than_there_is_room_for(queue):
    """The rest waits in the queue, for whoever has room."""
    async with consuming(queue, FakeHandler(holds=True), limits=ConsumerLimits(in_flight=3)) as running:
        for index in range(8):
            await queue.put(b"%d" % index)
        await until(lambda: len(running.handler.called) == 3)
        async with consuming(queue) as other:
            await until(lambda: len(other.handler.called) == 5)
        assert len(running.handler.called) == 3
        running.handler.called[0].answer()
        await queue.put(b"8")
        await until(lambda: len(running.handler.called) == 4)


async def test_large_calls_are_taken_one_by_one(queue):
    """Bytes are bounded too: beyond the bound nothing is taken, whatever the number."""
    async with consuming(queue, FakeHandler(holds=True), limits=ConsumerLimits(in_flight_bytes=100_000)) as running:
        for _ in range(4):
            await queue.put(b"x" * 80_000)
        for taken in range(1, 5):
            await until(lambda taken=taken: len(running.handler.called) >= taken)
            assert running.consumer.in_hand <= 2
            running.handler.called[taken - 1].answer()
        await until(queue.is_empty)


async def test_large_answers_are_several_messages(queue):
    """A gateway is not made to open all of them at one go."""
    large = pb.Outcome(allow=pb.Allow(object=b"x" * 600_000), version="1")
    async with consuming(queue, FakeHandler(holds=True)) as running:
        numbers = [await queue.put() for _ in range(3)]
        await until(lambda: len(running.handler.called) == 3)
        for called in running.handler.called:
            called.answer(large)
        for number in numbers:
            assert (await queue.reply(number)).verdict == large
        assert await queue.client.xlen(queue.names.replies(queue.gateway)) == 3


# ------------------------------------------------------------------------------------- gateways that are gone


async def test_an_answer_for_a_gateway_that_is_gone(queue):
    """It leaves nothing behind, and is counted."""
    await queue.client.delete(queue.names.replies(queue.gateway))
    async with consuming(queue) as running:
        await queue.put()
        await until(lambda: running.events["unheard"] == 1)
        await until(queue.is_empty)
        assert not await queue.client.exists(queue.names.replies(queue.gateway))


async def test_an_answer_that_cannot_be_written(queue, log):
    """Where something else stands, the entry is done all the same, and the log says why."""
    await queue.client.delete(queue.names.replies(queue.gateway))
    await queue.client.set(queue.names.replies(queue.gateway), "something else")
    async with consuming(queue) as running:
        await queue.put()
        await until(lambda: running.events["unwritable"] == 1)
        await until(queue.is_empty)
    assert any(entry["event"] == "replies cannot be written" for entry in log)


# ------------------------------------------------------------------------------------------- presence, lanes


async def test_presence(queue):
    """A consumer says what its worker says of itself, which lane it reads, and how it is doing."""
    async with consuming(queue, FakeHandler(holds=True), limits=ConsumerLimits(in_flight=7)) as running:
        await queue.put()
        await until(lambda: running.handler.called)

        async def said():
            presence = (await queue.present())[running.name]
            return presence if presence.in_flight else None

        presence = await until(said)
        assert pb.DescribeResponse.FromString(presence.description) == DESCRIBED
        assert (presence.lane, presence.capacity, presence.in_flight, presence.answered) == (LANE, 7, 1, 0)
        assert abs(await queue.now() - presence.at) < 30_000
        running.handler.called[0].answer()

        async def answered():
            return (await queue.present())[running.name].answered == 1

        await until(answered)


async def test_a_worker_that_is_gone(queue):
    """Nothing is taken for it, and its presence is removed; when it is back, both are as before."""
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


async def test_a_worker_that_claims_something_else_now(queue):
    """The consumer goes over to the lane of the new claims; what it has in hand of the old one is answered."""
    other = pb.DescribeResponse(worker="labels", version="2")
    lane = consumer_description(other).lane
    async with consuming(queue, FakeHandler(holds=True)) as running:
        old = await queue.put(b"old")
        await until(lambda: running.handler.called)
        running.handler.become(consumer_description(other))

        async def moved():
            return (await queue.present())[running.name].lane == lane

        await until(moved)
        running.handler.called[0].answer()
        await queue.reply(old)
        await until(queue.is_empty)
        await until(lambda: queue.client.exists(queue.names.calls(lane)))


async def test_what_comes_when_the_worker_has_just_gone(queue, quick):
    """A read that was under way may bring something still; another consumer answers it, side effects or not."""
    async with consuming(queue) as running:
        await until(lambda: queue.client.exists(queue.names.calls(LANE)))
        running.handler.consumer_description = None
        async with consuming(queue, FakeHandler(holds=True), limits=ConsumerLimits(in_flight=1)) as other:
            numbers = [await queue.put(once=True) for _ in range(4)]
            other.handler.holds = False
            for called in other.handler.called:
                called.answer()
            for number in numbers:
                assert (await queue.reply(number)).verdict == ALLOW
            await until(queue.is_empty)
        assert running.handler.called == []


async def test_keys_are_read_again(queue, quick):
    """A rotation of the key file is followed: what the new key seals is opened."""
    async with consuming(queue):
        old = queue.key_file.read_text()
        new = base64.b64encode(os.urandom(32)).decode() + "\n"
        queue.key_file.write_text(new + old)
        queue.seals.refresh()
        number = await queue.put()
        assert (await queue.reply(number)).verdict == ALLOW


async def test_why_nobody_can_be_called(queue, quick, log, monkeypatch):
    """It is why no work is taken, whatever it is by now; each time that it lasts, one warning says so."""
    monkeypatch.setattr(consuming_module, "REPORT_SECONDS", 0.0)
    judge = FakeHandler()
    judge.consumer_description = None

    def warned():
        return [entry["why"].rpartition(": ")[2] for entry in log if entry["log_level"] == "warning"]

    async with consuming(queue, judge, ready=False) as running:
        await until(lambda: "not described yet" in running.consumer.why)
        assert warned() == []
        for why in ("connection refused", "certificate has expired"):
            judge.why = why
            await until(lambda why=why: running.consumer.why.endswith(f": {why}"))
        assert warned() == ["connection refused"]
        judge.become(consumer_description())
        await running.ready()
        judge.become(None)
        await until(lambda: len(warned()) > 1)
        assert warned() == ["connection refused", "certificate has expired"]
