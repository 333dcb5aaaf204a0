"""What a consumer of a queue needs of whoever answers its calls."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

HandlerResult = pb.Outcome | pb.ValidateSettingsResponse | q.Error
"""What is said to a question: the worker's own words, or why there are none."""


class ConsumerDescription(Struct, frozen=True, kw_only=True):
    """As whom a consumer stands in the queue.

    ``description`` is a DescribeResponse, serialized; equal descriptions are equal bytes. ``lane`` is that of its
    claims.
    """

    description: bytes
    lane: str


class Handler(Protocol):
    """Answers what is taken from a queue. All calls are made in the loop."""

    @property
    def consumer_description(self) -> ConsumerDescription | None:
        """As whom it answers now; None: nobody can be called, so nothing is to be taken."""

    @property
    def why(self) -> str:
        """Why nobody can be called, as far as anybody knows; it says nothing while somebody can."""

    def listen(self, listener: Callable[[], object]) -> None:
        """Call this whenever ``consumer_description`` may have changed."""

    def judge(
        self, call: pb.PolicyCall, answered: Callable[[HandlerResult], None], *, until: float, once: bool
    ) -> None:
        """Have a call judged. ``answered`` is called once, later, in this loop, never inside this call.

        Args:
            call: the question, its document inline.
            answered: is told what is said.
            until: seconds of the monotonic clock at which nobody waits any more. ``answered`` is called by then, or
                soon after.
            once: the policy has side effects: it is not put to a worker twice.
        """

    async def validate_settings(self, request: pb.ValidateSettingsRequest) -> HandlerResult:
        """What is said of a policy's settings. Never raises, and takes as long as describing may."""
