"""All metrics, in one table: name, labels, what bounds their values. Counters start at 0, so that absence means
something.

Labels hold reason codes, phases and configured names; never anything that a request brings along: namespace × kind ×
policy has made six million series elsewhere. When the configuration changes, the series of what is no longer configured
go as soon as its last review is decided; what stays goes on counting.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from gateway.deciding.decision import Decision, Outcome
from gateway.deciding.origin import Source
from gateway.deciding.plan import UnavailableReason
from gateway.deciding.verdicts import Allow, Answer, Deny, Failure
from gateway.policies.model import Phase, Policy
from gateway.reasons import Reason

PREFIX: Final = "admission_gateway_"

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds: from a review that asks nobody to the longest that kube-apiserver waits."""

LIMITS: Final = (
    "body_bytes",
    "body_bytes_in_flight",
    "field_bytes",
    "header_seconds",
    "hook_waiting",
    "log_lines",
    "reviews_in_flight",
    "worker_backlog_bytes",
    "worker_in_flight",
    "worker_strays",
    "write_seconds",
)
"""The limits that can be hit; the names of ``gateway.serving.limits.Limits`` and of
``gateway.transports.TransportLimits``, and ``log_lines``."""

QUEUE_LIMITS: Final = ("queue_bytes", "queue_length", "queue_open_bytes")
"""Those of queues; counted from when there is one."""

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

RELOADS: Final = ("failed", "invalid", "loaded", "unchanged", "unreadable")
"""What can come of a reload: ``gateway.serving.reload`` says what each means."""

EFFECTS: Final = ("failure", "last_good")
"""What becomes of a policy that is not in force as it is configured: it fails, or its last good version is asked."""

LOOKUPS: Final = ("bypass", "memory", "miss", "redis", "shared", "stale")
"""What came of looking for a verdict in the cache: ``gateway.caching`` says what each means."""

ENTRIES: Final = ("evicted", "stored", "too_large", "write_dropped")
"""What became of entries of the cache."""

REDIS_ERRORS: Final = ("connection", "garbage", "response", "timeout")
"""Why Redis was of no use."""

EARLY: Final = ("used", "wasted")
"""What came of asking early."""

PATROLLED: Final = ("failed", "stable", "unstable")
"""What came of asking a policy again: ``gateway.serving.patrol`` says what each means."""

PATROLS: Final = ("dropped", *PATROLLED)
"""What came of a patrol."""

COMPARED: Final = ("different", "dropped", "failed", "same")
"""What came of comparing a policy with its shadow: ``gateway.serving.shadow`` says what each means."""

WORKER_EVENTS: Final = (
    "backlog",
    "circuit_opened",
    "connected",
    "disconnected",
    "flooded",
    "hook_killed",
    "hook_refused",
    "hook_run",
    "in_flight",
    "retry",
    "stray",
    "stream_broke",
)
"""What can happen with a worker: ``gateway.transports.events`` says what each means."""

