"""Workers that misbehave: bytes in, bytes out, without the SDK, so that nothing keeps them from it.

A method is a coroutine function of the request's bytes and the gRPC context, which gives the answer's bytes. A stream,
and a health watch, is one of the context alone, which reads and writes bytes (see ``conversations``).
"""

import asyncio
from contextlib import asynccontextmanager

import grpc
import grpc.aio

from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

SERVICE = "admission.worker.v1.Worker"
HEALTH = "grpc.health.v1.Health"

BOTH = (pb.PHASE_MUTATING, pb.PHASE_VALIDATING)


def description(*names, version="1", phases=BOTH):
    """What a worker says that holds these policies."""
    policies = [pb.PolicyDescription(name=name, phases=phases) for name in names]
    return pb.DescribeResponse(worker="scripted", version=version, policies=policies).SerializeToString()


def answer(**fields):
    """A ReviewResponse with an Outcome of these fields."""
    return pb.ReviewResponse(outcome=pb.Outcome(**fields)).SerializeToString()


ALLOW = answer(allow=pb.Allow())


def deny(message="no"):
    """A denial."""
    return answer(deny=pb.Deny(message=message))


def patch(text):
    """An allow with a JSON Patch, given as text."""
    return answer(allow=pb.Allow(json_patch=text.encode()))


def always(content):
    """A method that gives this answer, whatever it is called."""

    async def method(request, context):
        return content

    return method


def status(code, details):
    """A method that fails with this gRPC status."""

    async def method(request, context):
        await context.abort(code, details)

    return method


class Hanging:
    """A method that never answers. ``called`` and ``cancelled`` are set when it is, and when its caller gives up."""

    def __init__(self):
        self.called = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self, request, context):
        self.called.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


class Gate:
    """A method that answers when it is opened. ``calls`` are those that came."""

    def __init__(self, content=ALLOW):
        self.calls = []
        self.called = asyncio.Event()
        self.open = asyncio.Event()
        self._content = content

    async def __call__(self, request, context):
        self.calls.append(pb.ReviewRequest.FromString(request).call)
        self.called.set()
        await self.open.wait()
        return self._content


def _function(method):
    """As a function: gRPC takes an object that can be called for a blocking method."""

    async def call(request, context):
        return await method(request, context)

    return call


def _streamed(method):
    async def call(requests, context):
        await method(context)

    return grpc.stream_stream_rpc_method_handler(call)


@asynccontextmanager
async def scripted(
    *names, review=None, describe=None, validate=None, stream=None, health=None, address="127.0.0.1:0", credentials=None
):
    """Serve a worker with these policies; gives its target.

    Without ``review`` it allows everything. Without ``describe`` it holds the policies ``names`` in both phases.
    Without ``validate`` it accepts all settings; False: it does not have ValidateSettings. Without ``stream`` or
    ``health`` it does not have ReviewStream or the health service. With ``credentials`` it serves TLS.
    """
    methods = {"Review": review or always(ALLOW), "Describe": describe or always(description(*names))}
    if validate is not False:
        methods["ValidateSettings"] = validate or always(pb.ValidateSettingsResponse().SerializeToString())
    handlers = {name: grpc.unary_unary_rpc_method_handler(_function(method)) for name, method in methods.items()}
    if stream is not None:
        handlers["ReviewStream"] = _streamed(stream)
    unlimited = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))
    server = grpc.aio.server(options=unlimited)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    if health is not None:
        watch = {"Watch": _streamed(health)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(HEALTH, watch),))
    port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    await server.start()
    try:
        yield address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"
    finally:
        await server.stop(None)


@asynccontextmanager
async def garbage(content):
    """A TCP server that writes this to each connection, and then nothing more; gives its target, and an event."""
    met = asyncio.Event()

    async def connected(reader, writer):
        met.set()
        writer.write(content)
        try:
            while await reader.read(65536):
                pass
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", met
    finally:
        server.close()
        await server.wait_closed()
