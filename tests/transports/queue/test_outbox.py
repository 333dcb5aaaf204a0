"""What waits to be written: how much of it is kept, what is put again, and which answers still count."""

import pytest

from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.queue.clock import RedisClock
from gateway.transports.queue.names import Names
from gateway.transports.queue.open_calls import OpenCall, OpenCalls
from gateway.transports.queue.outbox import Outbox
from gateway.transports.queue.seals import QueueSeals
from tests.transports.queue.consumers import LANE, STREAM


class Calling(OpenCall):
    """A call of nothing."""

    def request(self, requests):
        return b""

    def replied(self, reply):
        raise AssertionError(reply)

    def failed(self, failure):
        raise AssertionError(failure)

    def abort(self):
        raise AssertionError


@pytest.fixture
def clock():
    """Redis' clock, which shows 1000 s at our own 0."""
    made = RedisClock(lambda: 0.0)
    made.sample(0.0, 0.0, 1000, 0)
    return made


@pytest.fixture
def outbox(clock, key_file):
    return Outbox(Names(STREAM), "0" * 32, QueueSeals(STREAM, key_file), clock, 1_000_000)


@pytest.fixture
def calls():
    return OpenCalls()


def opened(calls, outbox):
    """A call that waits to be written."""
    made = Calling(fits=None, size=1, since=0.0, deadline=10.0, may_repeat=True)
    calls.add(made)
    made.lane = LANE
    outbox.put(made)
    return made


def written(outbox):
    """Redis takes all of it."""
    batch = outbox.batch()
    outbox.written(batch, [b"1-1"] * len(batch.commands))


def test_nothing_is_kept_of_a_call_that_is_done(outbox, calls):
    """While Redis is away calls fail; their documents are not kept until it is back."""
    made = [opened(calls, outbox) for _ in range(10)]
    for call in made[1:]:
        calls.close(call)
        outbox.cancel(call)
    assert list(outbox._unsent) == made[:1]
    assert (outbox.unsent, outbox.lane(LANE).unsent) == (1, 1)


def test_an_answer_to_what_is_to_be_put_again_counts(outbox, calls):
    """Between the decision to put it again and the pipeline that does so, the first one may be answered: it is over."""
    call = opened(calls, outbox)
    assert calls.answered(q.Reply(id=call.number)) is None
    written(outbox)
    outbox.put_again([call])
    assert calls.answered(q.Reply(id=call.number, deadline=call.expiry)) is call
    calls.close(call)
    outbox.answered(call)
    assert outbox.batch().calls == []


def test_what_is_put_again_comes_first_and_keeps_its_deadline(outbox, calls, clock):
    """By its deadline bridges know it; a clock that is reckoned a little better makes it no other call."""
    first = opened(calls, outbox)
    written(outbox)
    second = opened(calls, outbox)
    clock.sample(0.0, 0.0, 1000, 3000)
    outbox.put_again([first])
    assert [call for _, call in outbox.batch().calls] == [first, second]
    assert first.expiry == 1_010_000


@pytest.mark.parametrize("seconds", [500, 1500, 100_000])
def test_what_is_put_to_a_server_with_another_clock_has_as_much_time_as_before(outbox, calls, clock, seconds):
    """Else it would have expired there, or would not expire when it should."""
    call = opened(calls, outbox)
    written(outbox)
    clock.sample(0.0, 0.0, seconds, 0)
    outbox.put_again([call])
    outbox.batch()
    assert call.expiry == (seconds + 10) * 1000
