"""A worker behind a queue is called through Redis and its bridges."""

import asyncio

import pytest

from gateway.engine.verdicts import Allow, Failure
from gateway.reasons import Reason
from gateway.redis.key_files import secrets_of
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue import queue_monitor
from gateway.transports.worker_channel import WorkerError
from tests.integration.process import WAIT_SECONDS
from tests.transports.queue.consumers import FakeHandler, Queue, consumer_description, consuming, until
from tests.transports.queue.gateways import running_gateway


def described(version="2", **fields):
    return pb.DescribeResponse(
        worker="labels",
        version=version,
        policies=[pb.PolicyDescription(name="p", phases=[pb.PHASE_VALIDATING], **fields)],
    )


READS_LABELS = pb.Claim(pointers=pb.Claim.Pointers(pointers=["/object/metadata/labels"]))


async def test_calls_are_answered_and_leave_nothing_behind(redis, queue, key_file):
    """A hundred calls at once are answered; then lane, pending entries and reply stream are empty."""
    async with consuming(queue) as consumer, running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        waiting = [gateway.put(b'{"number":%d}' % number) for number in range(100)]
        assert [type(await each.answer()) for each in waiting] == [Allow] * 100
        assert sorted(consumer.handler.documents) == sorted(b'{"number":%d}' % number for number in range(100))
        await until(queue.is_empty)
        replies = [name async for name in queue.client.scan_iter("{test}:replies:*")]
        assert len(replies) == 1
        await gateway.call()

        async def trimmed():
            return await queue.client.xlen(replies[0]) == 0

        await until(trimmed)
    assert not await queue.client.exists(replies[0])
    assert gateway.events["unsolicited"] == 0


async def test_present_bridges_describe_the_worker(redis, queue, key_file):
    """Descriptions of present bridges are live and counted; a bridge that leaves or changes updates them."""
    async with running_gateway(redis, key_file) as gateway:
        changes = []
        gateway.worker.listen(lambda: changes.append(dict(gateway.worker.described())))
        await until(lambda: "no bridge" in gateway.worker.why)
        async with consuming(queue) as one:
            await gateway.sees_bridges()
            assert [each.message.version for each in gateway.worker.live] == ["1"]
            assert gateway.worker.why == ""
            async with consuming(queue):
                await gateway.sees_bridges(2)
                assert list(gateway.worker.described().values()) == [2]
                one.handler.become(consumer_description(described(inputs=READS_LABELS)))
                await until(lambda: len(gateway.worker.live) == 2)
            await one.stop()
        await until(lambda: "2" in {each.message.version for each in gateway.worker.live} or not gateway.worker.live)
        assert changes
    assert gateway.events.usable == 0


async def test_settings_are_validated_by_a_bridge_of_the_lane(redis, queue, key_file):
    """ValidateSettings goes through the queue; an error of the bridge is a WorkerError."""
    handler = FakeHandler()
    handler.settings = pb.ValidateSettingsResponse(errors=[pb.SettingsError(pointer="/a", message="no")])
    async with consuming(queue, handler), running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        (lane,) = gateway.worker.all_with(gateway.worker.live[0])
        response = await lane.validate_settings("p", b'{"a":1}')
        assert response.errors[0].message == "no"
        assert handler.calls[-1].settings == b'{"a":1}'
        handler.settings = q.Error(reason="WORKER_UNAVAILABLE", message="it is away")
        with pytest.raises(WorkerError, match="it is away"):
            await lane.validate_settings("p", b"{}")


async def test_a_call_goes_to_the_claims_that_it_was_made_for(redis, queue, key_file):
    """While two versions have different claims, each gets the documents that were made for it."""
    old, new = FakeHandler(), FakeHandler()
    new.consumer_description = consumer_description(described(inputs=READS_LABELS))
    async with consuming(queue, old), consuming(queue, new), running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges(2)
        fits = {each.message.version: frozenset((each,)) for each in gateway.worker.live}
        for number in range(10):
            await gateway.call(b'{"old":%d}' % number, fits=fits["1"])
            await gateway.call(b'{"new":%d}' % number, fits=fits["2"])
        assert all(b"old" in each for each in old.documents)
        assert all(b"new" in each for each in new.documents)
        assert (len(old.documents), len(new.documents)) == (10, 10)


