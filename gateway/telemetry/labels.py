"""The values of labels that have a meaning of their own: what can come of a lookup, happen with a worker, and so on."""

from collections.abc import Mapping
from typing import Final

from gateway.enums import StrEnum


class LookupResult(StrEnum):
    """What came of one question whose policy has ``cache``. Each counts once, unless nobody waits for it any more."""

    MEMORY = "memory"
    """This process had a fresh verdict."""

    REDIS = "redis"
    """Redis had one."""

    SHARED = "shared"
    """Another review had the same question open, and its verdict served both."""

    STALE = "stale"
    """The worker was asked, with a stale verdict at hand should it fail."""

    MISS = "miss"
    """The worker was asked."""

    BYPASS = "bypass"
    """The worker was asked, because its live connections are not all of the described version."""


class CacheEvent(StrEnum):
    """What became of entries of the cache."""

    STORED = "stored"
    """A verdict was kept in memory; Redis follows off the path."""

    TOO_LARGE = "too_large"
    """A verdict was not kept: larger than ``entry_bytes``, or it holds what cannot be written down."""

    EVICTED = "evicted"
    """A verdict made room for a newer one."""

    WRITE_DROPPED = "write_dropped"
    """A verdict was not written to Redis: it is skipped, or too many wait."""


class WorkerEvent(StrEnum):
    """Something that happened with a worker."""

    CONNECTED = "connected"
    """A connection was made and described."""

    DISCONNECTED = "disconnected"
    """One was lost, or closed because it was old."""

    RETRY = "retry"
    """An ask was put to a replica once more, because the first attempt failed."""

    UNSOLICITED = "unsolicited"
    """An answer came that nobody had asked for, or not any more."""

    UNSOLICITED_LIMIT = "unsolicited_limit"
    """A stream was ended, because more such answers came than ``worker_unsolicited`` allows."""

    STREAM_BROKE = "stream_broke"
    """A stream ended that should not have."""

    CIRCUIT_OPENED = "circuit_opened"
    """A policy is not asked at an address for a while."""

    IN_FLIGHT = "in_flight"
    """An ask was refused: too many are open (``worker_in_flight``)."""

    BACKLOG = "backlog"
    """An ask was refused: too much waits to be written (``worker_backlog_bytes``)."""

    QUEUE_LENGTH = "queue_length"
    """An ask was refused: too many are in the queue (``queue_length``)."""

    QUEUE_BYTES = "queue_bytes"
    """An ask was refused: the queue takes too much of Redis' memory (``queue_bytes``)."""

    QUEUE_OPEN_BYTES = "queue_open_bytes"
    """An ask was refused: those that are open in this process hold too much (``queue_open_bytes``)."""

    QUEUE_SLOW = "queue_slow"
    """An ask was refused: at the present pace of the queue it could not be answered in time."""

    EXPIRED = "expired"
    """The deadline of an ask in the queue was over before its answer came."""

    RESENT = "resent"
    """An ask was put into Redis again, after the connection was lost: perhaps its data were, too."""

    UNREADABLE = "unreadable"
    """Something in the queue, or among its replies, is no message of ours, or was sealed with another key."""

    REDIS_LOST = "redis_lost"
    """The connection to the queue's Redis was lost."""

    HOOK_RUN = "hook_run"
    """A process of a hook was started for a call."""

    HOOK_KILLED = "hook_killed"
    """The gateway stopped a process of a hook: it exceeded its time or its output limit, or the call was cancelled."""

    HOOK_REFUSED = "hook_refused"
    """A call was rejected: too many calls of the hook wait for a process (``hook_waiting``)."""


_CONNECTIONS: Final = (WorkerEvent.CONNECTED, WorkerEvent.DISCONNECTED)

GRPC_EVENTS: Final = (
    *_CONNECTIONS,
    WorkerEvent.RETRY,
    WorkerEvent.UNSOLICITED,
    WorkerEvent.UNSOLICITED_LIMIT,
    WorkerEvent.STREAM_BROKE,
    WorkerEvent.CIRCUIT_OPENED,
    WorkerEvent.IN_FLIGHT,
    WorkerEvent.BACKLOG,
)
"""What can happen with a gRPC worker."""

WEBHOOK_EVENTS: Final = (*_CONNECTIONS, WorkerEvent.RETRY, WorkerEvent.IN_FLIGHT, WorkerEvent.BACKLOG)
"""What can happen with a webhook."""

QUEUE_EVENTS: Final = (
    *_CONNECTIONS,
    WorkerEvent.UNSOLICITED,
    WorkerEvent.IN_FLIGHT,
    WorkerEvent.QUEUE_LENGTH,
    WorkerEvent.QUEUE_BYTES,
    WorkerEvent.QUEUE_OPEN_BYTES,
    WorkerEvent.QUEUE_SLOW,
    WorkerEvent.EXPIRED,
    WorkerEvent.RESENT,
    WorkerEvent.UNREADABLE,
    WorkerEvent.REDIS_LOST,
)
"""What can happen with a worker behind a queue."""

HOOK_EVENTS: Final = (*_CONNECTIONS, WorkerEvent.HOOK_RUN, WorkerEvent.HOOK_KILLED, WorkerEvent.HOOK_REFUSED)
"""What can happen with a hook."""

LIMIT_OF: Final[Mapping[str, str]] = {
    WorkerEvent.BACKLOG: "worker_backlog_bytes",
    WorkerEvent.IN_FLIGHT: "worker_in_flight",
    WorkerEvent.UNSOLICITED_LIMIT: "worker_unsolicited",
    WorkerEvent.QUEUE_BYTES: "queue_bytes",
    WorkerEvent.QUEUE_LENGTH: "queue_length",
    WorkerEvent.QUEUE_OPEN_BYTES: "queue_open_bytes",
    WorkerEvent.HOOK_REFUSED: "hook_waiting",
}
"""The limit that was hit, where that is what happened with a worker."""


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
