"""One worker over gRPC: one channel, unary calls.

Every way in which a call can go wrong ends as a Failure with its reason code, here and nowhere else:

====================================  ======================
what happens                          reason
====================================  ======================
no connection, or lost on the way     WORKER_UNAVAILABLE
the deadline passes                   WORKER_TIMEOUT
another status than OK                WORKER_FAILURE
bytes or an outcome that say nothing  INVALID_RESPONSE
an exception of ours                  INTERNAL
====================================  ======================

The heart keeps the time and cancels; the gRPC deadline tells the worker the same thing.
"""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

import grpc
import grpc.aio
import structlog
from google.protobuf.message import DecodeError

from gateway import __version__
from gateway.deciding import Answer, Ask, Failure
from gateway.reasons import Reason
from gateway.transports.limits import TransportLimits
from gateway.transports.messages import one_line, review_answer, review_request
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

SERVICE: Final = "/admission.worker.v1.Worker/"

_LOG: Final = structlog.get_logger(__name__)

RECONNECT_MS: Final = (100, 2_000)
"""First and longest pause between attempts to connect: a restarted worker is found again within two seconds, and a
hundred gateways do not hammer one that is gone."""

NEVER_IDLE: Final = 2**31 - 1
"""Milliseconds. A channel must not go idle: the first review after a quiet night would pay for the connection."""


class WorkerError(Exception):
    """Describe or ValidateSettings did not succeed; ``str(error)`` says who and why."""