async def test_no_bridge_with_that_version_is_a_failure_at_once(redis, queue, key_file):
    """A call for a description that no bridge has any more does not wait for its deadline."""
    async with consuming(queue) as consumer, running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        gone = frozenset(gateway.worker.live)
        consumer.handler.become(consumer_description(described()))
        await until(lambda: gateway.worker.live and gateway.worker.live[0] not in gone)
        failure = await gateway.call(fits=gone)
        assert failure.reason is Reason.WORKER_UNAVAILABLE
        assert "no bridge has this version of the policy" in failure.message


async def test_without_a_bridge_it_is_unavailable_at_once(redis, key_file):
    """Without a bridge the failure states what to start."""
    async with running_gateway(redis, key_file) as gateway:
        failure = await gateway.call(seconds=3600)
        assert failure.reason is Reason.WORKER_UNAVAILABLE
        assert "no bridge takes calls" in failure.message
        assert failure.message.count("\n") == 0


async def test_a_call_ends_at_its_deadline(redis, queue, key_file):
    """A worker that does not answer fails the call at its deadline, and nothing stays in the queue."""
    async with consuming(queue, FakeHandler(holds=True)) as consumer, running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        failure = await gateway.call(seconds=1.0)
        assert failure.reason is Reason.WORKER_TIMEOUT
        assert gateway.events["expired"] == 1
        # Empty if the bridge read the call too late.
        for called in consumer.handler.calls:
            called.answer()
        await until(queue.is_empty)


async def test_a_canceled_call_is_not_answered(redis, queue, key_file):
    """A canceled call gets no answer; one that no bridge has read is deleted."""
    async with consuming(queue, FakeHandler(holds=True)) as consumer, running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        waiting = gateway.put()
        await until(lambda: consumer.handler.calls)
        waiting.cancel()
        at_once = gateway.put()
        at_once.cancel()
        consumer.handler.calls[0].answer()
        await until(queue.is_empty)
        await asyncio.wait_for(gateway.worker.idle(), WAIT_SECONDS)
        assert waiting.answers == at_once.answers == []
        assert len(consumer.handler.calls) == 1


async def test_a_call_with_side_effects_is_not_deleted(redis, queue, key_file):
    """A canceled call with side effects still reaches its worker; until then the QueueWorker is not idle."""
    async with consuming(queue, FakeHandler(holds=True)) as consumer, running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        waiting = gateway.put(once=True)
        waiting.cancel()
        await until(lambda: consumer.handler.calls)
        assert consumer.handler.calls[0].once
        idle = asyncio.create_task(gateway.worker.idle())
        assert not idle.done()
        consumer.handler.calls[0].answer()
        await asyncio.wait_for(idle, WAIT_SECONDS)
        assert waiting.answers == []


async def test_a_bridges_error_is_a_failure_with_its_reason(redis, queue, key_file):
    """A bridge's error keeps its reason, unless a bridge may not give it."""
    async with consuming(queue, FakeHandler(holds=True)) as consumer, running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        for reported, reason in (("WORKER_UNAVAILABLE", Reason.WORKER_UNAVAILABLE), ("DENIED", Reason.WORKER_FAILURE)):
            waiting = gateway.put()
            await until(lambda: len(consumer.handler.calls) > 0)
            consumer.handler.calls.pop().answer(q.Error(reason=reported, message="broken\nhere"))
            failure = await waiting.answer()
            assert isinstance(failure, Failure)
            assert failure.reason is reason
            assert "broken here" in failure.message


async def test_two_gateways_share_a_queue(redis, queue, key_file):
    """Each gets its own answers."""
    async with consuming(queue), running_gateway(redis, key_file) as one, running_gateway(redis, key_file) as two:
        await one.sees_bridges()
        await two.sees_bridges()
        waiting = [each.put() for _ in range(50) for each in (one, two)]
        assert {type(await each.answer()) for each in waiting} == {Allow}
        assert one.events["unsolicited"] == two.events["unsolicited"] == 0


