"""One ReviewStream against a real server: what leaves in which message, and whose answer is whose."""

import asyncio
from time import monotonic

import pytest

from gateway.documents.documents import hashed
from gateway.engine.verdicts import Allow, Deny
from gateway.reasons import Reason
from gateway.transports.grpc.call_attempt import CallResult
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.conversations import Streams, answering, for_ever, response
from tests.integration.running import until
from tests.integration.workers import ALLOW, deny
from tests.transports.grpc.attempts import Attempt, StreamReports, streaming
from tests.transports.reaching import judge

# ------------------------------------------------------------------------------------------------------- out


async def test_calls_of_one_turn_leave_in_one_message():
    """All of them, in their order, and those of the next turn in the next one."""
    streams = Streams()
    async with streaming(streams) as stream:
        for turn in range(2):
            numbers = [stream.call(Attempt()) for _ in range(20)]
            await until(lambda turn=turn: streams.conversations and len(streams.last.batches) > turn)
            assert [item.id for item in streams.last.batches[turn].items] == numbers


async def test_what_a_call_says():
    """Policy, phase, settings, uid and document are those of the call."""
    streams = Streams()
    about = judge(settings=b'{"a":1}')
    async with streaming(streams) as stream:
        number = stream.call(Attempt(about, document=hashed(b'{"x":1}'), uid="u7"))
        await until(lambda: streams.conversations and streams.last.items)
        said = streams.last.items[number]
        assert (said.policy, said.phase, said.settings, said.uid) == ("judge", pb.PHASE_VALIDATING, b'{"a":1}', "u7")
        assert streams.last.documents[number] == b'{"x":1}'


async def test_a_shared_document_travels_once():
    """Calls about the same document refer to it; another one is beside it."""
    streams = Streams()
    shared, other = hashed(b'{"shared":1}'), hashed(b'{"other":1}')
    async with streaming(streams) as stream:
        for document in (shared, other, shared):
            stream.call(Attempt(document=document))
        await until(lambda: streams.conversations and streams.last.batches)
        (batch,) = streams.last.batches
        assert list(batch.documents) == [shared.content, other.content]
        assert [item.call.document_index for item in batch.items] == [0, 1, 0]


async def test_a_message_has_a_size():
    """What is beyond worker_batch_bytes waits for the next one; one call goes in any case."""
    streams = Streams()
    async with streaming(streams, worker_batch_bytes=1000) as stream:
        sizes = (300, 300, 300, 5000, 300)
        numbers = [stream.call(Attempt(document=hashed(bytes(size)))) for size in sizes]
        await until(lambda: streams.conversations and len(streams.last.items) == len(sizes))
        assert [[item.id for item in batch.items] for batch in streams.last.batches] == [
            numbers[0:2],
            numbers[2:3],
            numbers[3:4],
            numbers[4:5],
        ]


async def test_each_call_says_how_long_it_is_waited_for():
    """The time that is left, never more, and never less than nothing."""
    streams = Streams()
    begun = monotonic()
    async with streaming(streams) as stream:
        numbers = [stream.call(Attempt(deadline=begun + seconds)) for seconds in (100.0, 200.5, -3.0)]
        await until(lambda: streams.conversations and len(streams.last.items) == len(numbers))
        timeouts = [streams.last.items[number].timeout for number in numbers]
    elapsed = monotonic() - begun
    said = [timeout.seconds + timeout.nanos / 1e9 for timeout in timeouts]
    assert 100.0 - elapsed <= said[0] <= 100.0
    assert 200.5 - elapsed <= said[1] <= 200.5
    assert said[2] == 0.0


async def test_what_is_cancelled_before_it_was_written_is_never_sent():
    """Neither the call nor a cancel."""
    streams = Streams()
    async with streaming(streams) as stream:
        gone, kept = stream.call(Attempt()), stream.call(Attempt())
        stream.cancel(gone)
        await until(lambda: streams.conversations and streams.last.items)
        assert list(streams.last.items) == [kept]
        stream.cancel(kept)
        await until(lambda: streams.last.cancels)
        assert streams.last.cancels == [kept]


