"""How everything in the gateway reports what an operator may want to count: one protocol, whoever reports and counts.

A component is given an ``Events`` and names a metric of the ``table``. It knows nothing of series, registries or
Prometheus. Calls are made in the loop, must not raise, and take next to no time.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Final, Protocol

from msgspec import Struct

from gateway.policies.model import Policy


class Kind(Enum):
    """What a metric is."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


CONFIGURED: Final = None
"""Stands for the values of a label that are names of the configuration. All others are listed."""


def always(policy: Policy) -> bool:
    """Every policy."""
    del policy
    return True


class Metric(Struct, frozen=True, kw_only=True, eq=False):
    """One metric: ``name`` as /metrics shows it, without the prefix; ``text`` says what it tells.

    ``labels`` has each label with all its values, or CONFIGURED. A value that is not listed is counted as "other".
    ``of``: which policies have series of it, if it has a label ``policy``. ``starts``: the values of its last label
    that are there from the start, for such a policy if it has that label; None: all.
    """

    name: str
    text: str
    kind: Kind = Kind.COUNTER
    labels: Mapping[str, Iterable[str] | None]
    of: Callable[[Policy], bool] = always
    starts: Callable[[Policy | None], Iterable[str]] | None = None


class Events(Protocol):
    """Takes reports. Labels are given in the order of the table."""

    def count(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        """So many more of a counter; of a gauge too, where less than 0 is fewer."""

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """What a gauge says from now on."""

    def worker_added(self, worker: str, events: Iterable[str]) -> None:
        """A worker of this name is reached from now on, and these of WorkerEvent can happen. Two may have one name."""

    def worker_removed(self, worker: str) -> None:
        """It is let go of; nothing is reported of it after that."""


class NoEvents:
    """An Events that takes every report and keeps none."""

    def count(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        """See Events."""

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """See Events."""

    def worker_added(self, worker: str, events: Iterable[str]) -> None:
        """See Events."""

    def worker_removed(self, worker: str) -> None:
        """See Events."""
