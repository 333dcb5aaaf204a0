"""The outbox: what it keeps, what it writes again, and which replies still count."""

import pytest

from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.queue.clock import RedisClock
from gateway.transports.queue.names import Names
from gateway.transports.queue.open_calls import OpenCall, OpenCalls
from gateway.transports.queue.outbox import Outbox
from gateway.transports.queue.seals import QueueSeals
from tests.transports.queue.consumers import LANE, STREAM


class EmptyCall(OpenCall):
    """A call with an empty request."""

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
    """Redis' clock, which shows 1000 s at the local 0."""
    clock = RedisClock(lambda: 0.0)
    clock.sample(0.0, 0.0, 1000, 0)
    return clock


@pytest.fixture
def outbox(clock, key_file):
    return Outbox(Names(STREAM), "0" * 32, QueueSeals(STREAM, key_file), clock, 1_000_000)


@pytest.fixture
def calls():
    return OpenCalls()


def opened(calls, outbox):
    """A call that waits to be written."""
    call = EmptyCall(fits=None, size=1, since=0.0, deadline=10.0, may_repeat=True)
    calls.add(call)
    call.lane = LANE
    outbox.put(call)
    return call


def written(outbox):
    """Write the next batch, which Redis accepts."""
    batch = outbox.batch()
    outbox.written(batch, [b"1-1"] * len(batch.commands))


def test_nothing_is_kept_of_a_call_that_is_done(outbox, calls):
    """The outbox keeps no documents of calls that have failed while Redis is unavailable."""
    waiting = [opened(calls, outbox) for _ in range(10)]
    for call in waiting[1:]:
        calls.close(call)
        outbox.cancel(call)
    assert list(outbox._unsent) == waiting[:1]
    assert (outbox.unsent, outbox.lane(LANE).unsent) == (1, 1)


def test_a_reply_to_a_call_that_waits_to_be_written_again(outbox, calls):
    """A reply to its first entry ends the call, which is then not written again."""
    call = opened(calls, outbox)
    assert calls.answered(q.Reply(id=call.number)) is None
    written(outbox)
    outbox.put_again([call])
    assert calls.answered(q.Reply(id=call.number, deadline=call.expiry)) is call
    calls.close(call)
    outbox.answered(call)
    assert outbox.batch().calls == []


def test_calls_written_again_come_first_and_keep_their_deadlines(outbox, calls, clock):
    """Bridges recognize a call by its deadline, so a slightly better estimate of the clock does not change it."""
    first = opened(calls, outbox)
    written(outbox)
    second = opened(calls, outbox)
    clock.sample(0.0, 0.0, 1000, 3000)
    outbox.put_again([first])
    assert [call for _, call in outbox.batch().calls] == [first, second]
    assert first.expiry == 1_010_000


@pytest.mark.parametrize("seconds", [500, 1500, 100_000])
def test_calls_keep_their_time_on_a_server_with_another_clock(outbox, calls, clock, seconds):
    """The deadline is converted to the new clock."""
    call = opened(calls, outbox)
    written(outbox)
    clock.sample(0.0, 0.0, seconds, 0)
    outbox.put_again([call])
    outbox.batch()
    assert call.expiry == (seconds + 10) * 1000
