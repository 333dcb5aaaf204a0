"""The reference worker as a server: the four RPCs and health, over grpc.aio."""

# ruff: noqa: ASYNC110 - a worker of the tests may poll

import asyncio
from contextlib import asynccontextmanager

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from worker_conformance.proto.admission.worker.v1 import worker_pb2
from workers.conformance.tests.reference_judging import LIMIT, Judging, failure

SERVICE = "admission.worker.v1.Worker"
HEALTH = health_pb2.HealthCheckResponse
OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", LIMIT),
    ("grpc.max_send_message_length", LIMIT),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5000),
    ("grpc.http2.min_ping_interval_without_data_ms", 5000),
    ("grpc.keepalive_permit_without_calls", 1),
)
UNWRITTEN = 64
"""Outcomes that may wait for a client that does not read."""


async def read(kind, received, context):
    try:
        return kind.FromString(received)
    except DecodeError as error:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"unreadable: {error}")


class Stream:
    """One ReviewStream."""

    def __init__(self, worker, context):
        self.worker, self.context = worker, context
        self.open, self.ready, self.twice = {}, {}, set()
        self.changed, self.room = asyncio.Event(), asyncio.Event()
        self.no_more = False

    async def run(self):
        reader, stopper = asyncio.ensure_future(self.reading()), asyncio.ensure_future(self.lame())
        writer = asyncio.ensure_future(self.writing())
        try:
            done, _ = await asyncio.wait({reader, writer, stopper}, return_when=asyncio.FIRST_COMPLETED)
            if reader in done and reader.exception():
                await self.unreadable(reader.exception())
            await writer
        finally:
            for task in (reader, stopper, writer):
                task.cancel()
            self.end()

    async def unreadable(self, error):
        if isinstance(error, DecodeError):
            await self.context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"unreadable: {error}")
        raise error

    def end(self):
        """The stream has ended: its open calls have failed."""
        for task in self.open.values():
            task.cancel()

    async def lame(self):
        """While the worker stops: end when no call is open and no message comes."""
        await self.worker.stopping.wait()
        while self.open or self.ready:
            await asyncio.sleep(self.worker.lame_seconds / 5)
        await asyncio.sleep(self.worker.lame_seconds)
        self.close()

    def close(self):
        self.no_more = True
        self.changed.set()

    async def reading(self):
        while (received := await self.context.read()) is not grpc.aio.EOF:
            batch = worker_pb2.ReviewStreamRequest.FromString(received)
            self.take(batch)
            while len(self.ready) > UNWRITTEN:
                self.room.clear()
                await self.room.wait()
        self.close()

    def take(self, batch):
        for item in batch.items:
            kind = item.WhichOneof("item")
            if kind == "call":
                self.opened(item.id, item.call, batch.documents)
            elif kind == "cancel":
                self.drop(item.id)

    def opened(self, number, call, documents):
        if number in self.open or number in self.ready:
            self.drop(number)
            self.answer(number, failure("the id is open already"))
            return
        if self.worker.in_flight >= self.worker.room:
            self.answer(number, failure(f"{self.worker.room} calls are in flight"))
            return
        self.worker.in_flight += 1
        self.open[number] = asyncio.ensure_future(self.work(number, call, self.document(call, documents)))
        self.open[number].add_done_callback(self.left)

    def left(self, task):
        """The work of a call has ended, in any way: its id is free."""
        self.worker.in_flight -= 1

    def document(self, call, documents):
        if call.HasField("document"):
            return call.document
        if call.HasField("document_index") and call.document_index < len(documents):
            return documents[call.document_index]
        return None

    async def work(self, number, call, document):
        timeout = call.timeout.ToNanoseconds() / 1e9 if call.HasField("timeout") else None
        try:
            outcome = await asyncio.wait_for(self.worker.judge(call, document, call.traceparent), timeout)
        except TimeoutError:
            outcome = failure("no answer in time")
        if self.open.get(number) is asyncio.current_task():
            del self.open[number]
            self.answer(number, outcome)

    def drop(self, number):
        self.ready.pop(number, None)
        task = self.open.pop(number, None)
        if task:
            task.cancel()
        self.changed.set()

    def answer(self, number, outcome):
        self.ready[number] = outcome
        self.changed.set()

    async def writing(self):
        while self.open or self.ready or not self.no_more:
            await self.changed.wait()
            self.changed.clear()
            while self.ready:
                await self.context.write(self.batch())
                self.room.set()

    def batch(self):
        made, size = worker_pb2.ReviewStreamResponse(), 0
        for number, outcome in list(self.ready.items()):
            size += outcome.ByteSize()
            if made.items and size > 4 << 20:
                break
            made.items.add(id=number, outcome=outcome)
            del self.ready[number]
        return made


