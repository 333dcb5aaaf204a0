"""What a consumer of a queue needs of whoever answers its asks, and what it tells of itself, for metrics."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

Said = pb.Outcome | pb.ValidateSettingsResponse | q.Error
"""What is said to a question: the worker's own words, or why there are none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Introduced:
    """As whom a consumer stands in the queue.

    ``description`` is a DescribeResponse, serialized; equal descriptions are equal bytes. ``lane`` is that of its
    claims.
    """

    description: bytes
    lane: str


class Judging(Protocol):
    """Answers what is taken from a queue. All calls are made in the loop."""

    @property
    def introduced(self) -> Introduced | None:
        """As whom it answers now; None: nobody can be asked, so nothing is to be taken."""

    @property
    def why(self) -> str:
        """Why nobody can be asked, as far as anybody knows; it says nothing while somebody can."""

    def listen(self, listener: Callable[[], object]) -> None:
        """Call this whenever ``introduced`` may have changed."""

    def judge(self, ask: pb.Ask, answered: Callable[[Said], None], *, until: float, once: bool) -> None:
        """Have an ask judged. ``answered`` is called once, later, in this loop, never inside this call.

        Args:
            ask: the question, its document inline.
            answered: is told what is said.
            until: seconds of the monotonic clock at which nobody waits any more. ``answered`` is called by then, or
                soon after.
            once: the policy has side effects: it is not put to a worker twice.
        """

    async def validate_settings(self, request: pb.ValidateSettingsRequest) -> Said:
        """What is said of a policy's settings. Never raises, and takes as long as describing may."""


class ConsumerEvent(StrEnum):
    """Something that happened to an entry of a queue, or with Redis."""

    TAKEN = "taken"
    """A question was taken, and put to the worker."""

    CLAIMED = "claimed"
    """An entry was taken over from a consumer that does not renew it any more, or from this one's own lost read."""

    ANSWERED = "answered"
    """An answer was written, whatever it says."""

    EXPIRED = "expired"
    """A question was dropped unasked, because its deadline was over."""

    LATE = "late"
    """An answer was dropped, because the deadline was over before it could be written."""

    UNREADABLE = "unreadable"
    """An entry was dropped that is no message of a gateway with this key."""

    REPEATED = "repeated"
    """A question came again whose answer was known, or under way: the worker was not asked again."""

    ONCE = "once"
    """A question to a policy with side effects was not put again, because it may have had its effect."""

    POISON = "poison"
    """A question was not put again, because whoever had it before did not survive it, twice."""

    UNHEARD = "unheard"
    """Answers were for a gateway that is gone."""

    UNWRITABLE = "unwritable"
    """Redis refused an answer by itself, such as one for a name that holds something else."""

    REDIS_LOST = "redis_lost"
    """The connection to Redis was lost, or could not be made."""


class ConsumerEvents(Protocol):
    """Hears of everything that is worth a metric. Calls must not raise, and take next to no time."""

    def happened(self, event: ConsumerEvent, count: int = 1) -> None:
        """Something happened, so often."""


class NoConsumerEvents:
    """Hears of everything and tells nobody."""

    def happened(self, event: ConsumerEvent, count: int = 1) -> None:
        """See ConsumerEvents."""
