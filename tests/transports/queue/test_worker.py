"""A worker behind a queue is called as every other one is, by way of Redis and whoever takes from there."""

import asyncio

import pytest

from gateway.engine.verdicts import Allow, Failure
from gateway.reasons import Reason
from gateway.redis.key_files import secrets_of
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue import queue_monitor as monitor
from gateway.transports.worker_channel import WorkerError
from tests.integration.process import WAIT_SECONDS
from tests.transports.queue.consumers import FakeHandler, Queue, consumer_description, consuming, until
from tests.transports.queue.gateways import gateway


def described(version="2", **fields):
    return pb.DescribeResponse(
        worker="labels",
        version=version,
        policies=[pb.PolicyDescription(name="p", phases=[pb.PHASE_VALIDATING], **fields)],
    )


READS_LABELS = pb.Claim(pointers=pb.Claim.Pointers(pointers=["/object/metadata/labels"]))


async def test_calls_are_answered_and_leave_nothing_behind(redis, queue, key_file):
    """A hundred calls at once all have their answer; then nothing is in the lane, pending, or among the replies."""
    async with consuming(queue) as consumer, gateway(redis, key_file) as made:
        await made.met()
        waiting = [made.put(b'{"number":%d}' % number) for number in range(100)]
        assert [type(await each.answer()) for each in waiting] == [Allow] * 100
        assert sorted(consumer.handler.documents) == sorted(b'{"number":%d}' % number for number in range(100))
        await until(queue.is_empty)
        replies = [name async for name in queue.client.scan_iter("{test}:replies:*")]
        assert len(replies) == 1
        await made.call()

        async def trimmed():
            return await queue.client.xlen(replies[0]) == 0

        await until(trimmed)
    assert not await queue.client.exists(replies[0])
    assert made.events["unsolicited"] == 0


async def test_it_is_described_by_those_who_are_there(redis, queue, key_file):
    """What bridges say of themselves is live and counted; who has left, or says something else, changes it."""
    async with gateway(redis, key_file) as made:
        changes = []
        made.worker.listen(lambda: changes.append(dict(made.worker.described())))
        await until(lambda: "no bridge" in made.worker.why)
        async with consuming(queue) as one:
            await made.met()
            assert [each.message.version for each in made.worker.live] == ["1"]
            assert made.worker.why == ""
            async with consuming(queue):
                await made.met(2)
                assert list(made.worker.described().values()) == [2]
                one.handler.become(consumer_description(described(inputs=READS_LABELS)))
                await until(lambda: len(made.worker.live) == 2)
            await one.stop()
        await until(lambda: "2" in {each.message.version for each in made.worker.live} or not made.worker.live)
        assert changes
    assert made.events.usable == 0


async def test_settings_are_judged_by_somebody_of_the_lane(redis, queue, key_file):
    """ValidateSettings goes through the queue; an error of the bridge is a WorkerError."""
    judge = FakeHandler()
    judge.settings = pb.ValidateSettingsResponse(errors=[pb.SettingsError(pointer="/a", message="no")])
    async with consuming(queue, judge), gateway(redis, key_file) as made:
        await made.met()
        (lane,) = made.worker.all_with(made.worker.live[0])
        said = await lane.validate_settings("p", b'{"a":1}')
        assert said.errors[0].message == "no"
        assert judge.called[-1].settings == b'{"a":1}'
        judge.settings = q.Error(reason="WORKER_UNAVAILABLE", message="it is away")
        with pytest.raises(WorkerError, match="it is away"):
            await lane.validate_settings("p", b"{}")


async def test_a_question_goes_to_those_who_claim_what_it_was_made_for(redis, queue, key_file):
    """While two versions claim different things, each gets the documents that were made for it."""
    old, new = FakeHandler(), FakeHandler()
    new.consumer_description = consumer_description(described(inputs=READS_LABELS))
    async with consuming(queue, old), consuming(queue, new), gateway(redis, key_file) as made:
        await made.met(2)
        fits = {each.message.version: frozenset((each,)) for each in made.worker.live}
        for number in range(10):
            await made.call(b'{"old":%d}' % number, fits=fits["1"])
            await made.call(b'{"new":%d}' % number, fits=fits["2"])
        assert all(b"old" in each for each in old.documents)
        assert all(b"new" in each for each in new.documents)
        assert (len(old.documents), len(new.documents)) == (10, 10)


