"""The metrics of the ``table``: the Events implementation that counts, and what /metrics shows of it.

Counters start at 0, so that absence means something. When the configuration changes, the series of removed policies and
entries are removed after their last review is decided; the others continue.

/metrics is written piece by piece, and other tasks run between two pieces: the fifty thousand series of two thousand
policies take 35 ms, which no review should wait for.
"""

import asyncio
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from gateway.engine.answer_source import Source
from gateway.engine.decision import Decision, Outcome
from gateway.engine.verdicts import ANSWER_WORDS, Failure
from gateway.policies.model import Phase, Policy
from gateway.reasons import Reason
from gateway.telemetry.events import SAMPLED, Metric, NoEvents
from gateway.telemetry.families import Family, LabelValues
from gateway.telemetry.labels import LIMIT_OF
from gateway.telemetry.table import (
    BRIDGE_PREFIX,
    FAILED_OPEN,
    GATEWAY,
    LIMIT_HITS,
    POLICY_ANSWERS,
    POLICY_CONFLICTS,
    POLICY_FAILURES,
    POLICY_VERDICTS,
    PREFETCHES,
    PREFIX,
    REVIEW_BUDGET_EXHAUSTED,
    REVIEW_BUDGET_REMAINING,
    REVIEW_SECONDS,
    REVIEWS,
    WORKER_CONNECTIONS,
    WORKER_EVENTS,
)

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_KNOWN_AT_ONCE: Final = 200
"""Policies whose series of a family begin at once: 2,000 series, some 4 ms."""

_PIECE: Final = 100
"""Series that are written at once: a millisecond, if all are histograms."""


