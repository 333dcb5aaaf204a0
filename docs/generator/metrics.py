"""metrics.md: the table of metrics."""

import inspect
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

from docs.generator.markdown import code, prose, table
from docs.generator.source import documented
from gateway.engine.answer_source import Source
from gateway.engine.plan import UnavailableReason
from gateway.reasons import Reason
from gateway.serving.refusals import STATUS, Refusal
from gateway.telemetry.events import CONFIGURED, Combination, Metric
from gateway.telemetry.labels import ConsumerEvent, LookupResult, RegistrationState, WorkerEvent
from gateway.telemetry.table import (
    BRIDGE,
    BRIDGE_PREFIX,
    CLUSTER,
    GATEWAY,
    HOOK_WORKER,
    HOOK_WORKER_PREFIX,
    NOT_A_REVIEW,
    PREFIX,
    PROCESSES,
    REDIS,
    WEBHOOK_PROBE,
)

_CONFIGURED: Final = {
    "entry": "the name of each entry of the configuration: `admission-gateway check` lists them",
    "binding": "the name of each `kubernetes` binding whose snapshot a binding of the hook includes",
    "hook": "the path of each hook",
    "policy": "`CONFIGURATION/NAME` of each configured policy",
    "python": "the version of Python, one value",
    "version": "the version of the gateway, one value",
    "worker": "the name of each Worker of the configuration",
}
"""What a label holds whose values are names of the configuration."""

_REASONS: Final = (
    "[reason codes](reasons.md), each from the first time it is given; `WORKER_UNAVAILABLE`, and of mutating "
    "policies `WRITE_SCOPE`, from the start"
)

_HEAD: Final = prose("""
    # Metrics

    Every metric of ``/metrics`` on the admin listener, with its type and the values of its labels. Which of them
    answers which question, and which to alert on: [observe.md](../observe.md#metrics-and-alerts).

    No label has a value from a request or an answer, so the number of series depends on the configuration alone; a
    value that this page does not have is counted as ``other``. Counters start at 0: a policy without series is not
    configured. When a new configuration is loaded, the series of removed policies, entries and workers are removed.
""")

_CLUSTER: Final = "These exist only with `--cluster`; those of the probe with `--service` besides."
_REDIS: Final = "These exist only with `--redis`."
_PROCESSES: Final = prose("""
    These exist only with `--processes` above 1. /metrics then has the sum of all processes of each counter and
    histogram, with what processes that have ended had counted, so that none goes down. Of gauges it has the sum, except
    for these:
""")
_BRIDGE: Final = prose("""
    On the admin listener of a bridge ([queues.md](../queues.md#metrics)). It has one worker, so no label names it.
""")


_HOOK_WORKER: Final = prose("""
    On the admin listener of ``hook-worker`` ([hooks.md](../hooks.md#run-hooks-in-their-own-process)). ``hook`` is the
    path of each hook, ``binding`` each ``kubernetes`` binding whose objects are in a snapshot; ``result`` is ``ended``
    (by itself), ``killed`` (its time, its output, or the call ended it) or ``rejected`` (too many calls wait).
""")

_REFUSED: Final = prose("""
    kube-apiserver treats each as a failed call, and follows the registration's failurePolicy. The body is one line and
    says what to do. (If ``object`` or ``oldObject`` turns out to be unreadable when a policy needs it, the answer is a
    review with code 400.)
""")

_NOT_A_REVIEW: Final = (
    "Not UTF-8, not JSON, no AdmissionReview v1 or v1beta1, no request, no uid, an unknown operation, or nested deeper "
    "than 256."
)


