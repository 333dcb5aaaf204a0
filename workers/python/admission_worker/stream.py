"""One ``ReviewStream``: many policy calls over one connection, each answered as soon as its outcome is known.

The rules:

* An id is open from its call until its outcome is written. Each open id gets exactly one outcome, in any order: a
  verdict, or a failure after its timeout, without its document, or beyond the limit of calls. A cancelled id gets none.
* If an id is sent again while it is open, the first call is dropped and both get one failure, because the gateway could
  take the verdict of one for the other's.
* Plain functions run on the event loop, for a slice of time; then the loop reads, writes and runs timers. Coroutines
  and threads run beside it. So an outcome waits for no other one, except while a plain function runs.
* All outcomes of one turn of the loop are sent in one message, up to a size.
* The worker stops reading from a gateway that does not read: unwritten outcomes are bounded, in number and in bytes.
* When the gateway half-closes, the worker answers the open calls and ends the stream. A worker that stops still reads
  and answers, because the gateway notices a moment later; it ends a stream when no call is open and no message has come
  for the quiet period. When the stream breaks, all open calls are cancelled.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from functools import partial

import grpc
from google.protobuf.message import DecodeError

from admission_worker.call_handler import ENVELOPE_BYTES, CallHandler
from admission_worker.limits import InFlight, Limits
from admission_worker.outcomes import Outcome, failure
from admission_worker.proto.admission.worker.v1 import worker_pb2

_LOG = logging.getLogger("admission_worker")

SLICE = 0.001
"""Seconds for plain functions before the loop's next turn. A turn's overhead is 10 µs, so this costs one percent; and
it is short compared with a network's latency."""


class _Call:
    """An open call. It counts for ``in_flight`` until its work has ended."""

    __slots__ = ("call", "deadline", "document", "id", "task", "timer")

    def __init__(
        self, number: int, call: worker_pb2.PolicyCall, document: bytes | None, deadline: float | None
    ) -> None:
        self.id = number
        self.call = call
        self.document = document
        self.deadline = deadline  # on the loop's clock; None: until the stream ends
        self.task: asyncio.Task[Outcome] | None = None
        self.timer: asyncio.TimerHandle | None = None


class StreamHandler:
    """Serves one stream.

    Args:
        context: the stream, which reads bytes and writes messages.
        judge: runs policy calls.
        in_flight: the count of open calls, shared with all other RPCs.
        limits: of a batch, and of unwritten outcomes.
        stopping: set when the worker begins to stop.
    """

    def __init__(
        self,
        *,
        context: grpc.aio.ServicerContext,
        judge: CallHandler,
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
        self._received = 0  # messages so far
        self._wake_writer = asyncio.Event()
        self._written = asyncio.Event()
        self._no_more = False

    async def run(self) -> None:
        """Answer until the gateway half-closes, the stream is idle in a worker that stops, or the stream breaks.

        When it breaks, gRPC cancels this coroutine.
        """
        reader = self._loop.create_task(self._read())
        writer = self._loop.create_task(self._write())
        stop = self._loop.create_task(self._idle_after_stop())
        try:
            await asyncio.wait({reader, writer, stop}, return_when=asyncio.FIRST_COMPLETED)
            if reader.done():
                reader.result()
            reader.cancel()
            self._no_more = True
            self._wake_writer.set()
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
            self._received += 1
            self._take(worker_pb2.ReviewStreamRequest.FromString(received), self._loop.time())
            while len(self._outbox) > self._limits.in_flight or self._outbox_bytes > self._limits.message_bytes:
                self._written.clear()
                await self._written.wait()

    async def _idle_after_stop(self) -> None:
        """Wait until the worker begins to stop, and then until the stream has been idle for a quiet period."""
        await self._stopping.wait()
        before = -1
        while before != self._received or self._open or self._outbox:
            before = self._received
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
            # Not logged: an overloaded worker should not also write a line for each rejected call.
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
        """Begin waiting calls for one slice; the rest in the loop's next turn."""
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        end = self._loop.time() + SLICE
        while self._waiting:
            open_call = self._waiting.popleft()
            if self._open.get(open_call.id) is open_call:
                self._begin(open_call)
            if self._waiting and self._loop.time() >= end:
                self._turn = self._loop.call_soon(self._work)
                return

    def _begin(self, open_call: _Call) -> None:
        if self._is_late(open_call):
            self._close(open_call, self._timed_out(open_call.call))
            return
        begun = self._judge.begin(open_call.call, open_call.document)
        if isinstance(begun, Outcome):
            self._close(open_call, self._timed_out(open_call.call) if self._is_late(open_call) else begun)
            return
        open_call.task = self._loop.create_task(begun)
        open_call.task.add_done_callback(partial(self._ended, open_call))
        if open_call.deadline is not None:
            open_call.timer = self._loop.call_at(open_call.deadline, self._expired, open_call)

    def _is_late(self, open_call: _Call) -> bool:
        return open_call.deadline is not None and self._loop.time() >= open_call.deadline

    def _close(self, open_call: _Call, outcome: Outcome) -> None:
        """Answer a call without running work."""
        self._in_flight.leave()
        del self._open[open_call.id]
        self._answer(open_call.id, outcome)

    def _expired(self, open_call: _Call) -> None:
        """Answer at once and cancel the work, which counts for ``in_flight`` until it has ended."""
        self._drop(open_call.id)
        self._answer(open_call.id, self._timed_out(open_call.call))

    def _timed_out(self, call: worker_pb2.PolicyCall) -> Outcome:
        """The outcome of a call that exceeded its timeout."""
        seconds = call.timeout.seconds + call.timeout.nanos / 1e9
        return self._judge.refusal(call, f"policy {call.policy}: no answer within the call's timeout of {seconds:g} s")

    def _ended(self, open_call: _Call, task: asyncio.Task[Outcome]) -> None:
        self._in_flight.leave()
        if open_call.timer is not None:
            open_call.timer.cancel()
        if self._open.get(open_call.id) is open_call:
            del self._open[open_call.id]
            cancelled = f"policy {open_call.call.policy} was cancelled"
            self._answer(
                open_call.id, self._judge.refusal(open_call.call, cancelled) if task.cancelled() else task.result()
            )

    def _drop(self, number: int) -> None:
        """Cancel the call with this id, and drop its outcome. An unknown id is ignored."""
        if (unwritten := self._outbox.pop(number, None)) is not None:
            self._outbox_bytes -= unwritten.ByteSize()
        open_call = self._open.pop(number, None)
        if open_call is None:
            return
        self._wake_writer.set()  # it may have been the last open call, for which the writer waits
        if open_call.timer is not None:
            open_call.timer.cancel()
        if open_call.task is None:
            self._in_flight.leave()
        else:
            open_call.task.cancel()

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
        self._wake_writer.set()

    async def _write(self) -> None:
        """Write outcomes until no call is open and no more will come."""
        while self._open or self._outbox or not self._no_more:
            await self._wake_writer.wait()
            self._wake_writer.clear()
            while self._outbox:
                await self._context.write(self._batch())
                self._written.set()

    def _batch(self) -> worker_pb2.ReviewStreamResponse:
        """The oldest outcomes that fit one message, and at least one."""
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
