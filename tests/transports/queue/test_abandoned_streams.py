"""The last bridge of a lane goes: calls do not wait for their deadlines, and a bridge answers those that it has."""

import pytest

from gateway.engine.verdicts import Allow
from gateway.reasons import Reason
from gateway.transports.limits import ConsumerLimits
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue import abandoned_streams, commands, consumer_registry, request_exchange
from tests.transports.queue.consumers import ANSWER_SECONDS, LANE, FakeHandler, consumer_description, consuming, until
from tests.transports.queue.gateways import running_gateway

pytestmark = pytest.mark.faults

ONE_AT_A_TIME = ConsumerLimits(in_flight=1, answer_seconds=ANSWER_SECONDS)
OTHER_CLAIMS = pb.DescribeResponse(
    worker="labels",
    version="2",
    policies=[
        pb.PolicyDescription(name="p", phases=[pb.PHASE_VALIDATING]),
        pb.PolicyDescription(name="new", phases=[pb.PHASE_VALIDATING]),
    ],
)
"""Of another lane: it has one more policy."""


@pytest.fixture
def quick(monkeypatch):
    """The gateway looks at the queue all the time, with a short grace period. Bridges do not count as dead because this
    machine has paused.
    """
    monkeypatch.setattr(request_exchange, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(abandoned_streams, "GRACE_SECONDS", 0.3)
    monkeypatch.setattr(abandoned_streams, "DEAD_SECONDS", 60.0)
    monkeypatch.setattr(abandoned_streams, "IN_DOUBT_SECONDS", 60.0)


async def die(consumer, monkeypatch):
    """Kill a consumer. Only then presences expire quickly: living consumers write them each second."""
    await consumer.die()
    monkeypatch.setattr(consumer_registry, "GONE_MS", 500)
    monkeypatch.setattr(abandoned_streams, "DEAD_SECONDS", 0.1)
    monkeypatch.setattr(abandoned_streams, "IN_DOUBT_SECONDS", 0.1)


async def waiting_behind(gateway, consumer, number, **fields):
    """One call in a consumer's hand, and ``number`` calls that wait in Redis."""
    in_hand = gateway.put(b'{"in":"hand"}', **fields)
    await until(lambda: consumer.handler.calls)
    others = [gateway.put(b'{"number":%d}' % each, **fields) for each in range(number)]
    await until(lambda: gateway.worker._exchange.outbox.unsent == 0 and all(call.entry for call in opened(gateway)))
    return in_hand, others


async def is_read(queue):
    """Whether a bridge is blocked in a read."""
    return any(each["cmd"] == "xreadgroup" and "b" in each["flags"] for each in await queue.client.client_list())


def opened(gateway):
    return tuple(gateway.worker._exchange.open)


def holding():
    """A handler that answers only when the test does."""
    return FakeHandler(holds=True)


@pytest.mark.parametrize("once", [False, True], ids=["repeatable", "with side effects"])
async def test_a_last_bridge_that_stops(redis, queue, key_file, quick, once):
    """Waiting calls fail and leave the queue, side effects or not; the bridge answers the call in hand."""
    async with (
        consuming(queue, holding(), limits=ONE_AT_A_TIME) as consumer,
        running_gateway(redis, key_file) as gateway,
    ):
        await gateway.sees_bridges()
        in_hand, others = await waiting_behind(gateway, consumer, 3, once=once)
        consumer.consumer.stop()
        for each in others:
            failure = await each.answer()
            assert failure.reason is Reason.WORKER_UNAVAILABLE
            assert "no bridge takes calls" in failure.message
        await until(lambda: gateway.worker._exchange.outbox.unsent == 0)
        assert in_hand.answers == []
        assert await queue.client.xlen(queue.names.calls(LANE)) == 1
        consumer.handler.calls[0].answer()
        assert isinstance(await in_hand.answer(), Allow)
        assert consumer.handler.documents == [b'{"in":"hand"}']


async def test_the_last_bridge_is_killed(redis, queue, key_file, quick, monkeypatch):
    """Calls that may be repeated fail, delivered or not, and leave the queue."""
    async with (
        consuming(queue, holding(), limits=ONE_AT_A_TIME) as consumer,
        running_gateway(redis, key_file) as gateway,
    ):
        await gateway.sees_bridges()
        in_hand, others = await waiting_behind(gateway, consumer, 3)
        await die(consumer, monkeypatch)
        for each in (in_hand, *others):
            assert (await each.answer()).reason is Reason.WORKER_UNAVAILABLE
        await until(lambda: not opened(gateway))
        assert await queue.is_empty()


async def test_side_effects_that_a_killed_bridge_may_have_had(redis, queue, key_file, quick, monkeypatch):
    """A delivered call fails as possibly executed, the others as not delivered. No worker is called again."""
    async with (
        consuming(queue, holding(), limits=ONE_AT_A_TIME) as consumer,
        running_gateway(redis, key_file) as gateway,
    ):
        await gateway.sees_bridges()
        in_hand, others = await waiting_behind(gateway, consumer, 2, once=True)
        await die(consumer, monkeypatch)
        for each in others:
            assert "no bridge takes calls" in (await each.answer()).message
        failure = await in_hand.answer()
        assert failure.reason is Reason.WORKER_UNAVAILABLE
        assert "may have had its effect" in failure.message
        assert await queue.is_empty()
        monkeypatch.undo()
        async with consuming(queue) as second:
            await gateway.sees_bridges()
            assert isinstance(await gateway.call(b'{"next":1}', once=True), Allow)
            assert second.handler.documents == [b'{"next":1}']


async def test_the_worker_behind_the_last_bridge_is_gone(redis, queue, key_file, quick):
    """A bridge without a worker removes its presence: waiting calls fail, too."""
    async with (
        consuming(queue, holding(), limits=ONE_AT_A_TIME) as consumer,
        running_gateway(redis, key_file) as gateway,
    ):
        await gateway.sees_bridges()
        _, others = await waiting_behind(gateway, consumer, 3)
        consumer.handler.become(None)
        for each in others:
            assert (await each.answer()).reason is Reason.WORKER_UNAVAILABLE


@pytest.mark.parametrize("once", [False, True], ids=["repeatable", "with side effects"])
async def test_calls_go_by_another_lane_that_fits(redis, queue, key_file, quick, once):
    """The last bridge of a lane moves to another lane with the same policy: each call is answered once."""
    async with (
        consuming(queue, holding(), limits=ONE_AT_A_TIME) as consumer,
        running_gateway(redis, key_file) as gateway,
    ):
        await gateway.sees_bridges()
        in_hand, others = await waiting_behind(gateway, consumer, 3, once=once)
        consumer.handler.become(consumer_description(OTHER_CLAIMS))
        consumer.handler.holds = False
        # It reads no more before it has room again.
        await until(lambda: [each.message.version for each in gateway.worker.live] == ["2"])
        consumer.handler.calls[0].answer()
        for each in (in_hand, *others):
            assert isinstance(await each.answer(), Allow)
        assert len(consumer.handler.documents) == 4
        await until(queue.is_empty)


async def test_calls_that_fit_no_other_lane(redis, queue, key_file, quick):
    """They fail: no bridge has the description that they were made for."""
    async with (
        consuming(queue, holding(), limits=ONE_AT_A_TIME) as consumer,
        running_gateway(redis, key_file) as gateway,
    ):
        await gateway.sees_bridges()
        _, others = await waiting_behind(gateway, consumer, 3, fits=frozenset(gateway.worker.live))
        consumer.handler.become(consumer_description(OTHER_CLAIMS))
        for each in others:
            failure = await each.answer()
            assert failure.reason is Reason.WORKER_UNAVAILABLE
            assert "no bridge has this version of the policy" in failure.message


async def test_a_bridge_that_comes_back_in_time(redis, queue, key_file, monkeypatch):
    """No call fails because of a restart."""
    monkeypatch.setattr(request_exchange, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(abandoned_streams, "GRACE_SECONDS", 60.0)
    async with (
        consuming(queue, holding(), limits=ONE_AT_A_TIME) as consumer,
        running_gateway(redis, key_file) as gateway,
    ):
        await gateway.sees_bridges()
        in_hand, others = await waiting_behind(gateway, consumer, 3)
        consumer.consumer.stop()
        consumer.handler.calls[0].answer()
        assert isinstance(await in_hand.answer(), Allow)
        await until(lambda: gateway.events.usable == 0)
        async with consuming(queue):
            for each in others:
                assert isinstance(await each.answer(), Allow)


async def test_calls_that_were_given_back_fail_at_once(redis, queue, key_file, quick, monkeypatch):
    """A call that was delivered to a bridge whose worker has just gone fails at once, even with side effects."""
    # So that a read is in progress, and none is about to begin.
    monkeypatch.setattr(commands, "BLOCK_SECONDS", 60.0)
    async with consuming(queue) as consumer, running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        await until(lambda: is_read(queue))
        # The read in progress delivers it.
        consumer.handler.consumer_description = None
        waiting = gateway.put(once=True)
        await until(queue.pending)
        consumer.handler.become(None)
        assert (await waiting.answer()).reason is Reason.WORKER_UNAVAILABLE
        assert consumer.handler.calls == []


async def test_an_acl_without_xpending(redis, queue, key_file, quick):
    """Without XPENDING calls wait for their deadlines, and nothing else fails."""
    rights = "+@all -xpending"
    await queue.client.execute_command("ACL", "SETUSER", "gate", "on", ">secret", "~{test}:*", *rights.split())
    url = f"redis://gate:secret@127.0.0.1:{redis.port}"
    try:
        async with (
            consuming(queue, holding(), limits=ONE_AT_A_TIME) as consumer,
            running_gateway(url, key_file) as gateway,
        ):
            await gateway.sees_bridges()
            _, (waiting,) = await waiting_behind(gateway, consumer, 1, seconds=3.0)
            consumer.handler.become(None)
            assert (await waiting.answer()).reason is Reason.WORKER_TIMEOUT
            assert gateway.events["redis_lost"] == 0
    finally:
        await queue.client.execute_command("ACL", "DELUSER", "gate")
