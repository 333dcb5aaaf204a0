"""Describe and ValidateSettings of one channel. No review waits for these calls."""

from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from gateway import __version__
from gateway.transports.descriptions import read_message
from gateway.transports.grpc.failures import Failures
from gateway.transports.limits import TransportLimits
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.worker_channel import WorkerError

SERVICE: Final = "/admission.worker.v1.Worker/"


class _UnimplementedError(Exception):
    """The worker does not have this method."""


class DescribeClient:
    """Calls Describe and ValidateSettings.

    Args:
        channel: to the worker.
        address: that of the channel, for messages.
        failures: converts errors to failures.
        limits: see TransportLimits.
    """

    def __init__(self, channel: grpc.aio.Channel, address: str, failures: Failures, limits: TransportLimits) -> None:
        # Bytes in, bytes out: what cannot be parsed is the worker's failure, not an exception inside grpc.
        self._describe: Any = channel.unary_unary(SERVICE + "Describe")
        self._validate: Any = channel.unary_unary(SERVICE + "ValidateSettings")
        self._address = address
        self._failures = failures
        self._limits = limits

    async def describe(self) -> bytes:
        """The worker's description, a serialized DescribeResponse.

        Raises:
            WorkerError: it cannot be reached, or fails.
        """
        return await self._call(self._describe, pb.DescribeRequest(gateway_version=__version__), "Describe")

    async def validate_settings(self, policy: str, settings: bytes) -> pb.ValidateSettingsResponse:
        """The worker's answer about a policy's settings. A worker without ValidateSettings accepts only ``{}``.

        Raises:
            WorkerError: it cannot be reached, fails, or answers with something else.
        """
        request = pb.ValidateSettingsRequest(policy=policy, settings=settings)
        try:
            content = await self._call(self._validate, request, "ValidateSettings")
            return read_message(pb.ValidateSettingsResponse, content)
        except DecodeError as error:
            raise WorkerError(
                f"worker {self._failures.name!r} answered ValidateSettings with an invalid message: {error}"
            ) from None
        except _UnimplementedError:
            if settings == b"{}":
                return pb.ValidateSettingsResponse()
            refusal = pb.SettingsError(message="the worker accepts no settings (no ValidateSettings); remove them")
            return pb.ValidateSettingsResponse(errors=[refusal])

    async def _call(self, method: Any, message: Any, name: str) -> bytes:
        try:
            content = await method(message.SerializeToString(), timeout=self._limits.describe_seconds)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED and name == "ValidateSettings":
                raise _UnimplementedError from None
            text = self._failures.one_line(error.details() or "")
            raise WorkerError(
                f"worker {self._failures.name!r} at {self._address} answered {name} with status "
                f"{error.code().name}: {text}"
            ) from None
        return bytes(content)

    async def connect_error(self) -> str:
        """Why there is no connection; empty if there is one. gRPC reports the reason as the status of a call without
        wait-for-ready.
        """
        try:
            await self._describe(b"", timeout=self._limits.describe_seconds)
        except grpc.aio.AioRpcError as error:
            return self._failures.of(error).message
        return ""
