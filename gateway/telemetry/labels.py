"""The values of metric labels that need an explanation: results of cache lookups, events of workers, and so on."""

from collections.abc import Mapping
from typing import Final

from gateway.enums import StrEnum


class LookupResult(StrEnum):
    """The result of a cache lookup for a policy with ``cache``. Each call counts once, unless it was cancelled."""

    MEMORY = "memory"
    """This process had a fresh verdict."""

    REDIS = "redis"
    """Redis had one."""

    SHARED = "shared"
    """An equal call of another review was open, and its verdict was shared."""

    STALE = "stale"
    """The worker was called, with a stale verdict as a fallback."""

    MISS = "miss"
    """The worker was called: no usable verdict was stored."""

    EXPIRED = "expired"
    """The worker was called: the stored verdict was too old, even as a fallback."""

    UNSHARED = "unshared"
    """The worker was called: an equal call was open, but it failed, or its verdict could not be shared."""

    BYPASS = "bypass"
    """The worker was called, because its live connections do not all have the described version."""


class CacheEvent(StrEnum):
    """What happened to entries of the cache."""

    STORED = "stored"
    """A verdict was stored in memory; it is written to Redis in the background."""

    TOO_LARGE = "too_large"
    """A verdict was not stored: it is larger than ``entry_bytes``, or cannot be encoded."""

    EVICTED = "evicted"
    """A verdict was evicted for a newer one."""

    WRITE_DROPPED = "write_dropped"
    """A verdict was not written to Redis: Redis is skipped, or too many writes wait."""


class RegistrationState(StrEnum):
    """What became of the registration at this replica's last look."""

    CONFLICT = "conflict"
    """The objects of this name belong to another gateway."""

    FAILED = "failed"
    """The Kubernetes API cannot be read or written."""

    REFUSED = "refused"
    """The API server refused the dry run, or a file for the registration cannot be used: what was registered stays."""

    REGISTERED = "registered"
    """This replica leads, and what is registered is equal to the configuration in force."""

    STANDBY = "standby"
    """Another replica leads."""

    SUSPENDED = "suspended"
    """An object was deleted or annotated, or by `uninstall`: no replica touches the registration until `resume`."""

    WAITING = "waiting"
    """Not all replicas serve the entries that are to be registered."""


class Transport(StrEnum):
    """How a worker is called."""

    GRPC = "grpc"
    QUEUE = "queue"
    WEBHOOK = "webhook"
    HOOK = "hook"


class WorkerEvent(StrEnum):
    """An event of a worker."""

    CONNECTED = "connected"
    """A connection was opened and described."""

    DISCONNECTED = "disconnected"
    """A connection was lost, or closed because of its age."""

    RETRY = "retry"
    """A call was retried, because the first attempt failed."""

    UNSOLICITED = "unsolicited"
    """An answer arrived for no open call."""

    UNSOLICITED_LIMIT = "unsolicited_limit"
    """A stream was closed: more such answers arrived than ``worker_unsolicited`` allows."""

    STREAM_BROKE = "stream_broke"
    """A stream ended unexpectedly."""

    CIRCUIT_OPENED = "circuit_opened"
    """The circuit of a policy opened for an endpoint: other endpoints are called, if there are any."""

    CIRCUIT_CLOSED = "circuit_closed"
    """The circuit of a policy closed for an endpoint: it judged a call."""

    CIRCUIT_PROBE = "circuit_probe"
    """A copy of a call was sent to an endpoint whose circuit is open."""

    CIRCUIT_IN_FLIGHT = "circuit_in_flight"
    """A call was rejected: no endpoint answers, and too many calls wait (``worker_circuit_in_flight``)."""

    IN_FLIGHT = "in_flight"
    """A call was rejected after a wait: too many are open, of all or of one policy in one namespace
    (``worker_in_flight``)."""

    BACKLOG = "backlog"
    """A call was rejected: too many bytes wait to be written (``worker_backlog_bytes``)."""

    ANSWER_CUT = "answer_cut"
    """Texts of an answer were cut or dropped: they had too many characters (``answer_characters``)."""

    ANSWER_BYTES = "answer_bytes"
    """An answer was rejected: too many bytes of changes are in memory, or of answers are being received
    (``answer_bytes_in_flight``)."""

    QUEUE_LENGTH = "queue_length"
    """A call was rejected: too many are in the queue (``queue_length``)."""

    QUEUE_BYTES = "queue_bytes"
    """A call was rejected: the queue uses too much of Redis' memory (``queue_bytes``)."""

    QUEUE_OPEN_BYTES = "queue_open_bytes"
    """A call was rejected: the open calls of this process use too much memory (``queue_open_bytes``)."""

    QUEUE_SLOW = "queue_slow"
    """A call was rejected: at the queue's current rate it could not be answered in time."""

    EXPIRED = "expired"
    """A call's deadline passed in the queue before its answer arrived."""

    RESENT = "resent"
    """A call was written to Redis again after the connection was lost, because Redis may have lost it."""

    UNREADABLE = "unreadable"
    """An entry of the queue or a reply is no message of the gateway, or was sealed with another key."""

    REDIS_LOST = "redis_lost"
    """The connection to the queue's Redis was lost."""

    HOOK_RUN = "hook_run"
    """A process of a hook was started for a call."""

    HOOK_KILLED = "hook_killed"
    """The gateway stopped a process of a hook: it exceeded its time or its output limit, or the call was cancelled."""

    HOOK_REFUSED = "hook_refused"
    """A call was rejected: too many calls of the hook wait for a process (``hook_waiting``)."""


