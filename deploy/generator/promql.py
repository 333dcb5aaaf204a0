"""Queries to Prometheus, of metrics and labels of the gateway's table: one that does not exist cannot be asked for.

Every query is about the replicas that a dashboard's variables select: ``job`` is a gateway, ``instance`` a replica.
"""

from collections.abc import Iterable
from typing import Final

from gateway.telemetry.events import Metric
from gateway.telemetry.table import PREFIX

TARGETS: Final = {"job": "$job", "instance": "$instance"}
"""Labels that Prometheus adds to what it scrapes, and the variables that select them."""

INTERVAL: Final = "$__rate_interval"
"""Of rates: Grafana makes it fit the step of a panel and the interval of scrapes."""


def name(metric: Metric) -> str:
    """The metric's name in Prometheus."""
    return f"{PREFIX if metric.prefixed else ''}{metric.name}"


def select(metric: Metric, *, suffix: str = "", **match: str) -> str:
    """The series of a metric with these labels. ``a|b`` is one of several values."""
    if unknown := match.keys() - metric.labels.keys():
        raise ValueError(f"{metric.name} has no label {', '.join(sorted(unknown))}")
    # Grafana escapes values for =~ of variables that allow several, and of no others.
    chosen = [f'{label}=~"{value}"' for label, value in TARGETS.items()]
    chosen += [f'{label}{"=~" if "|" in value else "="}"{value}"' for label, value in match.items()]
    return f"{name(metric)}{suffix}{{{', '.join(chosen)}}}"


def summed(inner: str, by: Iterable[str], *, how: str = "sum") -> str:
    """An aggregation by these labels."""
    labels = ", ".join(by)
    return f"{how} by ({labels}) ({inner})" if labels else f"{how}({inner})"


def rate(metric: Metric, *by: str, **match: str) -> str:
    """How often something is counted in a second."""
    _check(metric, by)
    return summed(f"rate({select(metric, **match)}[{INTERVAL}])", by)


def increase(metric: Metric, *by: str, **match: str) -> str:
    """How often something was counted in the time that is shown."""
    _check(metric, by)
    return summed(f"increase({select(metric, **match)}[$__range])", by)


def gauge(metric: Metric, *by: str, how: str = "sum", **match: str) -> str:
    """The value of a gauge, of all replicas."""
    _check(metric, by)
    return summed(select(metric, **match), by, how=how)


def share(metric: Metric, *by: str, **match: str) -> str:
    """The share that has these labels, of all that a variable selects; no number while nothing is counted."""
    whole = {label: value for label, value in match.items() if value.startswith("$")}
    return f"{rate(metric, *by, **match)} / {rate(metric, *by, **whole)}"


def quantile(part: float, metric: Metric, *by: str, **match: str) -> str:
    """A quantile of a histogram."""
    _check(metric, by)
    return f"histogram_quantile({part}, {summed(_buckets(metric, **match), ('le', *by))})"


def heat(metric: Metric, **match: str) -> str:
    """How many observations fall into each bucket, for a heat map."""
    return summed(_buckets(metric, **match), ["le"])


def _buckets(metric: Metric, **match: str) -> str:
    return f"rate({select(metric, suffix='_bucket', **match)}[{INTERVAL}])"


def _check(metric: Metric, by: Iterable[str]) -> None:
    if unknown := set(by) - {*metric.labels, *TARGETS}:
        raise ValueError(f"{metric.name} has no label {', '.join(sorted(unknown))}")


def label_values(metric: Metric, label: str, *, job: str = "") -> str:
    """What Grafana asks for the values of a variable."""
    _check(metric, [label])
    of = f'{{job=~"{job}"}}' if job else ""
    return f"label_values({name(metric)}{of}, {label})"
