"""What the transports tell of themselves, for metrics. Calls are made in the loop, must not raise, and take next to no
time.
"""

from enum import StrEnum
from typing import Protocol


class WorkerEvent(StrEnum):
    """Something that happened with a worker."""

    CONNECTED = "connected"
    """A connection was made and described."""

    DISCONNECTED = "disconnected"
    """One was lost, or closed because it was old."""

    RETRY = "retry"
    """An ask was put to a replica once more, because the first attempt failed."""

    STRAY = "stray"
    """An answer came that nobody had asked for, or not any more."""

    FLOODED = "flooded"
    """A stream was ended, because more such answers came than ``worker_strays`` allows."""

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
    """A hook's process was started for an ask."""

    HOOK_KILLED = "hook_killed"
    """One was ended by the gateway: its time was over, it wrote too much, or nobody waited for it any more."""

    HOOK_REFUSED = "hook_refused"
    """An ask was refused: too many of its hook wait for a process (``hook_waiting``)."""


class WorkerEvents(Protocol):
    """Hears of everything that is worth a metric."""

    def arrived(self, worker: str) -> None:
        """The worker of this name is being connected to. Two may have one name."""

    def happened(self, worker: str, event: WorkerEvent, count: int = 1) -> None:
        """Something happened with the worker of this name."""

    def connections(self, worker: str, change: int) -> None:
        """So many more of its connections, or of the bridges of its queue, may be asked; less than 0: fewer."""

    def queue(self, worker: str, length: int, oldest_seconds: float) -> None:
        """So many asks are in the queue of the worker of this name, and the oldest for so long; from its arrival on."""

    def processes(self, worker: str, change: int) -> None:
        """So many more processes of this hook run; less than 0: fewer."""

    def gone(self, worker: str) -> None:
        """It is let go of; nothing happens with it after that."""


class NoWorkerEvents:
    """Hears of everything and tells nobody."""

    def arrived(self, worker: str) -> None:
        """See WorkerEvents."""

    def happened(self, worker: str, event: WorkerEvent, count: int = 1) -> None:
        """See WorkerEvents."""

    def connections(self, worker: str, change: int) -> None:
        """See WorkerEvents."""

    def queue(self, worker: str, length: int, oldest_seconds: float) -> None:
        """See WorkerEvents."""

    def processes(self, worker: str, change: int) -> None:
        """See WorkerEvents."""

    def gone(self, worker: str) -> None:
        """See WorkerEvents."""