QUEUE_EVENTS: Final = (
    "expired",
    "queue_bytes",
    "queue_length",
    "queue_open_bytes",
    "queue_slow",
    "redis_lost",
    "resent",
    "unreadable",
)
"""What can happen besides with a worker behind a queue."""

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
    admission_gateway_entry_reviews_total             phase, entry, outcome       configured entries, 3 outcomes
    admission_gateway_policy_verdicts_total           phase, policy, verdict      configured policies, 3 kinds of answer
    admission_gateway_policy_failures_total           phase, policy, reason       configured policies, reason codes
    admission_gateway_failed_open_total               phase, policy               configured policies
    admission_gateway_policy_answers_total            phase, policy, source       configured policies, 7 sources
    admission_gateway_policy_conflicts_total          phase, policy               configured policies
    admission_gateway_early_asks_total                result                      EARLY
    admission_gateway_patrols_total                   result                      PATROLS
    admission_gateway_patrolled_policies_total        phase, policy, result       mutating policies, PATROLLED
    admission_gateway_shadow_comparisons_total        phase, policy, result       policies with a shadow, COMPARED
    admission_gateway_cache_lookups_total             phase, policy, result       policies with a cache, LOOKUPS
    admission_gateway_cache_entries_total             event                       ENTRIES
    admission_gateway_cache_purged_policies_total     (none)
    admission_gateway_cache_seal_failures_total       (none)                      with Redis only
    admission_gateway_cache_redis_errors_total        kind                        REDIS_ERRORS; with Redis only
    admission_gateway_cache_redis_skipped             (none)                      0 or 1; with Redis only
    admission_gateway_cache_memory_entries            (none)
    admission_gateway_cache_memory_bytes              (none)
    admission_gateway_worker_events_total             worker, event               configured workers; the events above
    admission_gateway_worker_connections              worker                      configured workers
    admission_gateway_queue_length                    worker                      workers behind a queue
    admission_gateway_queue_oldest_seconds            worker                      workers behind a queue
    admission_gateway_hook_processes                  worker                      workers that are hooks
    admission_gateway_http_refusals_total             why                         REFUSALS and ``other``
    admission_gateway_limit_hits_total                limit                       LIMITS, QUEUE_LIMITS and ``other``
    admission_gateway_abandoned_reviews_total         phase                       2 phases
    admission_gateway_reviews_in_flight               (none)
    admission_gateway_body_bytes_in_flight            (none)
    admission_gateway_connections                     (none)
    admission_gateway_configuration_errors            (none)
    admission_gateway_configuration_reloads_total     result                      RELOADS
    admission_gateway_configuration_last_reload_...   (none)                      ...successful: 0 or 1
    admission_gateway_configuration_loaded_...        (none)                      ...timestamp_seconds
    admission_gateway_degraded_policies               reason, effect              UnavailableReason, EFFECTS
    ================================================  ==========================  =====================================
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._series: dict[tuple[Counter | Histogram, tuple[str, ...]], Counter | Histogram] = {}
        self._reviews = self._counter("reviews", "Reviews decided.", "phase", "outcome")
        self._seconds = Histogram(
            f"{PREFIX}review_seconds",
            "From the request's head to its answer.",
            ["phase"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._entries = self._counter("entry_reviews", "Reviews decided through an entry.", "phase", "entry", "outcome")
        self._verdicts = self._counter("policy_verdicts", "What policies answered.", "phase", "policy", "verdict")
        self._failures = self._counter("policy_failures", "Policies that could not judge.", "phase", "policy", "reason")
        self._open = self._counter("failed_open", "Failures let pass by failurePolicy Ignore.", "phase", "policy")
        self._answers = self._counter(
            "policy_answers", "Where the answers of policies came from.", "phase", "policy", "source"
        )
        self._conflicts = self._counter(
            "policy_conflicts", "Writes to a field that another policy of the review had written.", "phase", "policy"
        )
        self._early = self._counter("early_asks", "Asks of mutating policies before their turn.", "result")
        self._patrols = self._counter("patrols", "Mutations put to their policies again, as a set.", "result")
        self._patrolled = self._counter(
            "patrolled_policies", "Policies put their own result again.", "phase", "policy", "result"
        )
        self._compared = self._counter(
            "shadow_comparisons", "Verdicts compared with those of shadows.", "phase", "policy", "result"
        )
        self._define_cache()
        self._define_workers()
        self._define_service()
        self._start_at_zero()

    def _define_cache(self) -> None:
        """The cache between reviews."""
        self._lookups = self._counter(
            "cache_lookups",
            "Verdicts looked for in the cache, for policies that have one.",
            "phase",
            "policy",
            "result",
        )
        self._cache_entries = self._counter("cache_entries", "What became of entries of the cache.", "event")
        self._purged = self._counter("cache_purged_policies", "Policies whose verdicts were purged, here or elsewhere.")
        self._cache_size = self._gauge("cache_memory_entries", "Entries of the cache in this process.")
        self._cache_bytes = self._gauge("cache_memory_bytes", "Their bytes.")

    def use_redis(self) -> None:
        """There is a second level of the cache: it has metrics from now on."""
        self._seal_failures = self._counter(
            "cache_seal_failures", "Entries of Redis that this gateway's keys do not open: altered, moved or forged."
        )
        self._redis_errors = self._counter("cache_redis_errors", "Why Redis was of no use.", "kind")
        self._redis_skipped = self._gauge("cache_redis_skipped", "Whether Redis is skipped, because it keeps failing.")
        for word in REDIS_ERRORS:
            self._of(self._redis_errors, word)

    def _define_workers(self) -> None:
        """The transports."""
        self._worker_events = self._counter("worker_events", "What happened with workers.", "worker", "event")
        self._worker_connections = Gauge(
            f"{PREFIX}worker_connections",
            "Connections to a worker that may be asked: described, and serving; of a queue, its bridges.",
            ["worker"],
            registry=self.registry,
        )
        self._queue_length = Gauge(
            f"{PREFIX}queue_length",
            "Asks in a worker's queue, of all gateways: those that wait, and those that are worked on.",
            ["worker"],
            registry=self.registry,
        )
        self._queue_oldest = Gauge(
            f"{PREFIX}queue_oldest_seconds",
            "For how long the oldest ask in a worker's queue is there, as far as this process knows.",
            ["worker"],
            registry=self.registry,
        )
        self._hook_processes = Gauge(
            f"{PREFIX}hook_processes", "Processes of a hook that run.", ["worker"], registry=self.registry
        )

    def _define_service(self) -> None:
        """HTTP, and the configuration."""
        self._refusals = self._counter("http_refusals", "Requests refused without a review.", "why")
        self._limits = self._counter("limit_hits", "How often a limit was hit.", "limit")
        self._abandoned = self._counter("abandoned_reviews", "Reviews whose API server hung up.", "phase")
        self.in_flight = self._gauge("reviews_in_flight", "Reviews being decided.")
        self.body_bytes = self._gauge("body_bytes_in_flight", "Bytes of their bodies.")
        self.connections = self._gauge("connections", "TLS connections.")
        self._configuration_errors = self._gauge(
            "configuration_errors", "Mistakes in the configuration that was read last."
        )
        self._reloads = self._counter("configuration_reloads", "Changes of the configuration that were read.", "result")
        self._reload_successful = self._gauge(
            "configuration_last_reload_successful",
            "Whether what is served is what was read last; 0: the last good configuration is served instead.",
        )
        self._loaded = self._gauge(
            "configuration_loaded_timestamp_seconds", "When the configuration that is served was read, as Unix time."
        )
        self._degraded = self._gauge(
            "degraded_policies",
            "Policies that are not in force as they are configured: their last good version is asked, or they fail.",
            "reason",
            "effect",
        )

    def _start_at_zero(self) -> None:
        self.degraded({})
        for phase in Phase:
            self._seconds.labels(phase)
            self._abandoned.labels(phase)
            for outcome in Outcome:
                self._reviews.labels(phase, outcome)
        for metric, words in (
            (self._refusals, REFUSALS),
            (self._limits, LIMITS),
            (self._reloads, RELOADS),
            (self._cache_entries, ENTRIES),
            (self._early, EARLY),
            (self._patrols, PATROLS),
        ):
            for word in words:
                self._of(metric, word)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"{PREFIX}{name}", text, labels, registry=self.registry)

    def _of(self, metric: _Metric, *labels: str) -> _Metric:
        """The series of these labels. ``labels()`` costs 3 µs a call; their number is bounded, so they are kept."""
        key = (metric, labels)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = metric.labels(*labels)
        return cast("_Metric", series)

    # ------------------------------------------------------------------------------------- the configuration

    def know(self, policies: Iterable[Policy], entries: Iterable[tuple[Phase, str | None]] = ()) -> None:
        """Start the counters of these policies and entries at 0; those that have begun go on."""
        for policy in policies:
            self._know_policy(policy)
        for phase, entry in entries:
            for outcome in Outcome:
                self._of(self._entries, phase, entry or "", outcome)

    def _know_policy(self, policy: Policy) -> None:
        for verdict in _VERDICTS.values():
            self._of(self._verdicts, policy.phase, policy.qualified_name, verdict)
        self._of(self._failures, policy.phase, policy.qualified_name, Reason.WORKER_UNAVAILABLE)
        self._of(self._open, policy.phase, policy.qualified_name)
        for source in Source:
            self._of(self._answers, policy.phase, policy.qualified_name, source)
        if policy.cache is not None:
            for word in LOOKUPS:
                self._of(self._lookups, policy.phase, policy.qualified_name, word)
        if policy.shadow is not None:
            for word in COMPARED:
                self._of(self._compared, policy.phase, policy.qualified_name, word)
        if policy.phase is Phase.MUTATING:
            self._of(self._failures, policy.phase, policy.qualified_name, Reason.WRITE_SCOPE)
            self._of(self._conflicts, policy.phase, policy.qualified_name)
            for result in PATROLLED:
                self._of(self._patrolled, policy.phase, policy.qualified_name, result)

    def forget_others(self, policies: Iterable[Policy], entries: Iterable[tuple[Phase, str | None]] = ()) -> None:
        """Remove the series of all policies and entries but these."""
        configured = list(policies)
        known_policies = {(policy.phase.value, policy.qualified_name) for policy in configured}
        known_shadowed = {
            (policy.phase.value, policy.qualified_name) for policy in configured if policy.shadow is not None
        }
        known_entries = {(phase.value, entry or "") for phase, entry in entries}
        known: dict[Counter | Histogram, set[tuple[str, str]]] = {
            self._verdicts: known_policies,
            self._failures: known_policies,
            self._open: known_policies,
            self._answers: known_policies,
            self._conflicts: known_policies,
            self._patrolled: known_policies,
            self._compared: known_shadowed,
            self._lookups: known_policies,
            self._entries: known_entries,
        }
        for metric, labels in list(self._series):
            if metric in known and labels[:2] not in known[metric]:
                metric.remove(*labels)
                del self._series[metric, labels]

    def loaded(self, moment: float, *, errors: int) -> None:
        """A configuration that was read at this moment (Unix time) is served, with so many mistakes in it."""
        self._loaded.set(moment)
        self._configuration_errors.set(errors)
        self._reload_successful.set(1)

    def reloaded(self, result: str, *, errors: int, good: bool) -> None:
        """The configuration was read again. ``good``: what is served is what was read."""
        self._reloads.labels(result if result in RELOADS else "other").inc()
        self._configuration_errors.set(errors)
        self._reload_successful.set(good)

    def degraded(self, numbers: Mapping[tuple[UnavailableReason, bool], int]) -> None:
        """So many policies are not in force as configured, by reason, and by whether their last good version is."""
        for reason in UnavailableReason:
            for effect, last_good in zip(EFFECTS, (False, True), strict=True):
                self._degraded.labels(reason, effect).set(numbers.get((reason, last_good), 0))

    # ------------------------------------------------------------------------------------------------ reviews

    def decided(self, decision: Decision) -> None:
        """Count a decision."""
        phase = decision.phase
        self._of(self._reviews, phase, decision.outcome).inc()
        self._of(self._seconds, phase).observe(max(decision.ended - decision.started, 0.0))
        used = 0
        for call in decision.calls:
            if call.answer is None:
                continue
            used += call.early and call.source is not Source.MEMO
            name = call.policy.qualified_name
            self._of(self._verdicts, phase, name, _verdict(call.answer)).inc()
            self._of(self._answers, phase, name, call.source).inc()
            if call.conflicts:
                self._of(self._conflicts, phase, name).inc(len(call.conflicts))
            if isinstance(call.answer, Failure):
                self._of(self._failures, phase, name, call.answer.reason).inc()
                if call.failed_open:
                    self._of(self._open, phase, name).inc()
        if decision.early_asks:
            # One answer may have served several policies that had the same question.
            used = min(used, decision.early_asks)
            self._of(self._early, "used").inc(used)
            self._of(self._early, "wasted").inc(decision.early_asks - used)

    def judged(self, entry: str, decision: Decision) -> None:
        """Count a decision that was made for an entry."""
        self._of(self._entries, decision.phase, entry, decision.outcome).inc()

    def refused(self, why: str) -> None:
        """A request was refused before it became a review."""
        self._refusals.labels(why if why in REFUSALS else "other").inc()

    def limit_hit(self, limit: str) -> None:
        """A limit was hit."""
        self._limits.labels(limit if limit in LIMITS or limit in QUEUE_LIMITS else "other").inc()

    def abandoned(self, phase: Phase) -> None:
        """The API server hung up before the decision."""
        self._abandoned.labels(phase).inc()

    def not_a_review(self) -> None:
        """A body was no AdmissionReview."""
        self.refused("not_a_review")

    # ------------------------------------------------------------------------------------- the cache, the patrol

    def looked_up(self, policy: Policy, result: str) -> None:
        """A verdict of this policy was looked for in the cache."""
        self._of(self._lookups, policy.phase, policy.qualified_name, result).inc()

    def cache_entry(self, event: str, number: int = 1) -> None:
        """Something became of so many entries of the cache."""
        self._of(self._cache_entries, event if event in ENTRIES else "other").inc(number)

    def cache_size(self, memory_bytes: int, entries: int) -> None:
        """What the cache of this process holds now."""
        self._cache_bytes.set(memory_bytes)
        self._cache_size.set(entries)

    def purged(self, policies: int) -> None:
        """The verdicts of so many policies were purged."""
        self._purged.inc(policies)

    def seal_failed(self) -> None:
        """An entry of Redis was not sealed by one of our keys, or not for that place."""
        self._seal_failures.inc()

    def redis_failed(self, fault: str) -> None:
        """Redis was of no use."""
        self._of(self._redis_errors, fault if fault in REDIS_ERRORS else "other").inc()

    def redis_skipped(self, *, skipped: bool) -> None:
        """From now on Redis is skipped, or used again."""
        self._redis_skipped.set(skipped)

    def patrolled(self, result: str) -> None:
        """A patrol is over."""
        self._of(self._patrols, result if result in PATROLS else "other").inc()

    def patrolled_policy(self, policy: Policy, result: str) -> None:
        """A policy was put its own result."""
        self._of(self._patrolled, policy.phase, policy.qualified_name, result).inc()

    def compared(self, policy: Policy, result: str) -> None:
        """A verdict of this policy was compared with its shadow's, or was not."""
        self._of(self._compared, policy.phase, policy.qualified_name, result).inc()

    # --------------------------------------------------------------------------------------------- the workers

    def know_worker(self, worker: str) -> None:
        """Start the counters of this worker at 0; those that have begun go on."""
        for event in WORKER_EVENTS:
            self._of(self._worker_events, worker, event)
        self._worker_connections.labels(worker)

    def forget_worker(self, worker: str) -> None:
        """Remove its series."""
        for event in (*WORKER_EVENTS, *QUEUE_EVENTS):
            if self._series.pop((self._worker_events, (worker, event)), None) is not None:
                self._worker_events.remove(worker, event)
        self._worker_connections.remove(worker)
        self._queue_length.remove(worker)
        self._queue_oldest.remove(worker)
        self._hook_processes.remove(worker)

    def worker_event(self, worker: str, event: str, number: int = 1) -> None:
        """Something happened with a worker that is known."""
        self._of(self._worker_events, worker, event).inc(number)

    def worker_connections(self, worker: str, usable: int) -> None:
        """So many connections to a worker that is known may be asked."""
        self._worker_connections.labels(worker).set(usable)

    def worker_queue(self, worker: str, length: int, oldest_seconds: float) -> None:
        """So many asks are in the queue of a worker that is known, the oldest for so long."""
        for event in QUEUE_EVENTS:
            self._of(self._worker_events, worker, event)
        for limit in QUEUE_LIMITS:
            self._of(self._limits, limit)
        self._queue_length.labels(worker).set(length)
        self._queue_oldest.labels(worker).set(oldest_seconds)

    def hook_processes(self, worker: str, running: int) -> None:
        """So many processes of a hook that is known run."""
        self._hook_processes.labels(worker).set(running)

    def exposition(self) -> tuple[str, bytes]:
        """The content type and text of /metrics."""
        return CONTENT_TYPE_LATEST, generate_latest(self.registry)


def _verdict(answer: Answer) -> str:
    """Of which kind it is: a policy that cannot be asked comes to a failure that says more."""
    return next(word for kind, word in _VERDICTS.items() if isinstance(answer, kind))
