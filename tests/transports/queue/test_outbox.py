"""What waits to be written: how much of it is kept, what is put again, and which answers still count."""

import pytest

from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.queue.clock import RedisClock
from gateway.transports.queue.names import Names
from gateway.transports.queue.open_calls import OpenCall, OpenCalls
from gateway.transports.queue.outbox import Outbox
from gateway.transports.queue.seals import QueueSeals
from tests.transports.queue.consumers import LANE, STREAM


class Asking(OpenCall):
    """An ask of nothing."""

    def request(self, requests):
        return b""

    def reported(self, reply):
        raise AssertionError(reply)

    def failed(self, failure):
        raise AssertionError(failure)

    def broken_off(self):
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
def asks():
    return OpenCalls()


def opened(asks, outbox):
    """An ask that waits to be written."""
    made = Asking(fits=None, size=1, since=0.0, deadline=10.0, may_repeat=True)
    asks.add(made)
    made.lane = LANE
    outbox.put(made)
    return made


def written(outbox):
    """Redis takes all of it."""
    batch = outbox.batch()
    outbox.written(batch, [b"1-1"] * len(batch.commands))


def test_nothing_is_kept_of_an_ask_that_is_done(outbox, asks):
    """While Redis is away asks fail; their documents are not kept until it is back."""
    made = [opened(asks, outbox) for _ in range(10)]
    for ask in made[1:]:
        asks.close(ask)
        outbox.take_back(ask)
    assert list(outbox._unsent) == made[:1]
    assert (outbox.unsent, outbox.lane(LANE).unsent) == (1, 1)


def test_an_answer_to_what_is_to_be_put_again_counts(outbox, asks):
    """Between the decision to put it again and the pipeline that does so, the first one may be answered: it is over."""
    ask = opened(asks, outbox)
    assert asks.answered(q.Reply(id=ask.number)) is None
    written(outbox)
    outbox.put_again([ask])
    assert asks.answered(q.Reply(id=ask.number, deadline=ask.expiry)) is ask
    asks.close(ask)
    outbox.answered(ask)
    assert outbox.batch().asks == []


def test_what_is_put_again_comes_first_and_keeps_its_deadline(outbox, asks, clock):
    """By its deadline bridges know it; a clock that is reckoned a little better makes it no other ask."""
    first = opened(asks, outbox)
    written(outbox)
    second = opened(asks, outbox)
    clock.sample(0.0, 0.0, 1000, 3000)
    outbox.put_again([first])
    assert [ask for _, ask in outbox.batch().asks] == [first, second]
    assert first.expiry == 1_010_000


@pytest.mark.parametrize("seconds", [500, 1500, 100_000])
def test_what_is_put_to_a_server_with_another_clock_has_as_much_time_as_before(outbox, asks, clock, seconds):
    """Else it would have expired there, or would not expire when it should."""
    ask = opened(asks, outbox)
    written(outbox)
    clock.sample(0.0, 0.0, seconds, 0)
    outbox.put_again([ask])
    outbox.batch()
    assert ask.expiry == (seconds + 10) * 1000
