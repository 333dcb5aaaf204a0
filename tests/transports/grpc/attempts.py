"""One ReviewStream to a scripted worker, and who waits for the answers on it."""

from contextlib import asynccontextmanager

import grpc.aio

from gateway.documents.documents import hashed
from gateway.engine.policy_call import PolicyCall
from gateway.transports.grpc.connection import SERVICE
from gateway.transports.grpc.failures import Failures
from gateway.transports.grpc.stream import ReviewStream
from gateway.transports.limits import Backlog, TransportLimits
from gateway.transports.messages import outcome_answer
from tests.integration.workers import scripted
from tests.transports.reaching import FAR_AWAY, judge

JUDGE = judge()
DOCUMENT = hashed(b"{}")


class Attempt:
    """Waits. ``answer`` is what came, ``result`` how it ended without one; more than one of them is an error."""

    def __init__(self, about=JUDGE, *, document=DOCUMENT, deadline=FAR_AWAY, reported=lambda: None, **fields):
        given = {"id": 1, "uid": "u1", "cancellable": True, "version": "1"} | fields
        self.call = PolicyCall(policy=about, document=document, deadline=deadline, **given)
        self.answer = self.failure = self.result = None
        self._reported = reported

    @property
    def is_over(self):
        return self.answer is not None or self.result is not None

    def answered(self, answer):
        assert not self.is_over
        self.answer = answer
        self._reported()

    def ended(self, failure, result):
        assert not self.is_over
        self.failure, self.result = failure, result
        self._reported()


class StreamReports:
    """What a stream reports to its connection."""

    def __init__(self):
        self.unsolicited_count = 0
        self.gone = []
        self.backlog = Backlog(1_000_000)

    def unsolicited(self, answers):
        self.unsolicited_count += answers


def open_stream(channel, reported, limits):
    """One more stream of a channel."""
    return ReviewStream(
        channel.stream_stream(SERVICE + "ReviewStream")(),
        limits=limits,
        backlog=reported.backlog,
        failures=Failures("labels", "somewhere", 500),
        read=lambda call, outcome, *, is_large: outcome_answer(call, outcome, characters=500),
        unsolicited=reported.unsolicited,
        ended=reported.gone.append,
    )


@asynccontextmanager
async def streaming(script, *, reported=None, options=(), **limits):
    """A stream to a worker with this stream; closed at the end, when every call must have been answered."""
    reported = reported or StreamReports()
    async with scripted("judge", stream=script) as target, grpc.aio.insecure_channel(target, options) as channel:
        stream = open_stream(channel, reported, TransportLimits(**limits))
        try:
            yield stream
        finally:
            await stream.close()
            assert reported.gone == [stream]
            assert reported.backlog.bytes == 0