_ALWAYS: Final = (
    WorkerEvent.CONNECTED,
    WorkerEvent.DISCONNECTED,
    WorkerEvent.ANSWER_CUT,
    WorkerEvent.ANSWER_BYTES,
    WorkerEvent.IN_FLIGHT,
)

GRPC_EVENTS: Final = (
    *_ALWAYS,
    WorkerEvent.RETRY,
    WorkerEvent.UNSOLICITED,
    WorkerEvent.UNSOLICITED_LIMIT,
    WorkerEvent.STREAM_BROKE,
    WorkerEvent.CIRCUIT_OPENED,
    WorkerEvent.CIRCUIT_CLOSED,
    WorkerEvent.CIRCUIT_PROBE,
    WorkerEvent.CIRCUIT_IN_FLIGHT,
    WorkerEvent.BACKLOG,
)
"""The events of a gRPC worker."""

WEBHOOK_EVENTS: Final = (*_ALWAYS, WorkerEvent.RETRY, WorkerEvent.BACKLOG)
"""The events of a webhook."""

QUEUE_EVENTS: Final = (
    *_ALWAYS,
    WorkerEvent.UNSOLICITED,
    WorkerEvent.QUEUE_LENGTH,
    WorkerEvent.QUEUE_BYTES,
    WorkerEvent.QUEUE_OPEN_BYTES,
    WorkerEvent.QUEUE_SLOW,
    WorkerEvent.EXPIRED,
    WorkerEvent.RESENT,
    WorkerEvent.UNREADABLE,
    WorkerEvent.REDIS_LOST,
)
"""The events of a worker behind a queue."""

HOOK_EVENTS: Final = (*_ALWAYS, WorkerEvent.HOOK_RUN, WorkerEvent.HOOK_KILLED, WorkerEvent.HOOK_REFUSED)
"""The events of a hook."""

LIMIT_OF: Final[Mapping[str, str]] = {
    WorkerEvent.ANSWER_CUT: "answer_characters",
    WorkerEvent.ANSWER_BYTES: "answer_bytes_in_flight",
    WorkerEvent.BACKLOG: "worker_backlog_bytes",
    WorkerEvent.CIRCUIT_IN_FLIGHT: "worker_circuit_in_flight",
    WorkerEvent.IN_FLIGHT: "worker_in_flight",
    WorkerEvent.UNSOLICITED_LIMIT: "worker_unsolicited",
    WorkerEvent.QUEUE_BYTES: "queue_bytes",
    WorkerEvent.QUEUE_LENGTH: "queue_length",
    WorkerEvent.QUEUE_OPEN_BYTES: "queue_open_bytes",
    WorkerEvent.HOOK_REFUSED: "hook_waiting",
}
"""The limit that was reached, for the events of a worker that mean this."""


class ConsumerEvent(StrEnum):
    """An event of a queue's entry, or of the connection to Redis."""

    TAKEN = "taken"
    """A call was taken from the queue and sent to the worker."""

    CLAIMED = "claimed"
    """An entry was claimed from a consumer that no longer renews it, or from a lost read of this consumer."""

    ANSWERED = "answered"
    """An answer was written: a verdict or a failure."""

    EXPIRED = "expired"
    """A call was dropped before it reached the worker, because its deadline had passed."""

    LATE = "late"
    """An answer was dropped, because the deadline passed before it could be written."""

    UNREADABLE = "unreadable"
    """An entry was dropped, because it is no message of a gateway with this key."""

    REPEATED = "repeated"
    """A call was delivered again whose answer was known or pending: the worker was not called again."""

    ONCE = "once"
    """A call of a policy with side effects was not repeated, because it may have had its effect."""

    POISON = "poison"
    """A call was not repeated, because two consumers have failed with it."""

    ORPHANED = "orphaned"
    """Answers were dropped, because their gateway no longer exists."""

    UNWRITABLE = "unwritable"
    """Redis rejected an answer, for example because the key of the reply has another type."""

    REDIS_LOST = "redis_lost"
    """The connection to Redis was lost, or could not be made."""


class Drop(StrEnum):
    """Why a decision was not written to the decision log, or a review not recorded."""

    FULL = "full"
    """Too many records, or too many bytes, wait to be written."""

    INTERNAL = "internal"
    """An error of the gateway: the log has it."""

    REJECTED = "rejected"
    """The collector did not take it: it is away, too slow, or refused it."""

    SHUTDOWN = "shutdown"
    """The gateway stopped before it was written."""

    TOO_LARGE = "too_large"
    """The review is too large to be recorded."""

    WRITE_ERROR = "write_error"
    """The file, directory or pipe cannot be written."""
