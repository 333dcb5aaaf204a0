"""Full means a decided refusal at once, with the limit's name and what was observed; and it is counted."""

from gateway.engine.verdicts import Allow
from gateway.reasons import Reason
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.queue.wire import sealed_presence
from tests.transports.queue.consumers import DESCRIBED, LANE, FakeHandler, consuming, until
from tests.transports.queue.gateways import gateway


async def present(queue, *, answered, capacity=1, at=None):
    """A bridge says that it is there, which takes nothing."""
    said = q.Presence(
        description=DESCRIBED.SerializeToString(),
        at=await queue.now() if at is None else at,
        lane=LANE,
        capacity=capacity,
        answered=answered,
    )
    await queue.client.hset(queue.names.workers, "b", sealed_presence(queue.seals, "b", said))


async def test_a_queue_may_have_so_many_calls(redis, queue, key_file):
    """What waits counts, whoever put it there; one more is refused, and one that is answered makes room."""
    judge = FakeHandler(holds=True)
    async with (
        consuming(queue, judge),
        gateway(redis, key_file, queue_length=3) as made,
        gateway(redis, key_file, queue_length=3) as other,
    ):
        await made.met()
        await other.met()
        waiting = [made.put() for _ in range(4)]
        failure = await waiting[-1].answer()
        assert failure.reason is Reason.OVERLOADED
        assert "queue_length is 3" in failure.message
        await until(lambda: len(judge.called) == 3)
        await until(lambda: other.events.length == 3)
        assert (await other.call()).reason is Reason.OVERLOADED
        assert made.events["queue_length"] == other.events["queue_length"] == 1
        judge.holds = False
        for called in judge.called:
            called.answer()
        for each in waiting[:3]:
            assert isinstance(await each.answer(), Allow)

        async def has_room():
            # A length that was asked for before the answers came may be told after them; a second later it is right.
            return isinstance(await made.call(), Allow)

        await until(has_room)


async def test_open_calls_may_have_so_many_bytes(redis, queue, key_file):
    """What this process keeps until it is answered is bounded; one document is taken, whatever its size."""
    async with consuming(queue, FakeHandler(holds=True)), gateway(redis, key_file, queue_open_bytes=1000) as made:
        await made.met()
        first = made.put(b"x" * 5000)
        failure = await made.call(b"{}")
        assert failure.reason is Reason.OVERLOADED
        assert "5002 bytes, and the limit queue_open_bytes is 1000" in failure.message
        assert made.events["queue_open_bytes"] == 1
        first.cancel()
        assert made.put(b"{}").answers == []


async def test_a_lane_may_take_so_much_of_redis_memory(redis, queue, key_file):
    """What Redis says of its memory, looked at each second, is bounded."""
    async with consuming(queue, FakeHandler(holds=True)), gateway(redis, key_file, queue_bytes=50_000) as made:
        await made.met()
        made.put(b"x" * 100_000)

        async def refused():
            waiting = made.put(seconds=0.2)
            answer = await waiting.answer()
            return answer.reason is Reason.OVERLOADED and "queue_bytes is 50000" in answer.message

        await until(refused)
        assert made.events["queue_bytes"] == 1


async def test_a_worker_may_have_so_many_calls_open(redis, queue, key_file):
    """``worker_in_flight`` holds for every transport."""
    async with consuming(queue, FakeHandler(holds=True)), gateway(redis, key_file, worker_in_flight=2) as made:
        await made.met()
        open_ones = [made.put(), made.put()]
        failure = await made.call()
        assert failure.reason is Reason.OVERLOADED
        assert "worker_in_flight" in failure.message
        assert [each.answers for each in open_ones] == [[], []]
        assert made.events["in_flight"] == 1


async def test_an_call_that_cannot_be_answered_in_time_is_refused_at_once(redis, queue, key_file):
    """While everybody is busy and the backlog takes longer than the call has; one with more time is taken."""
    async with gateway(redis, key_file) as made:
        await present(queue, answered=0)
        await made.met()
        waiting = [made.put(seconds=55.0) for _ in range(20)]
        await until(lambda: made.events.length == 20)
        answered = 0

        async def refused():
            # Two a second, or a little more: 20 calls take ten seconds, however slow this machine is.
            nonlocal answered
            now = await queue.now()
            await present(queue, answered=now // 500, at=now)
            answer = made.put(seconds=0.05 if answered == 0 else 2.0)
            answered += 1
            found = await answer.answer()
            return found.reason is Reason.OVERLOADED

        await until(refused)
        assert made.events["queue_slow"] == 1
        late = made.put(seconds=2.0)
        failure = await late.answer()
        assert "at the present rate" in failure.message
        patient = made.put(seconds=50.0)
        await until(lambda: made.worker._exchange.outbox.unsent == 0)
        assert patient.answers == []
        for each in (*waiting, patient):
            each.cancel()


async def test_how_long_and_how_old_a_queue_is_is_told(redis, queue, key_file):
    """Each second: its length, and for how long the oldest call is there."""
    judge = FakeHandler(holds=True)
    async with consuming(queue, judge), gateway(redis, key_file) as made:
        await made.met()
        waiting = [made.put() for _ in range(3)]
        await until(lambda: made.events.length == 3)
        await until(lambda: made.events.oldest > 1.0)
        await until(lambda: len(judge.called) == 3)
        for called in judge.called:
            called.answer()
        for each in waiting:
            await each.answer()
        await until(lambda: (made.events.length, made.events.oldest) == (0, 0.0))
