"""The end of a ReviewStream, however it comes: each open call fails once; and what may wait meanwhile."""

import asyncio
import gc
import weakref
from time import monotonic

import grpc
import pytest

from gateway.documents.documents import hashed
from gateway.engine.verdicts import Allow
from gateway.reasons import Reason
from gateway.transports.grpc import stream as module
from gateway.transports.grpc.call_attempt import CallResult
from gateway.transports.limits import TransportLimits
from tests.integration.conversations import Streams, answering, for_ever, response
from tests.integration.running import until
from tests.integration.workers import deny
from tests.transports.grpc.attempts import Attempt, StreamReports, open_stream, streaming
from tests.transports.reaching import judge

# ------------------------------------------------------------------------------------------------------- end


async def test_finish_half_closes_when_nothing_is_open():
    """What is open is answered first; then the worker sees the end, and the stream ends without a failure."""
    gate = asyncio.Event()

    async def slowly(conversation, item):
        await gate.wait()
        await conversation.answer(item.id)
        return True

    reported, attempt, streams = StreamReports(), Attempt(), Streams(answering(judge=slowly))
    async with streaming(streams, reported=reported) as stream:
        stream.call(attempt)
        await until(lambda: streams.conversations and streams.last.items)
        stream.finish()
        assert not stream.takes_calls
        assert not attempt.is_over
        gate.set()
        await until(lambda: reported.gone)
        assert streams.last.has_half_closed
    assert isinstance(attempt.answer, Allow)


async def test_finish_does_not_wait_for_a_closed_connection():
    """The last open call may be cancelled, or late, instead of answered."""
    for deadline in (monotonic() + 0.02, None):
        reported, streams = StreamReports(), Streams()
        async with streaming(streams, reported=reported) as stream:
            number = stream.call(Attempt(**({"deadline": deadline} if deadline else {})))
            await until(lambda streams=streams: streams.conversations and streams.last.items)
            stream.finish()
            if deadline is None:
                stream.cancel(number)
            await until(lambda reported=reported: reported.gone)
            assert streams.last.has_half_closed


async def end(conversation):
    """End with OK."""


async def with_status(conversation):
    await conversation.context.abort(grpc.StatusCode.INTERNAL, "not\ntoday")


async def with_garbage(conversation):
    await conversation.send(b"\xff\xff\xff")
    await for_ever()


async def with_too_much(conversation):
    await conversation.send(response((1, deny("x" * 20_000))))
    await for_ever()


async def with_an_exception(conversation):
    raise RuntimeError("of the worker's own")


ENDS = {
    "OK": (end, Reason.WORKER_UNAVAILABLE, "ended its stream without an answer"),
    "a status": (with_status, Reason.WORKER_FAILURE, "status INTERNAL: not today"),
    "garbage": (with_garbage, Reason.INVALID_RESPONSE, "an invalid ReviewStreamResponse"),
    "too large a message": (with_too_much, Reason.WORKER_FAILURE, "status RESOURCE_EXHAUSTED"),
    "an exception": (with_an_exception, Reason.WORKER_FAILURE, "status UNKNOWN"),
}


@pytest.mark.parametrize("name", ENDS)
async def test_when_a_stream_ends_every_open_call_ends(name):
    """Once, with the reason, and that the result is unknown."""
    ends, reason, words = ENDS[name]

    async def script(conversation):
        await conversation.batch()
        await ends(conversation)

    attempts = [Attempt() for _ in range(3)]
    options = (("grpc.max_receive_message_length", 10_000),)
    async with streaming(Streams(script), options=options) as stream:
        for attempt in attempts:
            stream.call(attempt)
        await until(lambda: stream.has_ended)
    for attempt in attempts:
        assert (attempt.failure.reason, attempt.result) == (reason, CallResult.LOST)
        assert words in attempt.failure.message
        assert attempt.failure.message.isprintable()


async def test_a_stream_that_has_ended_is_freed_at_once():
    """It is part of no cycle of references, so no garbage collection needs to look for it."""

    async def script(conversation):
        await conversation.batch()

    reported = StreamReports()
    gc.disable()
    try:
        async with streaming(Streams(script), reported=reported) as stream:
            stream.call(Attempt())
            await until(lambda: reported.gone)
        ended = [weakref.ref(stream) for stream in reported.gone]
        reported.gone.clear()
        del stream
        await until(lambda: ended[0]() is None)
    finally:
        gc.enable()


async def test_a_worker_without_streams_has_been_called_nothing():
    """UNIMPLEMENTED means that no handler has seen the calls: all may be retried."""
    attempts = [Attempt() for _ in range(3)]
    async with streaming(None) as stream:
        for attempt in attempts:
            stream.call(attempt)
        await until(lambda: stream.has_ended)
        # gRPC loses the worker's status where the first write is under way when it comes.
        assert stream.is_unimplemented or not stream.has_written
    assert [attempt.result for attempt in attempts] == [CallResult.UNSENT] * 3


class LostStatus:
    """A call, and a channel that makes it, whose first write fails: gRPC then reports that alone."""

    def __init__(self):
        self._has_failed = asyncio.Event()
        self._error = grpc.aio.AioRpcError(
            grpc.StatusCode.INTERNAL, grpc.aio.Metadata(), grpc.aio.Metadata(), "Internal error from Core"
        )

    def stream_stream(self, _method):
        return lambda: self

    async def write(self, _content):
        self._has_failed.set()
        raise self._error

    async def read(self):
        await self._has_failed.wait()
        raise self._error

    def cancel(self):
        pass


