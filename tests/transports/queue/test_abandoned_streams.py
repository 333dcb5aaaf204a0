"""The last bridge of a lane goes: nobody waits for a whole deadline, and whoever still works on a call answers it."""

import pytest

from gateway.engine.verdicts import Allow
from gateway.reasons import Reason
from gateway.transports.limits import ConsumerLimits
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue import abandoned_streams, commands, consumer_registry, request_exchange
from tests.transports.queue.consumers import ANSWER_SECONDS, LANE, FakeHandler, consumer_description, consuming, until
from tests.transports.queue.gateways import gateway

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
"""Of another lane, for it holds one policy more."""


@pytest.fixture
def quick(monkeypatch):
    """What a gateway does each second it does all the time, and it waits for nobody as long; but nobody who has a call
    in hand is taken for dead because this machine has stood still.
    """
    monkeypatch.setattr(request_exchange, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(abandoned_streams, "GRACE_SECONDS", 0.3)
    monkeypatch.setattr(abandoned_streams, "DEAD_SECONDS", 60.0)
    monkeypatch.setattr(abandoned_streams, "IN_DOUBT_SECONDS", 60.0)


async def die(consumer, monkeypatch):
    """Kill it; from then on whoever has said nothing for a moment is gone. Not before: the living speak each second."""
    await consumer.die()
    monkeypatch.setattr(consumer_registry, "GONE_MS", 500)
    monkeypatch.setattr(abandoned_streams, "DEAD_SECONDS", 0.1)
    monkeypatch.setattr(abandoned_streams, "IN_DOUBT_SECONDS", 0.1)


async def waiting_behind(made, consumer, number, **fields):
    """One call that a consumer has in hand, and so many that wait in Redis."""
    in_hand = made.put(b'{"in":"hand"}', **fields)
    await until(lambda: consumer.handler.called)
    others = [made.put(b'{"number":%d}' % each, **fields) for each in range(number)]
    await until(lambda: made.worker._exchange.outbox.unsent == 0 and all(call.entry for call in opened(made)))
    return in_hand, others


async def is_read(queue):
    """Whether a bridge waits for calls."""
    return any(each["cmd"] == "xreadgroup" and "b" in each["flags"] for each in await queue.client.client_list())


def opened(made):
    return tuple(made.worker._exchange.open)


def forever():
    """A judge that never answers by itself, in front of whom calls wait one by one."""
    return FakeHandler(holds=True)


@pytest.mark.parametrize("once", [False, True], ids=["repeatable", "with side effects"])
async def test_a_bridge_that_is_told_to_stop_was_the_last(redis, queue, key_file, quick, once):
    """What waits fails by name and leaves the queue, side effects or not; what the bridge has in hand it answers."""
    async with consuming(queue, forever(), limits=ONE_AT_A_TIME) as consumer, gateway(redis, key_file) as made:
        await made.met()
        in_hand, others = await waiting_behind(made, consumer, 3, once=once)
        consumer.consumer.stop()
        for each in others:
            failure = await each.answer()
            assert failure.reason is Reason.WORKER_UNAVAILABLE
            assert "no bridge takes calls" in failure.message
        await until(lambda: made.worker._exchange.outbox.unsent == 0)
        assert in_hand.answers == []
        assert await queue.client.xlen(queue.names.calls(LANE)) == 1
        consumer.handler.called[0].answer()
        assert isinstance(await in_hand.answer(), Allow)
        assert consumer.handler.documents == [b'{"in":"hand"}']


async def test_the_last_bridge_is_killed(redis, queue, key_file, quick, monkeypatch):
    """What may be repeated fails, taken or not; nothing of it is left in the queue."""
    async with consuming(queue, forever(), limits=ONE_AT_A_TIME) as consumer, gateway(redis, key_file) as made:
        await made.met()
        in_hand, others = await waiting_behind(made, consumer, 3)
        await die(consumer, monkeypatch)
        for each in (in_hand, *others):
            assert (await each.answer()).reason is Reason.WORKER_UNAVAILABLE
        await until(lambda: not opened(made))
        assert await queue.is_empty()


async def test_side_effects_that_a_killed_bridge_may_have_had(redis, queue, key_file, quick, monkeypatch):
    """It fails, and says so; what nobody was given fails as such. Nothing is left, and nobody is called again."""
    async with consuming(queue, forever(), limits=ONE_AT_A_TIME) as consumer, gateway(redis, key_file) as made:
        await made.met()
        in_hand, others = await waiting_behind(made, consumer, 2, once=True)
        await die(consumer, monkeypatch)
        for each in others:
            assert "no bridge takes calls" in (await each.answer()).message
        failure = await in_hand.answer()
        assert failure.reason is Reason.WORKER_UNAVAILABLE
        assert "may have had its effect" in failure.message
        assert await queue.is_empty()
        monkeypatch.undo()
        async with consuming(queue) as second:
            await made.met()
            assert isinstance(await made.call(b'{"next":1}', once=True), Allow)
            assert second.handler.documents == [b'{"next":1}']


async def test_the_worker_behind_the_last_bridge_is_gone(redis, queue, key_file, quick):
    """The bridge stays and says that it takes nothing: what waits fails, too."""
    async with consuming(queue, forever(), limits=ONE_AT_A_TIME) as consumer, gateway(redis, key_file) as made:
        await made.met()
        _, others = await waiting_behind(made, consumer, 3)
        consumer.handler.become(None)
        for each in others:
            assert (await each.answer()).reason is Reason.WORKER_UNAVAILABLE


@pytest.mark.parametrize("once", [False, True], ids=["repeatable", "with side effects"])
async def test_calls_go_by_another_lane_that_fits(redis, queue, key_file, quick, once):
    """The last bridge of a lane goes over to another one, where the same policy is held: each call is judged once."""
    async with consuming(queue, forever(), limits=ONE_AT_A_TIME) as consumer, gateway(redis, key_file) as made:
        await made.met()
        in_hand, others = await waiting_behind(made, consumer, 3, once=once)
        consumer.handler.become(consumer_description(OTHER_CLAIMS))
        consumer.handler.holds = False
        # It takes no more before it has room again.
        await until(lambda: [each.message.version for each in made.worker.live] == ["2"])
        consumer.handler.called[0].answer()
        for each in (in_hand, *others):
            assert isinstance(await each.answer(), Allow)
        assert len(consumer.handler.documents) == 4
        await until(queue.is_empty)


async def test_calls_that_fit_no_other_lane(redis, queue, key_file, quick):
    """They fail: nobody holds their policy as it was described."""
    async with consuming(queue, forever(), limits=ONE_AT_A_TIME) as consumer, gateway(redis, key_file) as made:
        await made.met()
        _, others = await waiting_behind(made, consumer, 3, fits=frozenset(made.worker.live))
        consumer.handler.become(consumer_description(OTHER_CLAIMS))
        for each in others:
            failure = await each.answer()
            assert failure.reason is Reason.WORKER_UNAVAILABLE
            assert "no bridge has this version of the policy" in failure.message


async def test_a_bridge_that_comes_back_in_time(redis, queue, key_file, monkeypatch):
    """A restart costs nobody an answer."""
    monkeypatch.setattr(request_exchange, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(abandoned_streams, "GRACE_SECONDS", 60.0)
    async with consuming(queue, forever(), limits=ONE_AT_A_TIME) as consumer, gateway(redis, key_file) as made:
        await made.met()
        in_hand, others = await waiting_behind(made, consumer, 3)
        consumer.consumer.stop()
        consumer.handler.called[0].answer()
        assert isinstance(await in_hand.answer(), Allow)
        await until(lambda: made.events.usable == 0)
        async with consuming(queue):
            for each in others:
                assert isinstance(await each.answer(), Allow)


async def test_what_was_given_back_waits_for_nobody(redis, queue, key_file, quick, monkeypatch):
    """Delivered to a bridge whose worker has just gone, and never put to it: it fails, even with side effects."""
    # So that there is a read under way, and none that is about to begin.
    monkeypatch.setattr(commands, "BLOCK_SECONDS", 60.0)
    async with consuming(queue) as consumer, gateway(redis, key_file) as made:
        await made.met()
        await until(lambda: is_read(queue))
        # The read that is under way brings it.
        consumer.handler.consumer_description = None
        waiting = made.put(once=True)
        await until(queue.pending)
        consumer.handler.become(None)
        assert (await waiting.answer()).reason is Reason.WORKER_UNAVAILABLE
        assert consumer.handler.called == []


async def test_a_redis_that_forbids_to_look(redis, queue, key_file, quick):
    """Then calls wait for their deadlines, and nothing else breaks."""
    rights = "+@all -xpending"
    await queue.client.execute_command("ACL", "SETUSER", "gate", "on", ">secret", "~{test}:*", *rights.split())
    url = f"redis://gate:secret@127.0.0.1:{redis.port}"
    try:
        async with consuming(queue, forever(), limits=ONE_AT_A_TIME) as consumer, gateway(url, key_file) as made:
            await made.met()
            _, (waiting,) = await waiting_behind(made, consumer, 1, seconds=3.0)
            consumer.handler.become(None)
            assert (await waiting.answer()).reason is Reason.WORKER_TIMEOUT
            assert made.events["redis_lost"] == 0
    finally:
        await queue.client.execute_command("ACL", "DELUSER", "gate")
