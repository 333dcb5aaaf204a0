"""metrics.md: the metrics as a registry shows them, with one configured policy and its worker."""

from pathlib import Path
from typing import Final

from prometheus_client.metrics_core import Metric

from docs.generator.markdown import code, prose, table
from docs.generator.source import documented
from gateway.policies.model import EVERYTHING, Cache, Phase, Policy, Shadow
from gateway.telemetry.metrics import BUCKETS, Metrics
from gateway.transports.events import WorkerEvent

_NAME: Final = "NAME"
_CONFIGURATION: Final = "CONFIGURATION"
_ENTRY: Final = "ENTRY"
_WORKER: Final = "WORKER"
_BOUNDS: Final = {
    "entry": "the name of each entry of the configuration: `admission-gateway check` lists them",
    "policy": "`CONFIGURATION/NAME` of each configured policy",
    "reason": "[reason codes](reasons.md), each from the first time it is given; `WORKER_UNAVAILABLE`, and of mutating "
    "policies `WRITE_SCOPE`, from the start",
    "worker": "the name of each Worker of the configuration",
}
"""Labels whose values a registry cannot tell."""

_HEAD: Final = prose("""
    # Metrics

    Look up a metric of ``/metrics`` on the admin listener: its type, its labels, and what bounds their values. Which
    of them to alert on: [operate.md](../operate.md#metrics-and-alerts).

    Labels never hold anything that a request brings along, so the number of series depends on the configuration
    alone. Counters start at 0: a policy without series is a policy that is not configured. When a new configuration is
    taken over, the series of policies, entries and workers that are gone go with them.
""")


def page(root: Path) -> str:
    """The page's text."""
    metrics = Metrics()
    metrics.use_redis()
    metrics.know([_policy(phase) for phase in Phase], [(phase, _ENTRY) for phase in Phase])
    metrics.know_worker(_WORKER)
    metrics.worker_queue(_WORKER, 0, 0.0)
    metrics.hook_processes(_WORKER, 0)
    families = list(metrics.registry.collect())
    return (
        "\n\n".join(
            [
                _HEAD,
                table(("Metric", "Type", "Labels", "Meaning"), map(_row, families)),
                "## Values of the labels",
                table(("Metric", "Label", "Values"), [row for family in families for row in _values(family)]),
                "## What happens with workers",
                table(("`event`", "Counted when"), _events(root)),
                "## Buckets of the histogram",
                "Seconds: " + ", ".join(code(f"{bound:g}") for bound in BUCKETS) + ".",
            ]
        )
        + "\n"
    )


def _policy(phase: Phase) -> Policy:
    return Policy(
        phase=phase,
        configuration=_CONFIGURATION,
        index=0,
        name=_NAME,
        worker=_WORKER,
        policy="policy",
        rules=(EVERYTHING,),
        cache=Cache(ttl=1),
        shadow=Shadow(worker=_WORKER, policy="next"),
    )


def _shown(family: Metric) -> str:
    return f"{family.name}_total" if family.type == "counter" else family.name


def _labels(family: Metric) -> dict[str, list[str]]:
    """The labels of a metric with their values, in order."""
    found: dict[str, dict[str, None]] = {}
    for sample in family.samples:
        for label, value in sample.labels.items():
            if label != "le":
                found.setdefault(label, {})[value] = None
    return {label: list(values) for label, values in found.items()}


def _row(family: Metric) -> tuple[str, str, str, str]:
    labels = ", ".join(code(label) for label in _labels(family)) or "none"
    return code(_shown(family)), family.type, labels, family.documentation


def _values(family: Metric) -> list[tuple[str, str, str]]:
    return [
        (code(_shown(family)), code(label), _BOUNDS.get(label) or ", ".join(map(code, values)))
        for label, values in _labels(family).items()
    ]


def _events(root: Path) -> list[tuple[str, str]]:
    texts = documented(root / "gateway" / "transports" / "events.py", WorkerEvent.__name__)
    return [(code(event), prose(texts[event.name])) for event in WorkerEvent]
