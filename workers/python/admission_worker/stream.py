"""One ``ReviewStream``: many calls over one connection, each answered as soon as it is known.

The rules:

* An id is open from its call until its outcome is written. Each open id gets exactly one outcome, in any order: a
  verdict, or a failure when its time is over, its document is not there, or the worker is full. A cancelled one gets
  none.
* An id that comes again while it is open is two questions with one name: the first is dropped and a failure is the
  answer to both, since a verdict could be taken for the other's.
* Plain functions run on the event loop, for a slice of time at once; then the loop reads, writes and keeps time.
  Coroutines and threads run beside it. So an outcome waits for no other one, a plain function's excepted while it runs.
* Everything that is known in one turn of the loop travels in one message, up to a size.
* A gateway that does not read its answers is not read either: what is not written is bounded, in number and in bytes.
* When the gateway half-closes, what is open is answered, and the stream ends. When the worker is told to stop it still
  reads and answers, for the gateway needs a moment to hear of it; a stream on which nothing is open and nothing has
  come for a while ends. When the stream breaks, everything open is cancelled.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from functools import partial

import grpc
from google.protobuf.message import DecodeError

from admission_worker.judging import ENVELOPE_BYTES, Judge
from admission_worker.limits import InFlight, Limits
from admission_worker.outcomes import Outcome, failure
from admission_worker.proto.admission.worker.v1 import worker_pb2

_LOG = logging.getLogger("admission_worker")

SLICE = 0.001
"""Seconds for plain functions before the loop turns: a hundred turns' overhead (10 µs), so it costs a hundredth; and
less than anybody waiting for an answer over a network notices."""


class _Call:
    """An open call. It holds one place in flight until its work has ended."""

    __slots__ = ("call", "deadline", "document", "id", "task", "timer")

    def __init__(
        self, number: int, call: worker_pb2.PolicyCall, document: bytes | None, deadline: float | None
    ) -> None:
        self.id = number
        self.call = call
        self.document = document
        self.deadline = deadline  # on the loop's clock; None: as long as the stream lives
        self.task: asyncio.Task[Outcome] | None = None
        self.timer: asyncio.TimerHandle | None = None


class Conversation:
    """Serves one stream.

    Args:
        context: the stream, of bytes in and messages out.
        judge: answers.
        in_flight: places for calls, shared with all other calls.
        limits: of a batch, and of what is not yet written.
        stopping: set when the worker is told to stop.
    """

    def __init__(
        self,
        *,
        context: grpc.aio.ServicerContext,
        judge: Judge,
        in_flight: InFlight,
        limits: Limits,
        stopping: asyncio.Event,
    ) -> None:
        self._context = context
        self._judge = judge
        self._in_flight = in_flight
        self._limits = limits
        self._stopping = stopping
        self._loop = asyncio.get_running_loop()
        self._open: dict[int, _Call] = {}
        self._waiting: deque[_Call] = deque()
        self._turn: asyncio.Handle | None = None
        self._outbox: dict[int, Outcome] = {}
        self._outbox_bytes = 0
        self._heard = 0  # messages that have come
        self._something_to_do = asyncio.Event()
        self._written = asyncio.Event()
        self._no_more = False

    async def run(self) -> None:
        """Answer until the gateway half-closes, nothing comes to a worker that stops, or the stream breaks.

        When it breaks, gRPC cancels this.
        """
        reader = self._loop.create_task(self._read())
        writer = self._loop.create_task(self._write())
        stop = self._loop.create_task(self._fell_silent())
        try:
            await asyncio.wait({reader, writer, stop}, return_when=asyncio.FIRST_COMPLETED)
            if reader.done():
                reader.result()
            reader.cancel()
            self._no_more = True
            self._something_to_do.set()
            await writer
        except DecodeError as error:
            await self._context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"not a ReviewStreamRequest: {error}")
        finally:
            for task in (reader, writer, stop):
                task.cancel()
            self._drop_all()

    # ------------------------------------------------------------------------------------------ in

    async def _read(self) -> None:
        while (received := await self._context.read()) is not grpc.aio.EOF:
            self._heard += 1
            self._take(worker_pb2.ReviewStreamRequest.FromString(received), self._loop.time())
            while len(self._outbox) > self._limits.in_flight or self._outbox_bytes > self._limits.message_bytes:
                self._written.clear()
                await self._written.wait()

    async def _fell_silent(self) -> None:
        """Wait until the worker is told to stop, and then for a quiet period with nothing open at its end."""
        await self._stopping.wait()
        before = -1
        while before != self._heard or self._open or self._outbox:
            before = self._heard
            await asyncio.sleep(self._limits.quiet_period)

    def _take(self, batch: worker_pb2.ReviewStreamRequest, arrived: float) -> None:
        documents = list(batch.documents)
        for item in batch.items:
            match item.WhichOneof("item"):
                case "call":
                    self._opened(item.id, item.call, documents, arrived)
                case "cancel":
                    self._drop(item.id)
                case _:  # of a newer contract: "fields unknown to the receiver are ignored"
                    _LOG.debug("an item without call or cancel was ignored (id %d)", item.id)
        self._work()

    def _opened(self, number: int, call: worker_pb2.PolicyCall, documents: Sequence[bytes], arrived: float) -> None:
        if number in self._open or number in self._outbox:
            self._drop(number)
            message = f"the stream has an open call with id {number} already: ids must be unique"
            self._answer(number, self._judge.refusal(call, message))
            return
        if not self._in_flight.enter():
            # Not logged: a worker that is full has other things to do than to write a line for each call.
            self._answer(number, failure(self._in_flight.refusal(), version=self._judge.version_of(call.policy)))
            return
        document = None
        match call.WhichOneof("document_source"):
            case "document":
                document = call.document
            case "document_index":
                if call.document_index >= len(documents):
                    self._in_flight.leave()
                    count, index = len(documents), call.document_index
                    message = f"document_index is {index}, and its message has {count} documents"
                    self._answer(number, self._judge.refusal(call, message))
                    return
                document = documents[call.document_index]
        timeout = call.timeout.seconds + call.timeout.nanos / 1e9 if call.HasField("timeout") else None
        opened = _Call(number, call, document, None if timeout is None else arrived + timeout)
        self._open[number] = opened
        self._waiting.append(opened)

    # ---------------------------------------------------------------------------------------- work

    def _work(self) -> None:
        """Begin what waits, for one slice; the rest in the loop's next turn."""
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        end = self._loop.time() + SLICE
        while self._waiting:
            called = self._waiting.popleft()
            if self._open.get(called.id) is called:
                self._begin(called)
            if self._waiting and self._loop.time() >= end:
                self._turn = self._loop.call_soon(self._work)
                return

    def _begin(self, called: _Call) -> None:
        if self._is_late(called):
            self._close(called, self._timed_out(called.call))
            return
        begun = self._judge.begin(called.call, called.document, traceparent=called.call.traceparent)
        if isinstance(begun, Outcome):
            self._close(called, self._timed_out(called.call) if self._is_late(called) else begun)
            return
        called.task = self._loop.create_task(begun)
        called.task.add_done_callback(partial(self._ended, called))
        if called.deadline is not None:
            called.timer = self._loop.call_at(called.deadline, self._expired, called)

    def _is_late(self, called: _Call) -> bool:
        return called.deadline is not None and self._loop.time() >= called.deadline

    def _close(self, called: _Call, outcome: Outcome) -> None:
        """Answer an ask for which nothing is running."""
        self._in_flight.leave()
        del self._open[called.id]
        self._answer(called.id, outcome)

    def _expired(self, called: _Call) -> None:
        """Answer at once; the work is cancelled, and its place is free when it has really ended."""
        self._drop(called.id)
        self._answer(called.id, self._timed_out(called.call))

    def _timed_out(self, call: worker_pb2.PolicyCall) -> Outcome:
        """The outcome of a call whose time is over."""
        seconds = call.timeout.seconds + call.timeout.nanos / 1e9
        return self._judge.refusal(call, f"policy {call.policy}: no answer within the call's timeout of {seconds:g} s")

    def _ended(self, called: _Call, task: asyncio.Task[Outcome]) -> None:
        self._in_flight.leave()
        if called.timer is not None:
            called.timer.cancel()
        if self._open.get(called.id) is called:
            del self._open[called.id]
            cancelled = f"policy {called.call.policy} was cancelled"
            self._answer(called.id, self._judge.refusal(called.call, cancelled) if task.cancelled() else task.result())

    def _drop(self, number: int) -> None:
        """Nobody waits for this id any more. An unknown id is ignored."""
        if (unwritten := self._outbox.pop(number, None)) is not None:
            self._outbox_bytes -= unwritten.ByteSize()
        called = self._open.pop(number, None)
        if called is None:
            return
        self._something_to_do.set()  # it may have been the last one that the writer waited for
        if called.timer is not None:
            called.timer.cancel()
        if called.task is None:
            self._in_flight.leave()
        else:
            called.task.cancel()

    def _drop_all(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
        for number in tuple(self._open):
            self._drop(number)
        self._waiting.clear()

    # ----------------------------------------------------------------------------------------- out

    def _answer(self, number: int, outcome: Outcome) -> None:
        self._outbox[number] = outcome
        self._outbox_bytes += outcome.ByteSize()
        self._something_to_do.set()

    async def _write(self) -> None:
        """Write what is known, until nothing is open and nothing more will come."""
        while self._open or self._outbox or not self._no_more:
            await self._something_to_do.wait()
            self._something_to_do.clear()
            while self._outbox:
                await self._context.write(self._batch())
                self._written.set()

    def _batch(self) -> worker_pb2.ReviewStreamResponse:
        """The oldest outcomes that fit one message; the oldest one in any case."""
        batch = worker_pb2.ReviewStreamResponse()
        room = min(self._limits.batch_bytes, self._limits.message_bytes)
        for number, outcome in self._outbox.items():
            room -= outcome.ByteSize() + ENVELOPE_BYTES
            if room < 0 and batch.items:
                break
            batch.items.add(id=number, outcome=outcome)
        for item in batch.items:
            self._outbox_bytes -= self._outbox.pop(item.id).ByteSize()
        return batch
