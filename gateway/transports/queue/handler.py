"""The protocol of what answers a consumer's calls."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

HandlerResult = pb.Outcome | pb.ValidateSettingsResponse | q.Error
"""The worker's answer to a request, or the error why there is none."""


class ConsumerDescription(Struct, frozen=True, kw_only=True):
    """What a consumer publishes about its worker.

    ``description`` is a DescribeResponse, serialized; equal descriptions are equal bytes. ``lane`` is the lane of its
    claims.
    """

    description: bytes
    lane: str


class Handler(Protocol):
    """Answers the calls of a consumer. All methods are called in the event loop."""

    @property
    def consumer_description(self) -> ConsumerDescription | None:
        """The worker's description; None: the worker cannot be called, so the consumer must not read calls."""

    @property
    def why(self) -> str:
        """Why the worker cannot be called, if that is known; empty while it can."""

    def listen(self, listener: Callable[[], object]) -> None:
        """Call this whenever ``consumer_description`` may have changed."""

    def handle(
        self, call: pb.PolicyCall, answered: Callable[[HandlerResult], None], *, until: float, once: bool
    ) -> None:
        """Handle a call. ``answered`` is called once, later, in this loop, never before this method returns.

        Args:
            call: the call, with its document inline.
            answered: gets the result.
            until: the deadline, in seconds of the monotonic clock. ``answered`` is called by then, or soon after.
            once: the policy has side effects: the handler must not call a worker twice.
        """

    async def validate_settings(self, request: pb.ValidateSettingsRequest) -> HandlerResult:
        """Validate a policy's settings. Never raises, and takes no longer than Describe may."""
