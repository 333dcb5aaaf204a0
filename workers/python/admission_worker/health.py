"""grpc.health.v1: the worker's overall state, under the empty service name.

The health package's servicer never ends a ``Watch``, so a graceful stop would take the whole grace period. Here a watch
ends after it has reported NOT_SERVING.
"""

import asyncio

import grpc
from grpc_health.v1 import health_pb2

_SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
_NOT_SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)
_UNKNOWN = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)

NAMES = frozenset({"", "admission.worker.v1.Worker"})
"""The known services: the worker as a whole, and the contract's."""


class Health:
    """Answers Check and Watch.

    Args:
        stopping: set when the worker begins to stop.
    """

    def __init__(self, stopping: asyncio.Event) -> None:
        self._stopping = stopping

    async def check(
        self, request: health_pb2.HealthCheckRequest, context: grpc.aio.ServicerContext
    ) -> health_pb2.HealthCheckResponse:
        """The state now. NOT_FOUND for an unknown service: "the server ... SHOULD return NOT_FOUND"."""
        if request.service not in NAMES:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"unknown service {request.service!r}")
        return _NOT_SERVING if self._stopping.is_set() else _SERVING

    async def watch(self, request: health_pb2.HealthCheckRequest, context: grpc.aio.ServicerContext) -> None:
        """The state now, and whenever it changes: once."""
        known = request.service in NAMES
        if not self._stopping.is_set():
            await context.write(_SERVING if known else _UNKNOWN)
            await self._stopping.wait()
        await context.write(_NOT_SERVING if known else _UNKNOWN)

    def handler(self) -> grpc.GenericRpcHandler:
        """What a gRPC server needs to serve it."""
        read = health_pb2.HealthCheckRequest.FromString
        write = health_pb2.HealthCheckResponse.SerializeToString
        return grpc.method_handlers_generic_handler(
            "grpc.health.v1.Health",
            {
                "Check": grpc.unary_unary_rpc_method_handler(self.check, read, write),
                "Watch": grpc.unary_stream_rpc_method_handler(self.watch, read, write),
            },
        )
