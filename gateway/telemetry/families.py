"""All series of one metric.

A series is found by the values of its labels, in one lookup. A value that the table does not list is counted as
``OTHER``, so the number of series depends on the configuration and never on requests.
"""

from collections.abc import Container
from itertools import product
from typing import Any, Final

from gateway.policies.model import Policy
from gateway.telemetry.events import CONFIGURED, Metric, new_series
from gateway.telemetry.series import heading

OTHER: Final = "other"
"""Replaces all label values that are not in the table."""

LabelValues = tuple[str, ...]


class Family:
    """The series of a metric.

    Args:
        metric: of the table.
        prefix: of its name, unless Prometheus' conventions give the name.
        without: a label that is left out.
    """

    __slots__ = ("_bounds", "_labels", "_name", "metric", "series")

    def __init__(self, metric: Metric, *, prefix: str, without: str = "") -> None:
        self.metric = metric
        self.series: dict[LabelValues, Any] = {}
        self._name = f"{prefix}{metric.name}" if metric.prefixed else metric.name
        self._labels = tuple("" if name == without else name for name in metric.labels)
        self._bounds = tuple(known if known is CONFIGURED else frozenset(known) for known in metric.labels.values())

    @property
    def is_configured(self) -> bool:
        """Whether a label has names of the configuration as values."""
        return CONFIGURED in self._bounds

    @property
    def has_policies(self) -> bool:
        """Whether its first labels are the phase and the name of a policy."""
        return "policy" in self.metric.labels

    @property
    def has_entries(self) -> bool:
        """Whether its first labels are the phase and the name of an entry."""
        return "entry" in self.metric.labels

    def made(self, labels: LabelValues) -> Any:
        """The series with these values of the labels, created if needed: a HistogramSeries or a Series."""
        known = tuple(
            [
                value if bound is CONFIGURED or value in bound else OTHER
                for value, bound in zip(labels, self._bounds, strict=True)
            ]
        )
        series = self.series.get(known)
        if series is None:
            series = self.series[known] = new_series(self.metric, self._name, (self._labels, known))
        return series

    def start(self, first: LabelValues, policy: Policy | None = None) -> None:
        """Create all series that begin with these values, at 0; existing ones continue."""
        rest = [values or () for values in self.metric.labels.values()][len(first) :]
        if self.metric.starts is not None:
            rest[-1] = self.metric.starts(policy)
        for others in product(*rest):
            labels = (*first, *others)
            if labels not in self.series:
                self.series[labels] = new_series(self.metric, self._name, (self._labels, labels))

    def keep_only(self, subjects: Container[LabelValues]) -> None:
        """Remove the series of all policies or entries but these."""
        self.series = {labels: series for labels, series in self.series.items() if labels[:2] in subjects}

    def remove_worker(self, worker: str) -> None:
        """Remove the series of a worker, the first label of all metrics that have it."""
        self.series = {labels: series for labels, series in self.series.items() if labels[0] != worker}

    def heading(self, *, openmetrics: bool) -> str:
        """The lines above its samples."""
        return heading(self._name, self.metric.kind.value, self.metric.text, openmetrics=openmetrics)
