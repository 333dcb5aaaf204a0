"""Whether a connected worker is serving: a Watch of ``grpc.health.v1`` on each connection.

"A client should call the Watch method to get the status of the service". A worker without the health service is
serving, as in gRPC's own client-side health checking; so is one that does not know the empty service name.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, NoReturn

import grpc
import grpc.aio
import structlog
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from gateway.transports.field_count import parsed

_LOG: Final = structlog.get_logger(__name__)

RETRY_SECONDS: Final = 1.0
"""Pause before a watch that ended is started again."""

STATE_INTERVAL_SECONDS: Final = 0.1
"""The shortest time between two processed states: a worker that changes its state continuously causes at most ten log
lines a second, and as many streams."""

MOST_FIELDS: Final = 100
"""Fields of a health message, which has one."""


class HealthWatch:
    """Watches the health on one channel.

    Args:
        channel: to the worker.
        worker: its name, for the log.
        reported: called with each state: whether the worker is serving.
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
                    status = parsed(health_pb2.HealthCheckResponse, content, most=MOST_FIELDS).status
                    self._reported(status != health_pb2.HealthCheckResponse.NOT_SERVING)
                    await asyncio.sleep(STATE_INTERVAL_SECONDS)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    await asyncio.Event().wait()
            except DecodeError as error:
                _LOG.warning("a worker sent an invalid health message", worker=self._worker, error=str(error))
            await asyncio.sleep(RETRY_SECONDS)
