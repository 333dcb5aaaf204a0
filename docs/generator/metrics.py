"""metrics.md: the table of metrics."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from docs.generator.markdown import code, prose, table
from docs.generator.source import documented
from gateway.reasons import Reason
from gateway.telemetry.events import CONFIGURED, Metric
from gateway.telemetry.labels import WorkerEvent
from gateway.telemetry.table import BRIDGE, BRIDGE_PREFIX, BUCKETS, GATEWAY, PREFIX, REDIS

_CONFIGURED: Final = {
    "entry": "the name of each entry of the configuration: `admission-gateway check` lists them",
    "policy": "`CONFIGURATION/NAME` of each configured policy",
    "worker": "the name of each Worker of the configuration",
}
"""What a label holds whose values are names of the configuration."""

_REASONS: Final = (
    "[reason codes](reasons.md), each from the first time it is given; `WORKER_UNAVAILABLE`, and of mutating "
    "policies `WRITE_SCOPE`, from the start"
)

_HEAD: Final = prose("""
    # Metrics

    Look up a metric of ``/metrics`` on the admin listener: its type, its labels, and what bounds their values. Which
    of them to alert on: [operate.md](../operate.md#metrics-and-alerts).

    Labels never hold anything that a request brings along, so the number of series depends on the configuration
    alone. Counters start at 0: a policy without series is a policy that is not configured. When a new configuration is
    taken over, the series of policies, entries and workers that are gone go with them.
""")

_REDIS: Final = "These are there with `--redis` only."
_BRIDGE: Final = prose("""
    A bridge is a process of its own: [its metrics](../queues.md#metrics). It has one worker, so no label names it.
""")


def page(root: Path) -> str:
    """The page's text."""
    metrics = (*GATEWAY, *REDIS)
    return (
        "\n\n".join(
            [
                _HEAD,
                _metrics(PREFIX, GATEWAY),
                _REDIS,
                _metrics(PREFIX, REDIS),
                "## Values of the labels",
                table(("Metric", "Label", "Values"), [row for metric in metrics for row in _values(metric)]),
                "## What happens with workers",
                table(("`event`", "Counted when"), _events(root)),
                "## Buckets of the histogram",
                "Seconds: " + ", ".join(code(f"{bound:g}") for bound in BUCKETS) + ".",
                "## Metrics of a bridge",
                _BRIDGE,
                _metrics(BRIDGE_PREFIX, BRIDGE, without="worker"),
            ]
        )
        + "\n"
    )


def _metrics(prefix: str, metrics: Iterable[Metric], *, without: str = "") -> str:
    return table(
        ("Metric", "Type", "Labels", "Meaning"),
        [
            (
                code(prefix + metric.name),
                metric.kind.value,
                ", ".join(code(label) for label in metric.labels if label != without) or "none",
                metric.text,
            )
            for metric in metrics
        ],
    )


def _values(metric: Metric) -> list[tuple[str, str, str]]:
    return [(code(PREFIX + metric.name), code(label), _shown(label, values)) for label, values in metric.labels.items()]


def _shown(label: str, values: Iterable[str] | None) -> str:
    if values is CONFIGURED:
        return _CONFIGURED[label]
    return _REASONS if values is Reason else ", ".join(map(code, values))


def _events(root: Path) -> list[tuple[str, str]]:
    texts = documented(root / "gateway" / "telemetry" / "labels.py", WorkerEvent.__name__)
    return [(code(event), prose(texts[event.name])) for event in WorkerEvent]
