"""A gateway's calls of a worker: the contract's four RPCs, and health.

Every wait ends: without an answer within the patience the worker breaks a rule.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2

from worker_conformance.findings import BrokenRuleError
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.review_stream import ReviewStream
from worker_conformance.target import Target

WORKER = "/admission.worker.v1.Worker/"
HEALTH = "/grpc.health.v1.Health/"

_M = TypeVar("_M", bound=Message)


class Client:
    """One connection to a worker.

    Args:
        channel: from ``Target.channel``.
        patience: seconds to wait for an answer.
    """

    def __init__(self, channel: grpc.aio.Channel, patience: float) -> None:
        self.channel = channel
        self.patience = patience

    async def call(
        self,
        method: str,
        request: Message | bytes,
        answer: Callable[[bytes], _M],
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - gRPC's deadline, which travels to the worker
        metadata: Mapping[str, str] | None = None,
    ) -> _M:
        """A unary call.

        Raises:
            grpc.aio.AioRpcError: the call ended with a status other than OK.
        """
        sent = request if isinstance(request, bytes) else request.SerializeToString()
        call = self.channel.unary_unary(method, None, answer)
        found: _M = await call(sent, timeout=timeout or self.patience, metadata=tuple((metadata or {}).items()))
        return found

    async def describe(self, gateway_version: str = "conformance") -> worker_pb2.DescribeResponse:
        """Describe."""
        request = worker_pb2.DescribeRequest(gateway_version=gateway_version)
        return await self.call(WORKER + "Describe", request, worker_pb2.DescribeResponse.FromString)

    async def validate(self, policy: str, settings: bytes) -> worker_pb2.ValidateSettingsResponse:
        """ValidateSettings."""
        request = worker_pb2.ValidateSettingsRequest(policy=policy, settings=settings)
        return await self.call(WORKER + "ValidateSettings", request, worker_pb2.ValidateSettingsResponse.FromString)

    async def review(
        self,
        policy_call: worker_pb2.PolicyCall,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - gRPC's deadline, which travels to the worker
        metadata: Mapping[str, str] | None = None,
    ) -> worker_pb2.Outcome:
        """Review: the outcome of a policy call."""
        request = worker_pb2.ReviewRequest(call=policy_call)
        read = worker_pb2.ReviewResponse.FromString
        return (await self.call(WORKER + "Review", request, read, timeout=timeout, metadata=metadata)).outcome

    def reviewing(self, policy_call: worker_pb2.PolicyCall, timeout: float | None = None) -> Any:
        """Start Review: an RPC that can be cancelled and awaited."""
        call = self.channel.unary_unary(WORKER + "Review", None, worker_pb2.ReviewResponse.FromString)
        return call(worker_pb2.ReviewRequest(call=policy_call).SerializeToString(), timeout=timeout)

    def stream(self) -> ReviewStream:
        """ReviewStream."""
        call = self.channel.stream_stream(WORKER + "ReviewStream", None, worker_pb2.ReviewStreamResponse.FromString)
        return ReviewStream(call(), self.patience)

    async def health(self, service: str = "") -> int:
        """Health's Check: the status."""
        request = health_pb2.HealthCheckRequest(service=service)
        answer = await self.call(HEALTH + "Check", request, health_pb2.HealthCheckResponse.FromString)
        return int(answer.status)

    def watch(self, service: str = "") -> "Watch":
        """Health's Watch."""
        request = health_pb2.HealthCheckRequest(service=service).SerializeToString()
        call = self.channel.unary_stream(HEALTH + "Watch", None, health_pb2.HealthCheckResponse.FromString)
        return Watch(call(request), self.patience)


class Watch:
    """One ``Health.Watch``."""

    def __init__(self, call: Any, patience: float) -> None:
        self._call = call
        self._patience = patience

    async def status(self) -> str | None:
        """The next status by its name; None: the Watch has ended, with any status."""
        try:
            answer = await asyncio.wait_for(self._call.read(), self._patience)
        except grpc.aio.AioRpcError:
            return None
        except asyncio.CancelledError:
            if self._call.cancelled():
                return None
            raise
        except TimeoutError:
            raise BrokenRuleError("a status from Health.Watch", f"none within {self._patience:g} s") from None
        return None if answer is grpc.aio.EOF else str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))

    def ended(self) -> bool:
        """Whether it has ended."""
        return bool(self._call.done())

    def close(self) -> None:
        """Cancel it."""
        self._call.cancel()


@asynccontextmanager
async def connected(target: Target, patience: float) -> AsyncIterator[Client]:
    """A client with its own connection, until the block ends."""
    async with target.channel() as channel:
        yield Client(channel, patience)
