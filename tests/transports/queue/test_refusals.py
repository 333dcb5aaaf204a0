"""A call beyond a limit is rejected at once, with the limit and the observed value, and counted."""

from gateway.engine.verdicts import Allow
from gateway.reasons import Reason
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.queue.codec import sealed_presence
from tests.transports.queue.consumers import DESCRIBED, LANE, FakeHandler, consuming, until
from tests.transports.queue.gateways import running_gateway


async def present(queue, *, answered, capacity=1, at=None):
    """Write the presence of a bridge that reads no calls."""
    presence = q.Presence(
        description=DESCRIBED.SerializeToString(),
        at=await queue.now() if at is None else at,
        lane=LANE,
        capacity=capacity,
        answered=answered,
    )
    await queue.client.hset(queue.names.workers, "b", sealed_presence(queue.seals, "b", presence))


async def test_the_limit_of_calls_in_a_queue(redis, queue, key_file):
    """Calls of all gateways count; one more is rejected, and an answered one makes room."""
    handler = FakeHandler(holds=True)
    async with (
        consuming(queue, handler),
        running_gateway(redis, key_file, queue_length=3) as gateway,
        running_gateway(redis, key_file, queue_length=3) as other,
    ):
        await gateway.sees_bridges()
        await other.sees_bridges()
        waiting = [gateway.put() for _ in range(4)]
        failure = await waiting[-1].answer()
        assert failure.reason is Reason.OVERLOADED
        assert "queue_length is 3" in failure.message
        await until(lambda: len(handler.calls) == 3)
        await until(lambda: other.events.length == 3)
        assert (await other.call()).reason is Reason.OVERLOADED
        assert gateway.events["queue_length"] == other.events["queue_length"] == 1
        handler.holds = False
        for called in handler.calls:
            called.answer()
        for each in waiting[:3]:
            assert isinstance(await each.answer(), Allow)

        async def has_room():
            # A length that was read before the answers arrived may be used after them; a second later it is right.
            return isinstance(await gateway.call(), Allow)

        await until(has_room)


async def test_the_limit_of_bytes_of_open_calls(redis, queue, key_file):
    """The bytes of open calls are limited; a single document of any size is accepted."""
    async with (
        consuming(queue, FakeHandler(holds=True)),
        running_gateway(redis, key_file, queue_open_bytes=1000) as gateway,
    ):
        await gateway.sees_bridges()
        first = gateway.put(b"x" * 5000)
        failure = await gateway.call(b"{}")
        assert failure.reason is Reason.OVERLOADED
        assert "5002 bytes, and the limit queue_open_bytes is 1000" in failure.message
        assert gateway.events["queue_open_bytes"] == 1
        first.cancel()
        assert gateway.put(b"{}").answers == []


async def test_the_limit_of_redis_memory_of_a_lane(redis, queue, key_file):
    """The memory that Redis reports for a lane is limited."""
    async with (
        consuming(queue, FakeHandler(holds=True)),
        running_gateway(redis, key_file, queue_bytes=50_000) as gateway,
    ):
        await gateway.sees_bridges()
        gateway.put(b"x" * 100_000)

        async def refused():
            waiting = gateway.put(seconds=0.2)
            answer = await waiting.answer()
            return answer.reason is Reason.OVERLOADED and "queue_bytes is 50000" in answer.message

        await until(refused)
        assert gateway.events["queue_bytes"] == 1


async def test_a_call_that_cannot_be_answered_in_time_is_rejected_at_once(redis, queue, key_file):
    """A busy lane rejects a call whose deadline is before the end of its backlog, and accepts one with more time."""
    async with running_gateway(redis, key_file) as gateway:
        await present(queue, answered=0)
        await gateway.sees_bridges()
        waiting = [gateway.put(seconds=55.0) for _ in range(20)]
        await until(lambda: gateway.events.length == 20)
        answered = 0

        async def refused():
            # Two a second, or a little more: 20 calls take ten seconds, however slow this machine is.
            nonlocal answered
            now = await queue.now()
            await present(queue, answered=now // 500, at=now)
            answer = gateway.put(seconds=0.05 if answered == 0 else 2.0)
            answered += 1
            found = await answer.answer()
            return found.reason is Reason.OVERLOADED

        await until(refused)
        assert gateway.events["queue_slow"] == 1
        late = gateway.put(seconds=2.0)
        failure = await late.answer()
        assert "at the present rate" in failure.message
        patient = gateway.put(seconds=50.0)
        await until(lambda: gateway.worker._exchange.outbox.unsent == 0)
        assert patient.answers == []
        for each in (*waiting, patient):
            each.cancel()


async def test_length_and_age_are_reported(redis, queue, key_file):
    """Each second the length and the age of the oldest call are reported."""
    handler = FakeHandler(holds=True)
    async with consuming(queue, handler), running_gateway(redis, key_file) as gateway:
        await gateway.sees_bridges()
        waiting = [gateway.put() for _ in range(3)]
        await until(lambda: gateway.events.length == 3)
        await until(lambda: gateway.events.oldest > 1.0)
        await until(lambda: len(handler.calls) == 3)
        for called in handler.calls:
            called.answer()
        for each in waiting:
            await each.answer()
        await until(lambda: (gateway.events.length, gateway.events.oldest) == (0, 0.0))
