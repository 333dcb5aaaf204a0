"""The metrics of the ``table`` in Prometheus' text format: the Events implementation that counts.

Counters start at 0, so that absence means something. When the configuration changes, the series of removed policies and
entries are removed after their last review is decided; the others continue.

A series is found by its metric and its labels, in one lookup.
"""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from itertools import chain, product
from typing import Final

from gateway.engine.answer_source import Source
from gateway.engine.decision import Decision
from gateway.engine.verdicts import ANSWER_WORDS, Failure
from gateway.policies.model import Phase, Policy
from gateway.telemetry.events import CONFIGURED, Kind, Metric
from gateway.telemetry.labels import LIMIT_OF
from gateway.telemetry.series import CONTENT_TYPE, HistogramSeries, Series, family
from gateway.telemetry.table import (
    BRIDGE_PREFIX,
    BUCKETS,
    FAILED_OPEN,
    GATEWAY,
    LIMIT_HITS,
    POLICY_ANSWERS,
    POLICY_CONFLICTS,
    POLICY_FAILURES,
    POLICY_VERDICTS,
    PREFETCHES,
    PREFIX,
    REVIEW_SECONDS,
    REVIEWS,
    WORKER_CONNECTIONS,
    WORKER_EVENTS,
)

OTHER: Final = "other"
"""Replaces all label values that are not in the table."""

_Labels = tuple[str, ...]
_Key = tuple[Metric, _Labels]