def page(_root: Path) -> str:
    """The page's text."""
    metrics = (*GATEWAY, *CLUSTER, *WEBHOOK_PROBE, *REDIS)
    return (
        "\n\n".join(
            [
                _HEAD,
                _metrics(PREFIX, GATEWAY),
                _CLUSTER,
                _metrics(PREFIX, (*CLUSTER, *WEBHOOK_PROBE)),
                _REDIS,
                _metrics(PREFIX, REDIS),
                _PROCESSES,
                table(("Gauge", "Value"), [row for metric in metrics for row in _combination(metric)]),
                _metrics(PREFIX, PROCESSES),
                "## Values of the labels",
                table(("Metric", "Label", "Values"), [row for metric in metrics for row in _values(metric)]),
                "## Lookups in the cache",
                table(("`result`", "Counted when"), _meanings(LookupResult)),
                "## Sources of answers",
                table(("`source`", "Meaning"), _meanings(Source)),
                "## What happens with workers",
                table(("`event`", "Counted when"), _meanings(WorkerEvent)),
                "## The registration",
                table(("`state`", "Meaning"), _meanings(RegistrationState)),
                "## Requests without a review",
                _REFUSED,
                table(("`reason`", "Status", "Counted when"), _refusals()),
                "## Policies that are not in force as configured",
                table(("`reason`", "Meaning"), _meanings(UnavailableReason)),
                "## Buckets of the histograms",
                table(("Metric", "Seconds"), [_buckets(metric) for metric in metrics if metric.buckets]),
                "## Metrics of a bridge",
                _BRIDGE,
                _metrics(BRIDGE_PREFIX, BRIDGE, without="worker"),
                "What happens to entries of the queue, and with Redis:",
                table(("`event`", "Counted when"), _meanings(ConsumerEvent)),
                "## Metrics of a hook-worker",
                _HOOK_WORKER,
                _metrics(HOOK_WORKER_PREFIX, HOOK_WORKER),
            ]
        )
        + "\n"
    )


def _name(metric: Metric, prefix: str = PREFIX) -> str:
    return code(prefix + metric.name if metric.prefixed else metric.name)


def _buckets(metric: Metric) -> tuple[str, str]:
    return _name(metric), ", ".join(code(f"{bound:g}") for bound in metric.buckets)


def _metrics(prefix: str, metrics: Iterable[Metric], *, without: str = "") -> str:
    return table(
        ("Metric", "Type", "Labels", "Meaning"),
        [
            (
                _name(metric, prefix),
                metric.kind.value,
                ", ".join(code(label) for label in metric.labels if label != without) or "none",
                metric.text,
            )
            for metric in metrics
        ],
    )


_COMBINATIONS: Final = {
    Combination.MAX: "the largest of all processes",
    Combination.MIN: "the smallest of all processes",
    Combination.EACH: "one for each process, with a label `process`",
}


def _combination(metric: Metric) -> Iterator[tuple[str, str]]:
    if metric.combined is not Combination.SUM:
        name = f"{PREFIX}{metric.name}" if metric.prefixed else metric.name
        yield code(name), _COMBINATIONS[metric.combined]


def _values(metric: Metric) -> list[tuple[str, str, str]]:
    return [(_name(metric), code(label), _shown(label, values)) for label, values in metric.labels.items()]


def _shown(label: str, values: Iterable[str] | None) -> str:
    if values is CONFIGURED:
        return _CONFIGURED[label]
    return _REASONS if values is Reason else ", ".join(map(code, values))


def _meanings(values: type[StrEnum]) -> list[tuple[str, str]]:
    """Each value, and the text below it in the source."""
    texts = documented(Path(inspect.getfile(values)), values.__name__)
    return [(code(value), prose(texts[value.name])) for value in values]


def _refusals() -> list[tuple[str, str, str]]:
    """Those of the HTTP server, and that of a body that is no review, in the order of their names."""
    rows = [
        (name, str(STATUS[refusal].value) if refusal in STATUS else "none", text)
        for refusal, (name, text) in zip(Refusal, _meanings(Refusal), strict=True)
    ]
    return sorted([*rows, (code(NOT_A_REVIEW), "400", _NOT_A_REVIEW)])
