"""Workers that ignore deadlines, stop no work, or serve their streams wrongly."""

import asyncio

import grpc

from worker_conformance.proto.admission.worker.v1 import worker_pb2
from workers.conformance.tests.faults import breaks
from workers.conformance.tests.reference_judging import failure
from workers.conformance.tests.reference_serving import Stream, Worker


def streaming(*names):
    """A worker with this class of streams."""

    def register(kind):
        class Streams(Worker):
            stream_class = kind

        breaks(*names)(Streams)
        return kind

    return register


# ------------------------------------------------------------------------------------------- waiting


@breaks(
    "waiting.review-deadline",
    "waiting.review-cancel",
    "waiting.closed-connection",
    "waiting.stream-timeout-stops-work",
    "waiting.stream-cancel",
    "waiting.broken-stream",
)
class StopsNoWork(Worker):
    async def probe_sleep(self, call, document, settings, trace):
        await asyncio.sleep(settings.get("seconds", 0))
        return worker_pb2.Outcome(allow=worker_pb2.Allow())


@breaks("waiting.review-ignores-timeout")
class KeepsTheFieldOnReview(Worker):
    async def call_review(self, received, context):
        call = worker_pb2.ReviewRequest.FromString(received).call
        if call.HasField("timeout"):
            return worker_pb2.ReviewResponse(outcome=failure("no answer in time"))
        return await super().call_review(received, context)


@streaming("waiting.stream-timeout", "waiting.stream-timeout-is-of-one-call")
class KeepsNoTime(Stream):
    async def work(self, number, call, document):
        call.ClearField("timeout")
        await super().work(number, call, document)


@streaming("waiting.stream-timeout-is-of-one-call")
class OneIsLateAllAreLate(Stream):
    def answer(self, number, outcome):
        super().answer(number, outcome)
        if "in time" in outcome.failure.message:
            for other in list(self.open):
                self.drop(other)
                super().answer(other, failure("late as well"))


@streaming("waiting.cancelled-gets-no-outcome")
class AnswersCancels(Stream):
    def take(self, batch):
        super().take(batch)
        for item in batch.items:
            if item.HasField("cancel"):
                self.answer(item.id, failure("cancelled"))


@streaming("waiting.stream-cancel")
class CancelsAll(Stream):
    def take(self, batch):
        super().take(batch)
        if any(item.HasField("cancel") for item in batch.items):
            for other in list(self.open):
                self.drop(other)
                self.answer(other, failure("cancelled too"))


# -------------------------------------------------------------------------------------------- stream


@streaming("stream.order-is-free", "stream.thousand-calls", "stream.grouping-is-free", "load.overload", "load.mixed")
class LosesTheSeventh(Stream):
    def answer(self, number, outcome):
        if number % 7:
            super().answer(number, outcome)


@streaming("stream.thousand-calls", "stream.order-is-free")
class AnswersTwice(Stream):
    def batch(self):
        made = super().batch()
        made.items.extend(list(made.items))
        return made


@streaming("stream.shared-documents", "stream.invalid-index")
class RemembersDocuments(Stream):
    kept = None

    def document(self, call, documents):
        self.kept = self.kept or list(documents)
        return super().document(call, self.kept)


@streaming("stream.duplicate-id")
class AnswersTheSecond(Stream):
    def opened(self, number, call, documents):
        self.drop(number)
        super().opened(number, call, documents)


@streaming("stream.unknown-cancel")
class KnowsItsIds(Stream):
    def drop(self, number):
        if number not in self.open:
            raise KeyError(number)
        super().drop(number)


@streaming("stream.empty-batch")
class WantsItems(Stream):
    def take(self, batch):
        if not batch.items:
            raise ValueError("a message without items")
        super().take(batch)


@streaming("stream.empty-item")
class AnswersAnything(Stream):
    def take(self, batch):
        super().take(batch)
        for item in batch.items:
            if item.WhichOneof("item") is None:
                self.answer(item.id, failure("neither call nor cancel"))


@streaming("stream.ids-have-64-bits")
class CountsInDoubles(Stream):
    def answer(self, number, outcome):
        super().answer(min(int(float(number)), 2**64 - 2048), outcome)


@streaming("stream.half-close")
class LeavesAtHalfClose(Stream):
    def close(self):
        for number in list(self.open):
            self.drop(number)
        super().close()


@streaming("stream.no-calls", "stream.half-close")
class EndsBadly(Stream):
    async def run(self):
        await super().run()
        await self.context.abort(grpc.StatusCode.CANCELLED, "half-closed")


@streaming("stream.panic")
class EndsWithAPanic(Stream):
    def answer(self, number, outcome):
        super().answer(number, outcome)
        if "RuntimeError" in outcome.failure.message:
            for other in list(self.open):
                self.drop(other)


# ---------------------------------------------------------------------------------------------- load


@breaks("load.stalled-peer-is-isolated")
class WritesUnderOneLock(Worker):
    def __init__(self):
        super().__init__()
        self.lock = asyncio.Lock()

    async def call_review(self, received, context):
        async with self.lock:
            return await super().call_review(received, context)

    class stream_class(Stream):  # noqa: N801 - the worker's attribute
        async def writing(self):
            async with self.worker.lock:
                await super().writing()


@streaming("load.stalled-peer-is-bounded")
class ReadsOnAndOn(Stream):
    async def reading(self):
        while (received := await self.context.read()) is not grpc.aio.EOF:
            self.take(worker_pb2.ReviewStreamRequest.FromString(received))
        self.close()


@breaks("load.mixed")
class DoesOneThing(Worker):
    room = 20

    def __init__(self):
        super().__init__()
        self.room = 20