class Metrics:
    """The series of one process. An Events.

    Args:
        table: the metrics that there are.
        prefix: of their names. Those of a bridge have no label ``worker``.
    """

    def __init__(self, table: Iterable[Metric] = GATEWAY, *, prefix: str = PREFIX) -> None:
        self._prefix = prefix
        self._without = "worker" if prefix == BRIDGE_PREFIX else ""
        self._known: dict[Metric, tuple[frozenset[str] | None, ...]] = {}
        self._names: dict[Metric, tuple[str, ...]] = {}
        self._series: dict[_Key, Series] = {}
        self._histograms: dict[_Key, HistogramSeries] = {}
        self._workers: Tally[str] = Tally()
        self.use(table)

    def use(self, table: Iterable[Metric]) -> None:
        """Add these metrics, starting at 0."""
        for metric in table:
            self._known[metric] = tuple(
                known if known is CONFIGURED else frozenset(known) for known in metric.labels.values()
            )
            self._names[metric] = tuple("" if name == self._without else name for name in metric.labels)
            if CONFIGURED not in metric.labels.values():
                self._start(metric, ())

    # ------------------------------------------------------------------------------------------------ as Events

    def count(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        """See Events."""
        series = self._series.get((metric, labels))
        if series is None:
            series = self._made(metric, labels)
        series.value += amount

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """See Events."""
        series = self._series.get((metric, labels))
        if series is None:
            series = self._made(metric, labels)
        series.value = float(value)

    def worker_added(self, worker: str, events: Iterable[str]) -> None:
        """See Events. Workers with the same name share their series."""
        self._workers[worker] += 1
        self._made(WORKER_CONNECTIONS, (worker,))
        for event in events:
            self._made(WORKER_EVENTS, (worker, event))
            if event in LIMIT_OF:
                self._made(LIMIT_HITS, (LIMIT_OF[event],))

    def worker_removed(self, worker: str) -> None:
        """See Events. The series are removed with the last worker of the name."""
        self._workers[worker] -= 1
        if not self._workers[worker]:
            del self._workers[worker]
            self._remove([key for key in self._series if "worker" in key[0].labels and key[1][0] == worker])

    # ----------------------------------------------------------------------------------------------- as Consumer

    def decided(self, decision: Decision) -> None:
        """Count a decision."""
        count, phase = self.count, decision.plan.phase
        count(REVIEWS, phase, decision.outcome)
        self._histograms[REVIEW_SECONDS, (phase,)].observe(max(decision.ended - decision.started, 0.0))
        used = 0
        for call in decision.calls:
            if call.answer is None:
                continue
            used += call.prefetched and call.source is not Source.MEMO
            name = call.policy.qualified_name
            count(POLICY_VERDICTS, phase, name, ANSWER_WORDS[type(call.answer)])
            count(POLICY_ANSWERS, phase, name, call.source)
            if call.conflicts:
                count(POLICY_CONFLICTS, phase, name, amount=len(call.conflicts))
            if isinstance(call.answer, Failure):
                count(POLICY_FAILURES, phase, name, call.answer.reason)
                if call.failed_open:
                    count(FAILED_OPEN, phase, name)
        if decision.prefetches:
            # One answer may have served several policies with equal calls.
            used = min(used, decision.prefetches)
            count(PREFETCHES, "used", amount=used)
            count(PREFETCHES, "wasted", amount=decision.prefetches - used)

    # ----------------------------------------------------------------------------------------- the configuration

    def know(self, policies: Iterable[Policy], entries: Iterable[tuple[Phase, str | None]]) -> None:
        """Start the counters of these policies and entries at 0; existing ones continue."""
        for metric, subject, policy in self._subjects(policies, entries):
            self._start(metric, subject, policy)

    def forget_others(self, policies: Iterable[Policy], entries: Iterable[tuple[Phase, str | None]]) -> None:
        """Remove the series of all policies and entries but these."""
        known = {(metric, subject) for metric, subject, _ in self._subjects(policies, entries)}
        about = [metric for metric in self._known if "policy" in metric.labels or "entry" in metric.labels]
        self._remove([key for key in self._series if key[0] in about and (key[0], key[1][:2]) not in known])

    def _subjects(
        self, policies: Iterable[Policy], entries: Iterable[tuple[Phase, str | None]]
    ) -> Iterator[tuple[Metric, _Labels, Policy | None]]:
        """Each metric with the first labels of each policy or entry that has series of it."""
        chosen, named = tuple(policies), tuple(entries)
        for metric in self._known:
            if "policy" in metric.labels:
                yield from ((metric, (one.phase, one.qualified_name), one) for one in chosen if metric.of(one))
            elif "entry" in metric.labels:
                yield from ((metric, (phase, entry or ""), None) for phase, entry in named)

    # ------------------------------------------------------------------------------------------------ the series

    def _start(self, metric: Metric, first: _Labels, policy: Policy | None = None) -> None:
        """Add all series that begin with these labels, starting at 0."""
        rest = [values or () for values in metric.labels.values()][len(first) :]
        if metric.starts is not None:
            rest[-1] = metric.starts(policy)
        name = f"{self._prefix}{metric.name}"
        for others in product(*rest):
            key = metric, (*first, *others)
            shown = self._names[metric], key[1]
            if metric.kind is Kind.HISTOGRAM:
                self._histograms[key] = HistogramSeries(name, shown, BUCKETS)
            elif key not in self._series:
                self._series[key] = Series(name, shown)

    def _made(self, metric: Metric, labels: _Labels) -> Series:
        """The series of these labels, created if needed; one that is never shown if the metric does not exist."""
        all_known = self._known.get(metric)
        if all_known is None:
            return Series("", ((), ()))
        key = (
            metric,
            tuple(
                [
                    value if known is CONFIGURED or value in known else OTHER
                    for value, known in zip(labels, all_known, strict=True)
                ]
            ),
        )
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = Series(f"{self._prefix}{metric.name}", (self._names[metric], key[1]))
        return series

    def _remove(self, keys: Iterable[_Key]) -> None:
        for key in keys:
            del self._series[key]

    def exposition(self) -> tuple[str, bytes]:
        """The content type and text of /metrics."""
        families: dict[Metric, list[Series | HistogramSeries]] = {metric: [] for metric in self._known}
        for (metric, _), series in self._series.items():
            families[metric].append(series)
        for (metric, _), histogram in self._histograms.items():
            families[metric].append(histogram)
        lines = chain.from_iterable(
            family(f"{self._prefix}{metric.name}", metric.kind.value, metric.text, series)
            for metric, series in families.items()
        )
        return CONTENT_TYPE, "".join(lines).encode()
