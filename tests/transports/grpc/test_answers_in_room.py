"""Unary calls whose answers are received where there is room, from real servers: none has another result by it."""

import asyncio
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import pytest

from gateway.engine.verdicts import Allow, Deny
from gateway.policies.model import Phase
from gateway.reasons import Reason
from gateway.telemetry.labels import WorkerEvent
from gateway.transports.answer_room import AnswerRoom
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import until
from tests.integration.workers import ALLOW, SERVICE, Hanging, always, deny, description, scripted, status
from tests.transports.reaching import Reply, called, configured, judge, question, working
from tests.world import policy

SECONDS = 0.4
"""The time of a call that is to be late: half of it is enough for a call on a busy machine."""


@pytest.fixture(autouse=True)
def in_room(monkeypatch):
    """No call is direct."""
    monkeypatch.setattr(AnswerRoom, "begin_direct", lambda _: False)


@asynccontextmanager
async def reached(review, **limits):
    async with (
        scripted("judge", review=review) as target,
        working(configured(judge(), labels=target), **limits) as all_,
    ):
        yield all_


@asynccontextmanager
async def sending(*messages):
    """A worker that sends so many messages as its answer."""

    async def review(request, context):
        for message in messages:
            yield message

    async def describe(request, context):
        return description("judge")

    handlers = {
        "Review": grpc.unary_stream_rpc_method_handler(review),
        "Describe": grpc.unary_unary_rpc_method_handler(describe),
    }
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with working(configured(judge(), labels=f"127.0.0.1:{port}")) as workers:
            yield workers
    finally:
        await server.stop(None)


class Begun(Hanging):
    """A method that sends its headers, and no answer."""

    async def __call__(self, request, context):
        await context.send_initial_metadata(())
        await super().__call__(request, context)


def room(workers):
    return workers._leased["labels"].connection._room


def in_seconds(seconds):
    return asyncio.get_running_loop().time() + seconds


async def test_an_answer_is_received():
    async with reached(always(deny("no"))) as workers:
        answer = await called(workers, judge())
        assert isinstance(answer, Deny)
        assert answer.message == "no"
        await until(lambda: room(workers).taken == 0)


async def test_many_answers_are_received_where_there_is_one_place():
    """One after the other."""
    async with reached(always(ALLOW), answer_bytes_in_flight=1) as workers:
        answers = await asyncio.gather(*(called(workers, judge()) for _ in range(50)))
        assert {type(each) for each in answers} == {Allow}
        await until(lambda: room(workers).taken == 0)


async def test_a_large_answer_is_received_whole():
    """Flow control must not keep what is being read."""
    text = "m" * 3_000_000
    async with reached(always(deny(text)), answer_characters=2 * len(text)) as workers:
        assert (await called(workers, judge())).message == text


async def test_an_answer_above_the_limit_is_a_failure():
    async with reached(always(deny("m" * 200_000)), answer_message_bytes=100_000) as workers:
        answer = await called(workers, judge())
        assert answer.reason is Reason.WORKER_FAILURE
        assert "RESOURCE_EXHAUSTED" in answer.message


async def test_a_status_is_a_failure():
    async with reached(status(grpc.StatusCode.INTERNAL, "its words")) as workers:
        answer = await called(workers, judge())
        assert answer.reason is Reason.WORKER_FAILURE
        assert "its words" in answer.message


async def test_a_status_after_an_answer_is_a_failure():
    """An answer counts with the status OK only."""

    async def review(request, context):
        context.set_code(grpc.StatusCode.DATA_LOSS)
        context.set_details("its words")
        return ALLOW

    async with reached(review) as workers:
        answer = await called(workers, judge())
        assert answer.reason is Reason.WORKER_FAILURE
        assert "DATA_LOSS" in answer.message


@pytest.mark.parametrize("is_direct", [False, True])
async def test_no_answer_at_all_is_a_failure(is_direct, monkeypatch):
    """Of the worker, however it is called."""
    monkeypatch.setattr(AnswerRoom, "begin_direct", lambda _: is_direct)
    monkeypatch.setattr(AnswerRoom, "end_direct", lambda _: None)
    async with sending() as workers:
        assert (await called(workers, judge())).reason is Reason.INVALID_RESPONSE


async def test_two_answers_are_none():
    """What follows the first is not received, so the call ends at its deadline at the latest."""
    async with sending(ALLOW, ALLOW) as workers:
        answer = await called(workers, judge(), deadline=in_seconds(SECONDS))
        assert answer.reason in {Reason.WORKER_TIMEOUT, Reason.WORKER_FAILURE}


async def test_a_late_answer_is_late():
    async with reached(Hanging()) as workers:
        assert (await called(workers, judge(), deadline=in_seconds(SECONDS))).reason is Reason.WORKER_TIMEOUT


@pytest.mark.parametrize(("kind", "places"), [(Hanging, 0), (Begun, 1)])
async def test_a_cancelled_call_is_cancelled_at_its_worker(kind, places):
    """With or without a place; it keeps none."""
    review = kind()
    async with reached(review) as workers:
        cancel = workers.call(question(judge()), Reply())
        await asyncio.wait_for(review.called.wait(), WAIT_SECONDS)
        await until(lambda: room(workers).taken == places)
        cancel()
        await asyncio.wait_for(review.cancelled.wait(), WAIT_SECONDS)
        await until(lambda: room(workers).taken == 0)


async def test_a_worker_that_begins_an_answer_and_does_not_send_it_delays_its_own_only():
    """Its next answer has no place in time: the gateway is overloaded, and says so. Others have their own place."""
    own, counted = judge(), []
    other = policy("other", phase=Phase.VALIDATING, worker="quick", index=1)
    async with (
        scripted("judge", review=Begun()) as slow,
        scripted("other") as quick,
        working(configured(own, other, labels=slow, quick=quick), answer_bytes_in_flight=1) as workers,
    ):
        workers._leased["labels"].connection.count = counted.append
        cancel = workers.call(question(own), Reply())
        await until(lambda: room(workers).taken == 1)
        answer = await called(workers, own, deadline=in_seconds(SECONDS))
        assert answer.reason is Reason.OVERLOADED
        assert "answer_bytes_in_flight" in answer.message
        assert counted == [WorkerEvent.ANSWER_BYTES]
        assert isinstance(await called(workers, other), Allow)
        cancel()