async def test_a_stream_that_ends_while_its_first_message_is_written_was_called_nothing():
    """gRPC reports the failed write, in place of the worker's status: all calls may be retried."""
    reported, attempts = StreamReports(), [Attempt() for _ in range(3)]
    stream = open_stream(LostStatus(), reported, TransportLimits())
    for attempt in attempts:
        stream.call(attempt)
    await until(lambda: reported.gone)
    await stream.close()
    assert [attempt.result for attempt in attempts] == [CallResult.UNSENT] * 3


async def test_what_was_not_written_when_the_stream_ended_has_never_left():
    """Behind a worker that does not read, calls wait; at its end they are distinguished from those that were sent."""
    opened = asyncio.Event()

    async def deaf(conversation):
        await opened.wait()

    # 80 MB: gRPC lets a worker that does not read be sent more and more on a slow machine, but not as much as that.
    document = hashed(bytes(200_000))
    attempts = [Attempt(document=document) for _ in range(400)]
    async with streaming(Streams(deaf), worker_batch_bytes=1) as stream:
        for attempt in attempts:
            stream.call(attempt)
        await until(lambda: stream._writing_since and len(stream._unsent) < len(attempts))
        opened.set()
        await until(lambda: stream.has_ended)
    endings = [attempt.result for attempt in attempts]
    sent = endings.index(CallResult.UNSENT)
    assert sent > 0
    assert endings == [CallResult.LOST] * sent + [CallResult.UNSENT] * (len(attempts) - sent)


async def test_a_call_that_ends_may_cancel_the_others():
    """A review that fails by one call cancels its others while the stream ends them all: no call ends twice, and
    none is forgotten.
    """
    reported = StreamReports()
    async with streaming(Streams(end), reported=reported) as stream:
        first = Attempt(reported=lambda: stream.cancel(2))
        attempts = [first, Attempt(), Attempt()]
        for attempt in attempts:
            stream.call(attempt)
        await until(lambda: reported.gone)
    assert [attempt.is_over for attempt in attempts] == [True, False, True]


async def test_a_defect_ends_the_stream_and_all_its_calls(log):
    """If reading fails inside the gateway, open calls fail as INTERNAL instead of waiting for ever."""

    class Defective(StreamReports):
        def unsolicited(self, answers):
            raise RuntimeError("ours")

    async def unsolicited_count(conversation, item):
        await conversation.answer(item.id + 1000)
        return True

    attempts = [Attempt(), Attempt()]
    async with streaming(Streams(answering(judge=unsolicited_count)), reported=Defective()) as stream:
        for attempt in attempts:
            stream.call(attempt)
        await until(lambda: all(attempt.is_over for attempt in attempts))
    assert [attempt.failure.reason for attempt in attempts] == [Reason.INTERNAL] * 2
    assert [entry["log_level"] for entry in log] == ["error"]


async def test_an_call_that_cannot_be_written_ends_the_stream(log, monkeypatch):
    """A call that cannot be serialized does not wait for ever either."""
    monkeypatch.setattr(module, "PHASES", {})
    attempt = Attempt()
    async with streaming(Streams(answering())) as stream:
        stream.call(attempt)
        await until(lambda: attempt.is_over)
    assert attempt.result is CallResult.UNSENT
    assert [entry["log_level"] for entry in log] == ["error"]


async def test_closing_breaks_off_what_is_open():
    """Open calls end; the worker sees its stream end."""
    streams, attempts = Streams(), [Attempt(), Attempt()]
    async with streaming(streams) as stream:
        for attempt in attempts:
            stream.call(attempt)
        await until(lambda: streams.conversations and streams.last.items)
        await stream.close()
        await until(lambda: streams.last.is_over)
    assert [attempt.result for attempt in attempts] == [CallResult.LOST] * 2


async def test_a_stream_that_is_closed_at_once():
    """Before anything was written, nothing has left."""
    attempt = Attempt()
    async with streaming(Streams()) as stream:
        stream.call(attempt)
        await stream.close()
    assert attempt.result is CallResult.UNSENT


# ---------------------------------------------------------------------------------------------------- bounds


async def test_calls_whose_deadline_is_over_are_swept():
    """They are late, the worker gets a cancel, and the others stay."""
    streams, late, kept = Streams(), Attempt(deadline=monotonic() + 0.01), Attempt()
    async with streaming(streams) as stream:
        number = stream.call(late)
        stream.call(kept)
        await until(lambda: late.is_over)
        await until(lambda: streams.last.cancels == [number])
        assert not kept.is_over
    assert (late.failure.reason, late.result) == (Reason.WORKER_TIMEOUT, CallResult.LATE)


async def test_the_backlog_is_what_has_not_been_written():
    """It grows with each call, and shrinks when one is written, cancelled or over."""
    reported, streams = StreamReports(), Streams()
    document = hashed(bytes(1000))
    size = len(document.content) + len(judge().settings)
    async with streaming(streams, reported=reported) as stream:
        numbers = [stream.call(Attempt(document=document)) for _ in range(3)]
        assert reported.backlog.bytes == 3 * size
        stream.cancel(numbers[0])
        assert reported.backlog.bytes == 2 * size
        await until(lambda: streams.conversations and streams.last.items)
        assert reported.backlog.bytes == 0
