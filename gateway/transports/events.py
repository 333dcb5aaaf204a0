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

    HEDGE = "hedge"
    """An ask was put to a second replica, because the first was late."""

    HEDGE_WON = "hedge_won"
    """The second one was faster."""

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


class WorkerEvents(Protocol):
    """Hears of everything that is worth a metric."""

    def arrived(self, worker: str) -> None:
        """The worker of this name is being connected to. Two may have one name."""

    def happened(self, worker: str, event: WorkerEvent, count: int = 1) -> None:
        """Something happened with the worker of this name."""

    def connections(self, worker: str, change: int) -> None:
        """So many more of its connections may be asked; less than 0: fewer."""

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

    def gone(self, worker: str) -> None:
        """See WorkerEvents."""