async def test_a_document_of_the_largest_size(redis, queue, key_file):
    """A document of 20 MB passes through the queue, and is answered."""
    async with consuming(queue) as consumer, running_gateway(redis, key_file, queue_redis_seconds=20.0) as gateway:
        await gateway.sees_bridges()
        document = b'{"a":"%s"}' % (b"x" * 20_000_000)
        assert isinstance(await gateway.call(document), Allow)
        assert consumer.handler.documents == [document]


async def test_keys_can_be_replaced(redis, queue, key_file):
    """New keys are taken up while both sides run, without a failed call."""
    async with consuming(queue), running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        first = key_file.read_text()
        second = "/" * 42 + "8=\n"
        for content in (first + second, second + first, second):
            key_file.write_text(content)
            waiting = [gateway.put() for _ in range(5)]
            # Before the next step both have to have read it, as docs say.
            for seals in (queue.seals, gateway.worker._seals):
                await until(lambda seals=seals: seals._secrets == secrets_of(key_file))
            waiting += [gateway.put() for _ in range(5)]
            assert {type(await each.answer()) for each in waiting} == {Allow}


async def test_a_missing_key_file_is_said_until_it_is_there(redis, queue, key_file):
    """CONFIGURATION, with the file's name; as soon as the file is there, calls go through."""
    content = key_file.read_text()
    async with consuming(queue):
        key_file.unlink()
        async with running_gateway(redis, key_file) as gateway:
            failure = await gateway.call()
            assert failure.reason is Reason.CONFIGURATION
            assert str(key_file) in failure.message
            assert str(key_file) in gateway.worker.why
            key_file.write_text(content)
            await gateway.sees_bridges()
            assert isinstance(await gateway.call(), Allow)


async def test_a_bridge_with_another_key_file_is_distinguished_from_none(redis, key_file, tmp_path, monkeypatch):
    """Calls fail with this gateway's fingerprints to compare; when that bridge has died, as without a bridge."""
    monkeypatch.setattr(queue_monitor, "GONE_MS", 300)
    other = tmp_path / "other-keys"
    other.write_text("/" * 42 + "8=\n")
    strange = Queue(redis.url, other)
    async with running_gateway(redis, key_file) as gateway:
        await until(lambda: "no bridge takes calls from it" in gateway.worker.why)
        async with consuming(strange):
            await until(lambda: "another key file" in gateway.worker.why)
            failure = await gateway.call()
            assert failure.reason is Reason.WORKER_UNAVAILABLE
            assert "another key file" in failure.message
            (ours,), (theirs,) = gateway.worker._seals.fingerprints, strange.seals.fingerprints
            assert ours in failure.message
            assert theirs not in failure.message
        await until(lambda: "no bridge takes calls from it" in gateway.worker.why)
    await strange.client.aclose()


async def test_without_a_worker_the_bridges_own_reason_is_named(redis, key_file):
    """The queue, the key file or the worker behind the bridge: its /readyz and log say which."""
    async with running_gateway(redis, key_file) as gateway:
        failure = await gateway.call()
        assert failure.reason is Reason.WORKER_UNAVAILABLE
        assert all(word in failure.message for word in ("--queue", "--key-file", "worker is unavailable", "/readyz"))


async def test_a_lost_redis_is_logged_with_the_queue(redis, key_file, log):
    """The reason does not suggest TLS, because the connection has worked without it."""
    async with consuming(Queue(redis.url, key_file)), running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        await asyncio.to_thread(redis.kill)
        await until(lambda: gateway.worker.why)
        await until(lambda: any("Redis is unavailable" in entry.get("why", "") for entry in log))
    lost = [entry for entry in log if entry["event"] == "Redis is lost"]
    assert [entry["queue"] for entry in lost] == ["test"]
    assert not any("TLS" in str(entry.get("why")) for entry in log)