async def test_nobody_with_that_version_is_a_failure_at_once(redis, queue, key_file):
    """An ask for a description that nobody has any more does not wait for its deadline."""
    async with consuming(queue) as consumer, gateway(redis, key_file) as made:
        await made.met()
        gone = frozenset(made.worker.live)
        consumer.handler.become(consumer_description(described()))
        await until(lambda: made.worker.live and made.worker.live[0] not in gone)
        failure = await made.call(fits=gone)
        assert failure.reason is Reason.WORKER_UNAVAILABLE
        assert "no bridge has this version of the policy" in failure.message


async def test_without_a_bridge_it_is_unavailable_at_once(redis, key_file):
    """Nobody is there: the failure says what to start."""
    async with gateway(redis, key_file) as made:
        failure = await made.call(seconds=3600)
        assert failure.reason is Reason.WORKER_UNAVAILABLE
        assert "no bridge takes calls" in failure.message
        assert failure.message.count("\n") == 0


async def test_an_call_ends_at_its_deadline(redis, queue, key_file):
    """A worker that says nothing costs the call its time, and leaves nothing in the queue."""
    async with consuming(queue, FakeHandler(holds=True)) as consumer, gateway(redis, key_file) as made:
        await made.met()
        failure = await made.call(seconds=1.0)
        assert failure.reason is Reason.WORKER_TIMEOUT
        assert made.events["expired"] == 1
        # None, where its bridge came to it too late.
        for called in consumer.handler.called:
            called.answer()
        await until(queue.is_empty)


async def test_a_cancelled_call_is_not_answered(redis, queue, key_file):
    """Nobody hears of it; one that nobody has taken yet is taken out."""
    async with consuming(queue, FakeHandler(holds=True)) as consumer, gateway(redis, key_file) as made:
        await made.met()
        waiting = made.put()
        await until(lambda: consumer.handler.called)
        waiting.cancel()
        at_once = made.put()
        at_once.cancel()
        consumer.handler.called[0].answer()
        await until(queue.is_empty)
        await asyncio.wait_for(made.worker.idle(), WAIT_SECONDS)
        assert waiting.answers == at_once.answers == []
        assert len(consumer.handler.called) == 1


async def test_a_policy_with_side_effects_is_not_taken_back(redis, queue, key_file):
    """Its cancel silences it, and the worker is called all the same; until then the worker is not idle."""
    async with consuming(queue, FakeHandler(holds=True)) as consumer, gateway(redis, key_file) as made:
        await made.met()
        waiting = made.put(once=True)
        waiting.cancel()
        await until(lambda: consumer.handler.called)
        assert consumer.handler.called[0].once
        idle = asyncio.create_task(made.worker.idle())
        assert not idle.done()
        consumer.handler.called[0].answer()
        await asyncio.wait_for(idle, WAIT_SECONDS)
        assert waiting.answers == []


async def test_a_bridges_error_is_a_failure_with_its_reason(redis, queue, key_file):
    """What went wrong between bridge and worker is told as if the gateway had called; not every reason may be given."""
    async with consuming(queue, FakeHandler(holds=True)) as consumer, gateway(redis, key_file) as made:
        await made.met()
        for said, reason in (("WORKER_UNAVAILABLE", Reason.WORKER_UNAVAILABLE), ("DENIED", Reason.WORKER_FAILURE)):
            waiting = made.put()
            await until(lambda: len(consumer.handler.called) > 0)
            consumer.handler.called.pop().answer(q.Error(reason=said, message="broken\nhere"))
            failure = await waiting.answer()
            assert isinstance(failure, Failure)
            assert failure.reason is reason
            assert "broken here" in failure.message


