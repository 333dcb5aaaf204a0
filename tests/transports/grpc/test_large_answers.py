"""A large answer does not hold the event loop for all that is done with it at once."""

import asyncio

import pytest

from gateway.engine.verdicts import Allow
from gateway.slices import SLOW_BYTES
from gateway.transports.answer_room import AnswerRoom
from gateway.transports.grpc import connection, stream
from gateway.transports.messages import outcome_answer
from gateway.transports.outcomes import Outcomes
from tests.integration.conversations import Streams, answering
from tests.integration.running import until
from tests.integration.workers import always, answer, pb, scripted
from tests.transports.reaching import WAIT_SECONDS, Reply, called, configured, judge, question, working


class Iterations:
    """Counts those of the event loop; ``seen`` are the numbers at which something was done."""

    def __init__(self):
        self.number = 0
        self.seen = []
        self._go_on()

    def _go_on(self):
        self.number += 1
        self._next = asyncio.get_running_loop().call_soon(self._go_on)

    def noting(self, function):
        def noted(*args, **kwargs):
            self.seen.append(self.number)
            return function(*args, **kwargs)

        return noted

    def stop(self):
        self._next.cancel()


@pytest.fixture
async def iterations():
    counting = Iterations()
    yield counting
    counting.stop()


def allow(size):
    return answer(allow=pb.Allow(json_patch=b"x" * size))


async def delivered(iterations, workers):
    """The answer, whose delivery is seen."""
    reply = Reply()
    reply.answered = iterations.noting(reply.answered)
    workers.call(question(judge()), reply)
    return await asyncio.wait_for(reply.first(), WAIT_SECONDS)


@pytest.mark.parametrize("is_direct", [False, True])
@pytest.mark.parametrize(("size", "together"), [(SLOW_BYTES // 2, True), (SLOW_BYTES + 1, False)])
async def test_an_answer_by_call(iterations, monkeypatch, is_direct, size, together):
    """It is parsed in one iteration, converted in another one, and applied in a third, if it is large."""
    monkeypatch.setattr(AnswerRoom, "begin_direct", lambda _: is_direct)
    monkeypatch.setattr(AnswerRoom, "end_direct", lambda _: None)
    monkeypatch.setattr(connection, "review_response", iterations.noting(connection.review_response))
    async with (
        scripted("judge", review=always(allow(size))) as target,
        working(configured(judge(), labels=target)) as workers,
    ):
        (connected,) = workers._leased["labels"].connection._endpoints.connections()
        connected._read_outcome = iterations.noting(outcome_answer)
        found = await delivered(iterations, workers)
    assert len(found.change.content) == size
    assert len(set(iterations.seen)) == (1 if together else 3)


@pytest.mark.parametrize(("size", "together"), [(SLOW_BYTES // 2, True), (SLOW_BYTES + 1, False)])
async def test_an_answer_by_stream(iterations, monkeypatch, size, together):
    """The same."""
    monkeypatch.setattr(stream, "_parsed", iterations.noting(stream._parsed))
    monkeypatch.setattr(Outcomes, "read", iterations.noting(Outcomes.read))
    async with (
        scripted("judge", stream=Streams(answering(allow(size)))) as target,
        working(configured(judge(), labels=target)) as workers,
    ):
        found = await delivered(iterations, workers)
    assert len(found.change.content) == size
    assert len(set(iterations.seen)) == (1 if together else 3)


async def test_an_answer_that_is_given_up_while_it_is_read(monkeypatch):
    """Its call ends once, without it; the stream goes on."""
    read, cancels = Outcomes.read, []

    def given_up(self, *args, **kwargs):
        while cancels:
            cancels.pop()()
        return read(self, *args, **kwargs)

    monkeypatch.setattr(Outcomes, "read", given_up)
    async with (
        scripted("judge", stream=Streams(answering(allow(SLOW_BYTES + 1)))) as target,
        working(configured(judge(), labels=target)) as workers,
    ):
        await called(workers, judge())
        reply = Reply()
        cancels.append(workers.call(question(judge()), reply))
        await until(lambda: not cancels)
        found = await called(workers, judge())
    assert isinstance(found, Allow)
    assert reply.answers == []


def test_no_large_outcome_is_serialized_to_be_memoized():
    """A patch of 38 MB took as long as all else."""

    class Untouched:
        """An outcome that cannot be serialized."""

        def __init__(self, outcome):
            self._outcome = outcome

        def __getattr__(self, name):
            assert name != "SerializeToString"
            return getattr(self._outcome, name)

    outcomes = Outcomes("labels", 500, lambda _: None)
    outcome = pb.Outcome(allow=pb.Allow(json_patch=b"[]"))
    assert isinstance(outcomes.read(question(judge()), Untouched(outcome), is_large=True), Allow)
