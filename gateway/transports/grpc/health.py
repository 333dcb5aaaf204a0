"""Whether a worker that is connected says that it is serving: a Watch of ``grpc.health.v1`` for as long as it is.

"A client should call the Watch method to get the status of the service". A worker without the health service is
serving, as gRPC's own client-side health checking has it; so is one that does not know the empty service name.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, NoReturn

import grpc
import grpc.aio
import structlog
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from gateway.transports.wire import parsed

_LOG: Final = structlog.get_logger(__name__)

AGAIN_SECONDS: Final = 1.0
"""Pause before a watch that ended is begun again."""

BETWEEN_SECONDS: Final = 0.1
"""Between two states that are listened to: a worker that changes its mind without end costs no more than ten lines of
log a second, and as many streams."""

MOST_FIELDS: Final = 100
"""Of a message that says one word."""


class HealthWatch:
    """Watches on one channel.

    Args:
        channel: to the worker.
        worker: its name, for the log.
        reported: called with each state that is told.
    """

    def __init__(self, channel: grpc.aio.Channel, worker: str, reported: Callable[[bool], object]) -> None:
        self._watch: Any = channel.unary_stream("/grpc.health.v1.Health/Watch")
        self._worker = worker
        self._reported = reported

    async def keep(self) -> NoReturn:
        """Watch until cancelled."""
        request = health_pb2.HealthCheckRequest().SerializeToString()
        while True:
            try:
                async for content in self._watch(request):
                    said = parsed(health_pb2.HealthCheckResponse, content, most=MOST_FIELDS).status
                    self._reported(said != health_pb2.HealthCheckResponse.NOT_SERVING)
                    await asyncio.sleep(BETWEEN_SECONDS)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    await asyncio.Event().wait()
            except DecodeError as error:
                _LOG.warning("a worker's health cannot be read", worker=self._worker, error=str(error))
            await asyncio.sleep(AGAIN_SECONDS)