async def test_two_gateways_share_a_queue(redis, queue, key_file):
    """Each gets its own answers."""
    async with consuming(queue), gateway(redis, key_file) as one, gateway(redis, key_file) as two:
        await one.met()
        await two.met()
        waiting = [each.put() for _ in range(50) for each in (one, two)]
        assert {type(await each.answer()) for each in waiting} == {Allow}
        assert one.events["unsolicited"] == two.events["unsolicited"] == 0


async def test_a_document_of_the_largest_size(redis, queue, key_file):
    """20 MB go through the queue, and back comes an answer."""
    async with consuming(queue) as consumer, gateway(redis, key_file, queue_redis_seconds=20.0) as made:
        await made.met()
        document = b'{"a":"%s"}' % (b"x" * 20_000_000)
        assert isinstance(await made.call(document), Allow)
        assert consumer.handler.documents == [document]


async def test_keys_can_be_replaced(redis, queue, key_file):
    """New keys are taken up while both sides run, without a failed call."""
    async with consuming(queue), gateway(redis, key_file) as made:
        await made.met()
        first = key_file.read_text()
        second = "/" * 42 + "8=\n"
        for content in (first + second, second + first, second):
            key_file.write_text(content)
            waiting = [made.put() for _ in range(5)]
            # Before the next step both have to have read it, as docs say.
            for seals in (queue.seals, made.worker._seals):
                await until(lambda seals=seals: seals._secrets == secrets_of(key_file))
            waiting += [made.put() for _ in range(5)]
            assert {type(await each.answer()) for each in waiting} == {Allow}


async def test_a_missing_key_file_is_said_until_it_is_there(redis, queue, key_file):
    """CONFIGURATION, with the file's name; as soon as the file is there, calls go through."""
    content = key_file.read_text()
    async with consuming(queue):
        key_file.unlink()
        async with gateway(redis, key_file) as made:
            failure = await made.call()
            assert failure.reason is Reason.CONFIGURATION
            assert str(key_file) in failure.message
            assert str(key_file) in made.worker.why
            key_file.write_text(content)
            await made.met()
            assert isinstance(await made.call(), Allow)


async def test_a_bridge_with_another_key_file_is_told_from_none(redis, key_file, tmp_path, monkeypatch):
    """Calls fail with what to compare, and this gateway's fingerprints; when that bridge has died, nobody is there."""
    monkeypatch.setattr(monitor, "GONE_MS", 300)
    other = tmp_path / "other-keys"
    other.write_text("/" * 42 + "8=\n")
    strange = Queue(redis.url, other)
    async with gateway(redis, key_file) as made:
        await until(lambda: "no bridge takes calls from it" in made.worker.why)
        async with consuming(strange):
            await until(lambda: "another key file" in made.worker.why)
            failure = await made.call()
            assert failure.reason is Reason.WORKER_UNAVAILABLE
            assert "another key file" in failure.message
            (ours,), (theirs,) = made.worker._seals.fingerprints, strange.seals.fingerprints
            assert ours in failure.message
            assert theirs not in failure.message
        await until(lambda: "no bridge takes calls from it" in made.worker.why)
    await strange.client.aclose()


async def test_where_nobody_is_the_bridges_own_words_are_named(redis, key_file):
    """The queue, the key file or the worker behind the bridge: its /readyz and log say which."""
    async with gateway(redis, key_file) as made:
        failure = await made.call()
        assert failure.reason is Reason.WORKER_UNAVAILABLE
        assert all(word in failure.message for word in ("--queue", "--key-file", "worker is unavailable", "/readyz"))


async def test_a_lost_redis_is_told_by_the_name_of_the_queue(redis, key_file, log):
    """And not called whether it wants TLS: it has worked without."""
    async with consuming(Queue(redis.url, key_file)), gateway(redis, key_file) as made:
        await made.met()
        await asyncio.to_thread(redis.kill)
        await until(lambda: made.worker.why)
        await until(lambda: any("Redis is unavailable" in entry.get("why", "") for entry in log))
    lost = [entry for entry in log if entry["event"] == "Redis is lost"]
    assert [entry["queue"] for entry in lost] == ["test"]
    assert not any("TLS" in str(entry.get("why")) for entry in log)
