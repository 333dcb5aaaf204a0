"""The interface through which all components report metrics.

A component receives an ``Events`` and names a metric of the ``table``. It does not depend on series, registries or
Prometheus. Calls are made in the event loop, must not raise, and must be fast.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, Protocol

from msgspec import Struct

from gateway.policies.model import Policy
from gateway.telemetry.series import HistogramSeries, Labels, Series


class Kind(Enum):
    """What a metric is."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Combination(Enum):
    """What the value of a gauge is, of several processes of one gateway."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    EACH = "each"
    """Each process has its own, with a label ``process``."""


CONFIGURED: Final = None
"""Stands for the values of a label that are names of the configuration. All others are listed."""


def always(policy: Policy) -> bool:
    """Every policy."""
    del policy
    return True


class Metric(Struct, frozen=True, kw_only=True, eq=False):
    """One metric: ``name`` as in /metrics, without the prefix; ``text`` is its help.

    ``labels`` has each label with all its values, or CONFIGURED. A value that is not listed is counted as "other".
    ``of``: which policies have series of it, if it has a label ``policy``. ``starts``: the values of its last label
    that are there from the start, for such a policy if it has that label; None: all. ``lazy``: each series is there
    from its first observation. ``buckets``: the upper bounds of a histogram's. ``prefixed``: whether the name has the
    prefix in /metrics; Prometheus' own names for a process have none.
    """

    name: str
    text: str
    kind: Kind = Kind.COUNTER
    labels: Mapping[str, Iterable[str] | None]
    of: Callable[[Policy], bool] = always
    starts: Callable[[Policy | None], Iterable[str]] | None = None
    combined: Combination = Combination.SUM
    """Of a gauge; counters and histograms are summed."""
    lazy: bool = False
    buckets: tuple[float, ...] = ()
    prefixed: bool = True


def new_series(metric: Metric, name: str, labels: Labels) -> HistogramSeries | Series:
    """A series of a metric, at 0."""
    if metric.kind is Kind.HISTOGRAM:
        return HistogramSeries(name, labels, metric.buckets)
    return Series(name, labels)


class Events(Protocol):
    """Receives reports. Labels are given in the order of the table."""

    def count(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        """Add to a counter or a gauge; only a gauge accepts a negative amount."""

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Set a gauge."""

    def observe(self, metric: Metric, value: float, *labels: str, trace_id: str = "") -> None:
        """Add an observation to a histogram; ``trace_id``: that of its trace, if it is sampled."""

    def series(self, metric: Metric, *labels: str) -> Any:
        """The series itself, for what each call of a worker counts: a HistogramSeries of a histogram, else a Series.
        It is shown until the worker is removed.
        """

    def worker_added(self, worker: str, events: Iterable[str]) -> None:
        """A worker is used from now on; ``WorkerEvent``s of these kinds can occur. Two workers may have one name."""

    def worker_removed(self, worker: str) -> None:
        """The worker is no longer used; nothing is reported of it any more."""


class NoEvents:
    """An Events that ignores all reports."""

    def count(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        """See Events."""

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """See Events."""

    def observe(self, metric: Metric, value: float, *labels: str, trace_id: str = "") -> None:
        """See Events."""

    def series(self, metric: Metric, *labels: str) -> Any:
        """See Events."""
        return new_series(metric, metric.name, (tuple(metric.labels), labels))

    def worker_added(self, worker: str, events: Iterable[str]) -> None:
        """See Events."""

    def worker_removed(self, worker: str) -> None:
        """See Events."""


SAMPLED: Final = tuple("13579bdf")
"""Each valid W3C traceparent of a sampled trace ends with one of these: VERSION-TRACE-PARENT-FLAGS, and the last bit of
the flags is "sampled".
"""
