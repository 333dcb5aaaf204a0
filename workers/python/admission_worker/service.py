"""The contract's four RPCs, for one worker.

An unreadable message ends with INVALID_ARGUMENT, a call beyond the limit with RESOURCE_EXHAUSTED; everything else gets
an answer. A gRPC status is a failure of the call, never a verdict.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError

from admission_worker.call_handler import CallHandler
from admission_worker.errors import InvalidSettingsError
from admission_worker.limits import InFlight, Limits
from admission_worker.outcomes import Outcome
from admission_worker.policies import Policy
from admission_worker.proto.admission.worker.v1 import worker_pb2
from admission_worker.stream import StreamHandler
from admission_worker.tracing import add_metadata

_LOG = logging.getLogger("admission_worker")

_M = TypeVar("_M")

NAME = "admission.worker.v1.Worker"


def description_of(name: str, version: str, policies: Mapping[str, Policy]) -> worker_pb2.DescribeResponse:
    """The response of ``Describe``, made once: it must be cheap, and must not fail while the worker can judge."""
    described = [policy.description_message() for policy in policies.values()]
    return worker_pb2.DescribeResponse(worker=name, version=version, policies=described)


def findings_of(policy: Policy | None, name: str, settings: bytes) -> worker_pb2.ValidateSettingsResponse:
    """The response of ``ValidateSettings``: all errors, or the warnings."""
    answer = worker_pb2.ValidateSettingsResponse()
    if policy is None:
        answer.errors.add(message=f"the worker holds no policy {name!r}")
        return answer
    try:
        _, warnings = policy.settings.read(settings)
    except InvalidSettingsError as error:
        for one in error.errors:
            answer.errors.add(pointer=one.pointer, message=one.message)
    else:
        answer.warnings.extend(warnings)
    return answer


class Service:
    """Serves the four RPCs.

    Args:
        description: the response of ``Describe``.
        policies: by name.
        judge: runs policy calls.
        limits: of calls in flight and of batches.
        stopping: set when the worker begins to stop.

    Attributes:
        received: the number of RPCs so far.
        streams: the number of open streams.
    """

    def __init__(
        self,
        *,
        description: worker_pb2.DescribeResponse,
        policies: Mapping[str, Policy],
        judge: CallHandler,
        limits: Limits,
        stopping: asyncio.Event,
    ) -> None:
        self._description = description
        self._policies = policies
        self._judge = judge
        self._limits = limits
        self._stopping = stopping
        self._in_flight = InFlight(limits.in_flight)
        self.received = 0
        self.streams = 0

    async def describe(self, received: bytes, context: grpc.aio.ServicerContext) -> worker_pb2.DescribeResponse:
        """The policies, their versions and claims."""
        self.received += 1
        request = await _read(worker_pb2.DescribeRequest.FromString, received, context)
        _LOG.info("described to gateway %r at %s", request.gateway_version, context.peer())
        return self._description

    async def validate_settings(
        self, received: bytes, context: grpc.aio.ServicerContext
    ) -> worker_pb2.ValidateSettingsResponse:
        """The errors and warnings of a policy's settings."""
        self.received += 1
        request = await _read(worker_pb2.ValidateSettingsRequest.FromString, received, context)
        return findings_of(self._policies.get(request.policy), request.policy, request.settings)

    async def review(self, received: bytes, context: grpc.aio.ServicerContext) -> worker_pb2.ReviewResponse:
        """One policy call. gRPC cancels it at the deadline, or when the client cancels."""
        self.received += 1
        call = (await _read(worker_pb2.ReviewRequest.FromString, received, context)).call
        if not self._in_flight.enter():
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, self._in_flight.refusal())
        try:
            # "document_index and timeout are not used here."
            document = call.document if call.WhichOneof("document_source") == "document" else None
            add_metadata(call, context.invocation_metadata())
            begun = self._judge.begin(call, document)
            return worker_pb2.ReviewResponse(outcome=begun if isinstance(begun, Outcome) else await begun)
        finally:
            self._in_flight.leave()

    async def review_stream(self, _: Any, context: grpc.aio.ServicerContext) -> None:
        """Many policy calls."""
        self.received += 1
        self.streams += 1
        try:
            await StreamHandler(
                context=context,
                judge=self._judge,
                in_flight=self._in_flight,
                limits=self._limits,
                stopping=self._stopping,
            ).run()
        finally:
            self.streams -= 1

    async def wait_until_idle(self) -> None:
        """Wait until all streams have ended and no RPC has come for a quiet period."""
        before = -1
        while before != self.received or self.streams:
            before = self.received
            await asyncio.sleep(self._limits.quiet_period)

    def handler(self) -> grpc.GenericRpcHandler:
        """The handlers for a gRPC server. They get bytes, so that the worker itself rejects an unreadable request."""
        return grpc.method_handlers_generic_handler(
            NAME,
            {
                "Describe": grpc.unary_unary_rpc_method_handler(
                    self.describe, None, worker_pb2.DescribeResponse.SerializeToString
                ),
                "ValidateSettings": grpc.unary_unary_rpc_method_handler(
                    self.validate_settings, None, worker_pb2.ValidateSettingsResponse.SerializeToString
                ),
                "Review": grpc.unary_unary_rpc_method_handler(
                    self.review, None, worker_pb2.ReviewResponse.SerializeToString
                ),
                "ReviewStream": grpc.stream_stream_rpc_method_handler(
                    self.review_stream, None, worker_pb2.ReviewStreamResponse.SerializeToString
                ),
            },
        )


async def _read(parse: Callable[[bytes], _M], received: bytes, context: grpc.aio.ServicerContext) -> _M:
    """Decode a message; an unreadable one ends the RPC."""
    try:
        return parse(received)
    except DecodeError as error:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"the request cannot be read: {error}")
        raise  # abort has raised already; the type checker does not know