async def test_a_cancel_is_sent_once():
    """However often it is cancelled; who is answered or unknown is not cancelled at all."""
    streams = Streams(answering(quiet=lambda conversation, item: _go_on()))
    async with streaming(streams) as stream:
        called, loud = stream.call(Attempt(judge("quiet"))), Attempt()
        answered = stream.call(loud)
        await until(lambda: loud.is_over)
        for number in (answered, called, called, 77):
            stream.cancel(number)
        stream.call(last := Attempt())
        await until(lambda: last.is_over)
        assert streams.last.cancels == [called]


async def _go_on():
    return True


# -------------------------------------------------------------------------------------------------------- in


async def test_answers_in_any_order_and_grouping():
    """Each outcome finds its call, whatever stands beside it."""

    async def backwards(conversation):
        while len(conversation.items) < 4:
            await conversation.batch()
        first, second, third, fourth = conversation.items
        await conversation.send(response((fourth, deny("fourth"))))
        await conversation.send(response((second, deny("second")), (first, deny("first"))))
        await conversation.send(response((third, ALLOW)))
        await for_ever()

    attempts = [Attempt() for _ in range(4)]
    async with streaming(Streams(backwards)) as stream:
        for attempt in attempts:
            stream.call(attempt)
        await until(lambda: all(attempt.is_over for attempt in attempts))
    assert [getattr(attempt.answer, "message", None) for attempt in attempts] == ["first", "second", None, "fourth"]
    assert isinstance(attempts[2].answer, Allow)


async def test_an_answer_comes_after_the_question():
    """No answer comes inside the sending call."""
    attempt = Attempt()
    async with streaming(Streams(answering())) as stream:
        stream.call(attempt)
        assert not attempt.is_over
        await until(lambda: attempt.is_over)


async def test_an_outcome_that_says_nothing_is_the_calls_failure():
    """A named failure of this call; the stream goes on."""

    async def says_nothing(conversation, item):
        await conversation.send(
            pb.ReviewStreamResponse(items=[pb.ReviewStreamResponse.ResponseItem(id=item.id)]).SerializeToString()
        )
        return True

    empty, other = Attempt(judge("empty")), Attempt()
    async with streaming(Streams(answering(empty=says_nothing))) as stream:
        for attempt in (empty, other):
            stream.call(attempt)
        await until(lambda: empty.is_over and other.is_over)
    assert empty.answer.reason is Reason.INVALID_RESPONSE
    assert isinstance(other.answer, Allow)


@pytest.mark.parametrize("unsolicited", [lambda _: 0, lambda own: own + 1, lambda own: own - 1, lambda _: 2**64 - 1])
async def test_an_unsolicited_answer_is_dropped_and_counted(unsolicited):
    """Unknown, past and future ids; the calls that are open are judged all the same."""

    async def unsolicited_count(conversation, item):
        await conversation.answer(unsolicited(item.id), content=deny("not yours"))
        await conversation.answer(item.id)
        return True

    reported, first, second = StreamReports(), Attempt(), Attempt()
    async with streaming(Streams(answering(judge=unsolicited_count)), reported=reported) as stream:
        stream.call(first)
        await until(lambda: first.is_over)
        stream.call(second)
        await until(lambda: second.is_over)
    assert isinstance(first.answer, Allow)
    assert isinstance(second.answer, Allow)
    assert reported.unsolicited_count == 2


async def test_a_second_answer_is_dropped():
    """The first one counts, also within one message."""

    async def twice(conversation, item):
        await conversation.send(response((item.id, deny("first")), (item.id, ALLOW)))
        await conversation.answer(item.id)
        return True

    reported, attempt = StreamReports(), Attempt()
    async with streaming(Streams(answering(judge=twice)), reported=reported) as stream:
        stream.call(attempt)
        await until(lambda: reported.unsolicited_count == 2)
    assert isinstance(attempt.answer, Deny)


