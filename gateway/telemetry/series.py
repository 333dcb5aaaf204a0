"""A series of a metric: a number or a histogram, in Prometheus' text format 0.0.4 and in OpenMetrics 1.0.0.

Two thousand policies have fifty thousand series. Those of the client library take 50 µs each to create and block the
event loop for a second per scrape; these take microseconds each to create, and one to write.

The two formats differ in the lines above the samples, and in exemplars, which only OpenMetrics has: the trace of the
last observation in each bucket that was sampled.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from time import time
from typing import Final

_ESCAPED: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_ESCAPED_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})

Labels = tuple[Sequence[str], Sequence[str]]
"""Names and values; one without a name is left out."""


class Series:
    """The number of a counter or a gauge."""

    __slots__ = ("_head", "_labels", "_name", "value")

    def __init__(self, name: str, labels: Labels) -> None:
        self._name = name
        self._labels = labels
        self._head = ""
        self.value = 0.0

    def text(self, *, exemplars: bool = False) -> str:
        """Its line. What is before the number is made once."""
        del exemplars
        if not self._head:
            inside = _written(self._labels)
            self._head = f"{self._name}{{{inside}}} " if inside else f"{self._name} "
        return f"{self._head}{self.value!r}\n"


class HistogramSeries:
    """The numbers of a histogram: the count of observations for each bucket, the sum, and the last exemplars."""

    __slots__ = ("_bounds", "_exemplars", "_labels", "_name", "counts", "sum")

    def __init__(self, name: str, labels: Labels, bounds: Sequence[float]) -> None:
        self._name = name
        self._labels = labels
        self._bounds = bounds
        self._exemplars: dict[int, str] = {}
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, trace_id: str = "") -> None:
        """Add an observation; ``trace_id``: that of its trace, if it is sampled."""
        index = bisect_left(self._bounds, value)
        self.counts[index] += 1
        self.sum += value
        if trace_id:
            self._exemplars[index] = f' # {{trace_id="{trace_id}"}} {value:.6f} {time():.3f}'

    def text(self, *, exemplars: bool = False) -> str:
        """Its lines. ``le`` comes first, so that all buckets share what is after it."""
        name, inside = self._name, _written(self._labels)
        rest = f",{inside}}} " if inside else "} "
        labels = f"{{{inside}}}" if inside else ""
        totals = list(accumulate(self.counts))
        known = self._exemplars if exemplars else {}
        lines = [
            f'{name}_bucket{{le="{bound}"{rest}{total}.0{known.get(index, "")}\n'
            for index, (bound, total) in enumerate(zip((*map(float, self._bounds), "+Inf"), totals, strict=True))
        ]
        return f"{''.join(lines)}{name}_count{labels} {totals[-1]}.0\n{name}_sum{labels} {self.sum!r}\n"


def heading(name: str, kind: str, text: str, *, openmetrics: bool) -> str:
    """The lines above the samples of a metric."""
    text = text.translate(_ESCAPED if openmetrics else _ESCAPED_HELP)
    if openmetrics and kind == "counter":
        # "The MetricFamily name of a counter has no suffix _total", which its samples have.
        name = name.removesuffix("_total")
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def _written(labels: Labels) -> str:
    # In the order of their names, as Prometheus' client libraries write them.
    named = sorted(zip(*labels, strict=True))
    return ",".join([f'{name}="{value.translate(_ESCAPED)}"' for name, value in named if name])