class GrpcWorker:
    """The connection to one worker.

    Args:
        name: the Worker's name, for messages.
        target: a gRPC target.
        limits: see TransportLimits.
    """

    def __init__(self, name: str, target: str, limits: TransportLimits) -> None:
        self.name = name
        self.target = target
        self._limits = limits
        self._channel = grpc.aio.insecure_channel(
            target,
            options=(
                ("grpc.max_send_message_length", limits.message_bytes),
                ("grpc.max_receive_message_length", limits.message_bytes),
                ("grpc.initial_reconnect_backoff_ms", RECONNECT_MS[0]),
                ("grpc.min_reconnect_backoff_ms", RECONNECT_MS[0]),
                ("grpc.max_reconnect_backoff_ms", RECONNECT_MS[1]),
                ("grpc.client_idle_timeout_ms", NEVER_IDLE),
                # A retry is the heart's to decide: it knows about side effects and the time that is left.
                ("grpc.enable_retries", 0),
                # A worker's address is configuration; a proxy of the environment has no business with reviews.
                ("grpc.enable_http_proxy", 0),
                ("grpc.service_config_disable_resolution", 1),
                # Workers may share an address; each has its own connection, so that one cannot starve another.
                ("grpc.use_local_subchannel_pool", 1),
            ),
        )
        # Bytes in, bytes out: what cannot be parsed is the worker's failure, not an exception inside grpc.
        self._review: Any = self._channel.unary_unary(SERVICE + "Review")
        self._describe: Any = self._channel.unary_unary(SERVICE + "Describe")
        self._validate: Any = self._channel.unary_unary(SERVICE + "ValidateSettings")
        self._calls: set[asyncio.Task[None]] = set()
        self._told_of: set[str] = set()

    def ask(self, ask: Ask, answered: Callable[[Answer], None]) -> Callable[[], object]:
        """Put ``ask`` to the worker; ``answered`` is called once, later, in this loop, unless it is cancelled.

        Returns:
            What cancels the call. Then ``answered`` is not called any more.
        """
        task = asyncio.get_running_loop().create_task(self._ask(ask, answered))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return task.cancel

    async def _ask(self, ask: Ask, answered: Callable[[Answer], None]) -> None:
        try:
            left = ask.deadline - monotonic()
            content = await self._review(review_request(ask), timeout=max(left, 0.0))
            answer = review_answer(
                ask, content, characters=self._limits.message_characters, meaningless=self._meaningless_hint
            )
        except grpc.aio.AioRpcError as error:
            answer = self._failure(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, somebody waits for an answer
            _LOG.exception("asking a worker failed inside the gateway", worker=self.name, uid=ask.uid)
            answer = Failure(reason=Reason.INTERNAL, message=f"asking worker {self.name!r}: {type(error).__name__}")
        answered(answer)

    def _meaningless_hint(self, ask: Ask, observed: str) -> None:
        """Told once for each policy: a policy that says so once says so with every answer."""
        if ask.policy.policy not in self._told_of:
            self._told_of.add(ask.policy.policy)
            _LOG.warning(
                "a worker's cache hint means nothing; the verdict is not kept",
                worker=self.name,
                policy=ask.policy.policy,
                observed=observed,
                expected="no_store, or a ttl that is not negative",
            )

    def _failure(self, error: grpc.aio.AioRpcError) -> Failure:
        code = error.code()
        text = self._one_line(error.details() or "")
        if code is grpc.StatusCode.UNAVAILABLE:
            return Failure(
                reason=Reason.WORKER_UNAVAILABLE,
                message=f"worker {self.name!r} at {self.target} cannot be reached; see whether it runs: {text}",
            )
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return Failure(
                reason=Reason.WORKER_TIMEOUT,
                message=f"worker {self.name!r} did not answer before its deadline",
            )
        return Failure(
            reason=Reason.WORKER_FAILURE,
            message=f"worker {self.name!r} answered with status {code.name}: {text}",
        )

    def _one_line(self, text: str) -> str:
        return one_line(text, self._limits.message_characters)

    # --------------------------------------------------------------------------------- off the reviews' path

    async def describe(self) -> pb.DescribeResponse:
        """What the worker says of itself.

        Raises:
            WorkerError: it cannot be reached, fails, or answers with something else.
        """
        content = await self._call(self._describe, pb.DescribeRequest(gateway_version=__version__), "Describe")
        try:
            return pb.DescribeResponse.FromString(content)
        except DecodeError as error:
            raise WorkerError(f"worker {self.name!r} answered Describe with bytes that are none: {error}") from None

    async def validate_settings(self, policy: str, settings: bytes) -> pb.ValidateSettingsResponse:
        """What the worker says of a policy's settings. One without ValidateSettings accepts ``{}`` and nothing else.

        Raises:
            WorkerError: as ``describe``.
        """
        request = pb.ValidateSettingsRequest(policy=policy, settings=settings)
        try:
            content = await self._call(self._validate, request, "ValidateSettings")
            return pb.ValidateSettingsResponse.FromString(content)
        except DecodeError as error:
            raise WorkerError(
                f"worker {self.name!r} answered ValidateSettings with bytes that are none: {error}"
            ) from None
        except _UnimplementedError:
            if settings == b"{}":
                return pb.ValidateSettingsResponse()
            refusal = pb.SettingsError(message="the worker takes no settings (it has no ValidateSettings); remove them")
            return pb.ValidateSettingsResponse(errors=[refusal])

    async def _call(self, method: Any, message: Any, name: str) -> bytes:
        try:
            content = await method(message.SerializeToString(), timeout=self._limits.describe_seconds)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED and name == "ValidateSettings":
                raise _UnimplementedError from None
            text = self._one_line(error.details() or "")
            raise WorkerError(
                f"worker {self.name!r} at {self.target} answered {name} with status {error.code().name}: {text}"
            ) from None
        return bytes(content)

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection at this moment."""
        return self._channel.get_state() is grpc.ChannelConnectivity.READY

    async def connected(self) -> None:
        """Return when there is a connection, however long it takes."""
        while (state := self._channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
            await self._channel.wait_for_state_change(state)

    async def disconnected(self) -> None:
        """Return when the connection is lost, also if there is another one by the time that anybody looks."""
        if self.is_connected:
            await self._channel.wait_for_state_change(grpc.ChannelConnectivity.READY)

    async def idle(self) -> None:
        """Return when no call is open. Each call has its deadline, so this ends."""
        while self._calls:
            await asyncio.wait(tuple(self._calls))

    async def close(self) -> None:
        """Break off what is open, and the connection."""
        for task in tuple(self._calls):
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        await self._channel.close()


class _UnimplementedError(Exception):
    """The worker does not have this method."""