class Metrics:
    """The series of one process. An Events, and a DecisionObserver.

    Args:
        table: the metrics that there are.
        prefix: of their names. Those of a bridge have no label ``worker``.
    """

    def __init__(self, table: Iterable[Metric] = GATEWAY, *, prefix: str = PREFIX) -> None:
        self._prefix = prefix
        self._families: dict[Metric, Family] = {}
        self._workers: Tally[str] = Tally()
        self.use(table)

    def use(self, table: Iterable[Metric]) -> None:
        """Add these metrics, starting at 0."""
        for metric in table:
            without = "worker" if self._prefix == BRIDGE_PREFIX else ""
            family = self._families[metric] = Family(metric, prefix=self._prefix, without=without)
            if not family.is_configured and not metric.lazy:
                family.start(())

    # ------------------------------------------------------------------------------------------------ as Events

    def count(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        """See Events."""
        if metric in self._families:
            self._series_of(metric, labels).value += amount

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """See Events."""
        if metric in self._families:
            self._series_of(metric, labels).value = float(value)

    def observe(self, metric: Metric, value: float, *labels: str, trace_id: str = "") -> None:
        """See Events."""
        if metric in self._families:
            self._series_of(metric, labels).observe(value, trace_id)

    def series(self, metric: Metric, *labels: str) -> Any:
        """See Events."""
        return self._series_of(metric, labels) if metric in self._families else NoEvents().series(metric, *labels)

    def worker_added(self, worker: str, events: Iterable[str]) -> None:
        """See Events. Workers with the same name share their series."""
        self._workers[worker] += 1
        self.count(WORKER_CONNECTIONS, worker, amount=0)
        for event in events:
            self.count(WORKER_EVENTS, worker, event, amount=0)
            if event in LIMIT_OF:
                self.count(LIMIT_HITS, LIMIT_OF[event], amount=0)

    def worker_removed(self, worker: str) -> None:
        """See Events. The series are removed with the last worker of the name."""
        self._workers[worker] -= 1
        if self._workers[worker]:
            return
        del self._workers[worker]
        for family in self._families.values():
            if "worker" in family.metric.labels:
                family.remove_worker(worker)

    # -------------------------------------------------------------------------------------------------- reading

    def value(self, metric: Metric, *labels: str) -> float:
        """The number of a counter or a gauge; 0 if there is none with these labels."""
        series = self._found(metric, labels)
        return 0.0 if series is None else float(series.value)

    def counts(self, metric: Metric, *labels: str) -> list[int]:
        """The number of observations in each bucket of a histogram, and above the last; empty without one."""
        series = self._found(metric, labels)
        return [] if series is None else list(series.counts)

    def _found(self, metric: Metric, labels: LabelValues) -> Any:
        family = self._families.get(metric)
        return None if family is None else family.series.get(labels)

    # ----------------------------------------------------------------------------------------------- as Consumer

    def decided(self, decision: Decision) -> None:  # noqa: C901 - another function would cost each review
        """Count a decision. Of a canceled review, only what policies did: it has no answer, good or bad, so it is in no
        ratio of answers (``REVIEWS_CANCELED`` counts it).
        """
        add, phase = self._add, decision.plan.phase
        if decision.outcome is not Outcome.CANCELED:
            add(REVIEWS, (phase, decision.outcome))
            seconds, remaining = decision.ended - decision.started, decision.ends - decision.ended
            self._series_of(REVIEW_SECONDS, (phase,)).observe(seconds if seconds > 0 else 0.0, _exemplar(decision))
            self._series_of(REVIEW_BUDGET_REMAINING, (phase,)).observe(remaining if remaining > 0 else 0.0)
        used, exhausted = 0, False
        for call in decision.calls:
            if call.answer is None:
                continue
            used += call.prefetched and call.source is not Source.MEMO
            name = call.policy.qualified_name
            add(POLICY_VERDICTS, (phase, name, ANSWER_WORDS[type(call.answer)]))
            add(POLICY_ANSWERS, (phase, name, call.source))
            if call.conflicts:
                add(POLICY_CONFLICTS, (phase, name), len(call.conflicts))
            if isinstance(call.answer, Failure):
                add(POLICY_FAILURES, (phase, name, call.answer.reason))
                exhausted |= call.answer.reason is Reason.BUDGET_EXHAUSTED
                if call.failed_open:
                    add(FAILED_OPEN, (phase, name))
        if decision.object_state is not None:
            for limit in decision.object_state.limits_hit:
                add(LIMIT_HITS, (limit,))
        if exhausted:
            add(REVIEW_BUDGET_EXHAUSTED, (phase,))
        if decision.prefetches:
            # One answer may have served several policies with equal calls.
            used = min(used, decision.prefetches)
            add(PREFETCHES, ("used",), used)
            add(PREFETCHES, ("wasted",), decision.prefetches - used)

    def _add(self, metric: Metric, labels: LabelValues, amount: float = 1) -> None:
        self._series_of(metric, labels).value += amount

    def _series_of(self, metric: Metric, labels: LabelValues) -> Any:
        family = self._families[metric]
        return family.series.get(labels) or family.made(labels)

    # ----------------------------------------------------------------------------------------- the configuration

    def know(self, policies: Iterable[Policy], entries: Iterable[tuple[Phase, str | None]]) -> None:
        """Start the counters of these policies and entries at 0; existing ones continue."""
        for _ in self.knowing(policies, entries):
            pass

    def knowing(self, policies: Iterable[Policy], entries: Iterable[tuple[Phase, str | None]]) -> Iterator[None]:
        """The same in slices: thousands of policies have tens of thousands of series."""
        chosen, named = tuple(policies), tuple(entries)
        for family in self._families.values():
            if family.metric.lazy:
                continue
            for number, (labels, policy) in enumerate(_subjects(family, chosen, named), 1):
                family.start(labels, policy)
                if not number % _KNOWN_AT_ONCE:
                    yield

    def forgetting_others(
        self, policies: Callable[[], Iterable[Policy]], entries: Callable[[], Iterable[tuple[Phase, str | None]]]
    ) -> Iterator[None]:
        """Remove the series of all policies and entries but these, in slices: those of one metric in each. Meanwhile
        there may be more of them.
        """
        for family in self._families.values():
            if family.has_policies or family.has_entries:
                family.keep_only({labels for labels, _ in _subjects(family, policies(), entries())})
                yield

    # -------------------------------------------------------------------------------------------------- /metrics

    def exposition(self, *, openmetrics: bool = False) -> tuple[str, bytes]:
        """Content type and text of /metrics, in the text format or in OpenMetrics."""
        return _content_type(openmetrics), b"".join(self._pieces(openmetrics))

    async def written(self, *, openmetrics: bool = False) -> tuple[str, bytes]:
        """The same, while other tasks run: the series may be of moments a little apart."""
        pieces = []
        for piece in self._pieces(openmetrics):
            pieces.append(piece)
            await asyncio.sleep(0)
        return _content_type(openmetrics), b"".join(pieces)

    def _pieces(self, openmetrics: bool) -> Iterator[bytes]:  # noqa: FBT001 - as its callers have it
        for family in tuple(self._families.values()):
            yield family.heading(openmetrics=openmetrics).encode()
            series = list(family.series.values())
            for start in range(0, len(series), _PIECE):
                part = series[start : start + _PIECE]
                yield "".join([each.text(exemplars=openmetrics) for each in part]).encode()
        if openmetrics:
            yield b"# EOF\n"


def _subjects(
    family: Family, policies: Iterable[Policy], entries: Iterable[tuple[Phase, str | None]]
) -> Iterator[tuple[LabelValues, Policy | None]]:
    """The first labels of each policy or entry that has series of the family."""
    if family.has_policies:
        of = family.metric.of
        yield from (((one.phase, one.qualified_name), one) for one in policies if of(one))
    elif family.has_entries:
        yield from (((phase, entry or ""), None) for phase, entry in entries)


def _content_type(openmetrics: bool) -> str:  # noqa: FBT001 - the same
    return OPENMETRICS if openmetrics else TEXT


def _exemplar(decision: Decision) -> str:
    """The trace in which a decision is found, if it is sampled, or exported (slow, denied, failed); else ""."""
    trace = decision.trace
    if trace.has_span:
        return trace.trace_id if decision.is_traced else ""
    return trace.trace_id if trace.traceparent.endswith(SAMPLED) else ""
