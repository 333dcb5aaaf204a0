"""All metrics, in one table: name, labels, what bounds their values. Counters start at 0, so that absence means
something.

Labels hold reason codes, phases and configured names; never anything that a request brings along: namespace × kind ×
policy has made six million series elsewhere.
"""

from collections.abc import Iterable
from typing import Final, TypeVar, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from gateway.deciding import Allow, Decision, Deny, Failure, Outcome
from gateway.policies import Phase, Policy
from gateway.reasons import Reason

PREFIX: Final = "admission_gateway_"

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds: from a review that asks nobody to the longest that kube-apiserver waits."""

LIMITS: Final = (
    "body_bytes",
    "body_bytes_in_flight",
    "field_bytes",
    "header_seconds",
    "log_lines",
    "reviews_in_flight",
    "write_seconds",
)
"""The limits that can be hit; the names of ``gateway.serving.limits.Limits``, and ``log_lines``."""

REFUSALS: Final = (
    "body_framing",
    "body_size",
    "body_time",
    "content_encoding",
    "content_type",
    "expectation",
    "hangup",
    "header_size",
    "header_time",
    "internal",
    "malformed",
    "memory",
    "method",
    "not_a_review",
    "not_ready",
    "path",
    "plain_http",
    "tls",
    "unread",
)
"""Why a request was refused before there was a review to decide. Any other word is counted as ``other``."""


_VERDICTS: Final = {Allow: "allow", Deny: "deny", Failure: "failure"}

_Metric = TypeVar("_Metric", Counter, Histogram)

disable_created_metrics()  # type: ignore[no-untyped-call] # a second series beside each, which says when the process began


class Metrics:
    """The gateway's own metrics, and their registry.

    ================================================  ==========================  =====================================
    metric                                            labels                      their values
    ================================================  ==========================  =====================================
    admission_gateway_reviews_total                   phase, outcome              2 phases, 3 outcomes
    admission_gateway_review_seconds                  phase                       2 phases
    admission_gateway_policy_verdicts_total           phase, policy, verdict      configured policies, 3 kinds of answer
    admission_gateway_policy_failures_total           phase, policy, reason       configured policies, reason codes
    admission_gateway_failed_open_total               phase, policy               configured policies
    admission_gateway_http_refusals_total             why                         REFUSALS and ``other``
    admission_gateway_limit_hits_total                limit                       LIMITS and ``other``
    admission_gateway_abandoned_reviews_total         phase                       2 phases
    admission_gateway_reviews_in_flight               (none)
    admission_gateway_body_bytes_in_flight            (none)
    admission_gateway_connections                     (none)
    admission_gateway_configuration_errors            (none)
    ================================================  ==========================  =====================================
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._series: dict[tuple[object, ...], Counter | Histogram] = {}
        self._reviews = self._counter("reviews", "Reviews decided.", "phase", "outcome")
        self._seconds = Histogram(
            f"{PREFIX}review_seconds",
            "From the request's head to its answer.",
            ["phase"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._verdicts = self._counter("policy_verdicts", "What policies answered.", "phase", "policy", "verdict")
        self._failures = self._counter("policy_failures", "Policies that could not judge.", "phase", "policy", "reason")
        self._open = self._counter("failed_open", "Failures let pass by failurePolicy Ignore.", "phase", "policy")
        self._refusals = self._counter("http_refusals", "Requests refused without a review.", "why")
        self._limits = self._counter("limit_hits", "How often a limit was hit.", "limit")
        self._abandoned = self._counter("abandoned_reviews", "Reviews whose API server hung up.", "phase")
        self.in_flight = Gauge(f"{PREFIX}reviews_in_flight", "Reviews being decided.", registry=self.registry)
        self.body_bytes = Gauge(f"{PREFIX}body_bytes_in_flight", "Bytes of their bodies.", registry=self.registry)
        self.connections = Gauge(f"{PREFIX}connections", "TLS connections.", registry=self.registry)
        self.configuration_errors = Gauge(
            f"{PREFIX}configuration_errors", "Mistakes in the configuration that is served.", registry=self.registry
        )
        for phase in Phase:
            self._seconds.labels(phase)
            self._abandoned.labels(phase)
            for outcome in Outcome:
                self._reviews.labels(phase, outcome)
        for why in REFUSALS:
            self._refusals.labels(why)
        for limit in LIMITS:
            self._limits.labels(limit)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}{name}", text, labels, registry=self.registry)

    def _of(self, metric: _Metric, *labels: str) -> _Metric:
        """The series of these labels. ``labels()`` costs 3 µs a call; their number is bounded, so they are kept."""
        key = (id(metric), *labels)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = metric.labels(*labels)
        return cast("_Metric", series)

    def know(self, policies: Iterable[Policy]) -> None:
        """Start the counters of these policies at 0."""
        for policy in policies:
            for verdict in _VERDICTS.values():
                self._verdicts.labels(policy.phase, policy.qualified_name, verdict)
            self._failures.labels(policy.phase, policy.qualified_name, Reason.WORKER_UNAVAILABLE)
            self._open.labels(policy.phase, policy.qualified_name)

    def decided(self, decision: Decision) -> None:
        """Count a decision."""
        phase = decision.phase
        self._of(self._reviews, phase, decision.outcome).inc()
        self._of(self._seconds, phase).observe(max(decision.ended - decision.started, 0.0))
        for call in decision.calls:
            if call.answer is None:
                continue
            name = call.policy.qualified_name
            self._of(self._verdicts, phase, name, _VERDICTS[type(call.answer)]).inc()
            if isinstance(call.answer, Failure):
                self._of(self._failures, phase, name, call.answer.reason).inc()
                if call.failed_open:
                    self._of(self._open, phase, name).inc()

    def refused(self, why: str) -> None:
        """A request was refused before it became a review."""
        self._refusals.labels(why if why in REFUSALS else "other").inc()

    def limit_hit(self, limit: str) -> None:
        """A limit was hit."""
        self._limits.labels(limit if limit in LIMITS else "other").inc()

    def abandoned(self, phase: Phase) -> None:
        """The API server hung up before the decision."""
        self._abandoned.labels(phase).inc()

    def not_a_review(self) -> None:
        """A body was no AdmissionReview."""
        self.refused("not_a_review")

    def exposition(self) -> tuple[str, bytes]:
        """The content type and text of /metrics."""
        return CONTENT_TYPE_LATEST, generate_latest(self.registry)