async def test_a_cancelled_call_has_no_answer():
    """One that was under way already is a stray."""
    reported, attempt = StreamReports(), Attempt()
    gate = asyncio.Event()

    async def late(conversation, item):
        await gate.wait()
        await conversation.answer(item.id)
        return True

    streams = Streams(answering(judge=late))
    async with streaming(streams, reported=reported) as stream:
        number = stream.call(attempt)
        await until(lambda: streams.conversations and streams.last.items)
        stream.cancel(number)
        gate.set()
        await until(lambda: reported.unsolicited_count == 1)
    assert not attempt.is_over


async def test_an_answer_to_what_has_not_been_sent_is_a_failure():
    """An answer to an id that was not sent is no verdict, and that call is not sent any more."""
    streams, reported = Streams(), StreamReports()
    async with streaming(streams, reported=reported) as stream:
        attempt = Attempt()
        number = stream.call(attempt)
        stream._received(response((number, ALLOW)))
        assert attempt.failure.reason is Reason.INVALID_RESPONSE
        assert "before it was sent" in attempt.failure.message
        kept = stream.call(Attempt())
        await until(lambda: streams.conversations and streams.last.items)
        assert list(streams.last.items) == [kept]


async def test_a_flood_ends_the_stream():
    """More unsolicited answers than worker_unsolicited: open calls fail by name, and the stream is abused."""

    async def floods(conversation):
        await conversation.batch()
        while True:
            await conversation.answer(0, 0, 0, 0)

    reported, attempt = StreamReports(), Attempt()
    async with streaming(Streams(floods), reported=reported, worker_unsolicited=50) as stream:
        stream.call(attempt)
        await until(lambda: stream.has_ended)
        assert stream.violated_protocol
    assert attempt.failure.reason is Reason.INVALID_RESPONSE
    assert "worker_unsolicited, which is 50" in attempt.failure.message
    assert attempt.result is CallResult.LOST
    assert reported.unsolicited_count <= 60


async def test_messages_without_answers_are_a_flood_too():
    """An empty message says nothing, and so does a heavy one of no use."""

    async def floods(conversation):
        await conversation.batch()
        while True:
            await conversation.send(b"")

    async with streaming(Streams(floods), worker_unsolicited=50) as stream:
        stream.call(Attempt())
        await until(lambda: stream.has_ended)
        assert stream.violated_protocol


async def test_a_flood_in_one_message_is_not_read_to_its_end():
    """A message of millions of answers costs no more than the first few thousand."""

    async def floods(conversation):
        await conversation.batch()
        await conversation.send(b"\x0a\x00" * 5_000_000)
        await for_ever()

    reported, attempt = StreamReports(), Attempt()
    options = (("grpc.max_receive_message_length", -1),)
    async with streaming(Streams(floods), reported=reported, options=options, worker_unsolicited=50) as stream:
        stream.call(attempt)
        await until(lambda: stream.has_ended)
        assert stream.violated_protocol
    assert attempt.failure.reason is Reason.INVALID_RESPONSE
    assert reported.unsolicited_count <= 100


async def test_a_few_strays_among_many_answers_are_no_flood():
    """A worker that answers what was cancelled meanwhile is not ended for it: a tenth is free."""

    async def unsolicited_count(conversation, item):
        await conversation.answer(item.id)
        if item.id % 10 == 0:
            await conversation.answer(item.id)
        return True

    async with streaming(Streams(answering(judge=unsolicited_count)), worker_unsolicited=2) as stream:
        for _ in range(100):
            stream.call(attempt := Attempt())
            await until(lambda attempt=attempt: attempt.is_over)
        assert not stream.has_ended