class Worker(Judging):
    """Serves the policies; a fault can replace each method."""

    options = OPTIONS
    services = ("", SERVICE)
    lame_seconds = 0.5
    front = None
    stream_class = Stream

    def __init__(self):
        super().__init__()
        self.stopping = asyncio.Event()

    async def call_describe(self, received, context):
        return self.describe(await read(worker_pb2.DescribeRequest, received, context))

    async def call_validate(self, received, context):
        return self.validate(await read(worker_pb2.ValidateSettingsRequest, received, context))

    async def call_review(self, received, context):
        call = (await read(worker_pb2.ReviewRequest, received, context)).call
        trace = dict(context.invocation_metadata()).get("traceparent", "")
        if self.in_flight >= self.room:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{self.room} calls are in flight")
        document = call.document if call.HasField("document") else None
        return worker_pb2.ReviewResponse(outcome=await self.counted(call, document, trace))

    async def counted(self, call, document, trace):
        self.in_flight += 1
        try:
            return await self.judge(call, document, trace)
        finally:
            self.in_flight -= 1

    async def call_stream(self, received, context):
        await self.stream_class(self, context).run()

    async def check(self, request, context):
        if request.service not in self.services:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return HEALTH(status=HEALTH.NOT_SERVING if self.stopping.is_set() else HEALTH.SERVING)

    async def watch(self, request, context):
        known = request.service in self.services
        await context.write(HEALTH(status=HEALTH.SERVING if known else HEALTH.SERVICE_UNKNOWN))
        await self.stopping.wait()
        await context.write(HEALTH(status=HEALTH.NOT_SERVING if known else HEALTH.SERVICE_UNKNOWN))

    def handlers(self):
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
        methods = {
            "Describe": unary(self.call_describe, None, worker_pb2.DescribeResponse.SerializeToString),
            "ValidateSettings": unary(self.call_validate, None, worker_pb2.ValidateSettingsResponse.SerializeToString),
            "Review": unary(self.call_review, None, worker_pb2.ReviewResponse.SerializeToString),
            "ReviewStream": stream(self.call_stream, None, worker_pb2.ReviewStreamResponse.SerializeToString),
        }
        called = health_pb2.HealthCheckRequest.FromString
        health = {
            "Check": unary(self.check, called, HEALTH.SerializeToString),
            "Watch": grpc.unary_stream_rpc_method_handler(self.watch, called, HEALTH.SerializeToString),
        }
        return (
            grpc.method_handlers_generic_handler(SERVICE, methods),
            grpc.method_handlers_generic_handler("grpc.health.v1.Health", health),
        )


@asynccontextmanager
async def serving(worker, address="127.0.0.1:0"):
    """A worker on its address, until the block ends."""
    server = grpc.aio.server(options=worker.options)
    server.add_generic_rpc_handlers(worker.handlers())
    port = server.add_insecure_port(address)
    await server.start()
    front = worker.front(port) if worker.front else None
    try:
        yield await front.start() if front else f"127.0.0.1:{port}"
    finally:
        if front:
            await front.stop()
        await server.stop(None)
