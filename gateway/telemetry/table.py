"""All metrics in one table: name, labels, and the bounds of their values.

Label values are reason codes, phases and configured names, never a part of a request: namespace × kind × policy made
six million series elsewhere. docs/reference/metrics.md is generated from this table.
"""

from collections.abc import Callable, Iterable
from typing import Final

from gateway.engine.answer_source import Source
from gateway.engine.decision import ANSWERED
from gateway.engine.object_state import DIFFERENCE_STEPS, PATCH_WORK
from gateway.engine.plan import UnavailableReason
from gateway.policies.model import Mode, Phase, Policy
from gateway.reasons import Reason
from gateway.telemetry.events import CONFIGURED, Combination, Kind, Metric, always
from gateway.telemetry.labels import (
    LIMIT_OF,
    CacheEvent,
    ConsumerEvent,
    Drop,
    LookupResult,
    RegistrationState,
    Transport,
    WorkerEvent,
)

PREFIX: Final = "admission_gateway_"

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds: from a review without a call to the longest time that kube-apiserver waits."""

POLICY_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30)
"""Seconds. Fewer than BUCKETS: a policy that is called has 14 lines of 130 bytes. With its counters that makes 4 KB of
/metrics for each policy, so 8 MB for two thousand."""

REMAINING_BUCKETS: Final = (0, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds. 0: nothing was left."""

LAG_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1)
"""Seconds: from a timer's resolution to what every client notices."""

FORMER_ENTRY_POLICIES: Final = "former_entry_policies"

LIMITS: Final = (
    "body_bytes",
    "body_bytes_in_flight",
    DIFFERENCE_STEPS,
    "connections",
    "depth",
    "field_bytes",
    "handshakes",
    FORMER_ENTRY_POLICIES,
    "header_bytes_in_flight",
    "header_seconds",
    PATCH_WORK,
    "readable_values",
    "reviews_in_flight",
    "scrapes",
    "values_in_flight",
    "wait_seconds",
    "write_seconds",
)
"""The limits that can be reached, besides those of workers (``labels.LIMIT_OF``), whose series exist as soon as a
worker can reach them: names of ``gateway.serving.limits.Limits``, and that of former entries."""

NOT_A_REVIEW: Final = "not_a_review"

REFUSALS: Final = (
    "body_framing",
    "body_size",
    "body_time",
    "connections",
    "content_encoding",
    "content_type",
    "expectation",
    "forbidden",
    "hangup",
    "header_memory",
    "header_size",
    "header_time",
    "internal",
    "malformed",
    "memory",
    "method",
    NOT_A_REVIEW,
    "not_ready",
    "path",
    "plain_http",
    "tls",
    "unauthenticated",
    "unread",
)
"""Why a request was refused before there was a review to decide: ``gateway.serving.refusals.Refusal``, and
``not_a_review``."""

VERDICTS: Final = ("allow", "deny", "failure")

CANCELED: Final = "canceled"
CALL_RESULTS: Final = (*VERDICTS, CANCELED)
"""How a call ended: by the worker's answer, or because no review waited for it any more."""

DRAIN: Final = "drain"
MAX_AGE: Final = "max_age"
"""Why a reply ends its connection: the gateway stops, or ``--max-connection-age``."""

RELOADS: Final = ("failed", "invalid", "loaded", "unchanged", "unreadable")
"""The results of a reload, explained in ``gateway.serving.reload``."""

FAILURE: Final = "failure"
LAST_GOOD: Final = "last_good"
"""The effect on a policy that cannot be called as configured: it fails, or its last good version is called."""

REDIS_ERRORS: Final = ("connection", "response", "timeout", "unreadable")
"""Errors of Redis, explained in ``gateway.redis.faults``."""

PREFETCH_RESULTS: Final = ("used", "wasted")
"""Whether a prefetched answer was used."""

IDEMPOTENCY_RESULTS: Final = ("failed", "stable", "unstable")
"""The results of calling a policy again, explained in ``gateway.serving.idempotency_check``."""

IDEMPOTENCY_CHECK_RESULTS: Final = ("dropped", *IDEMPOTENCY_RESULTS)
"""The results of an idempotency check."""

COMPARED: Final = ("different", "dropped", "failed", "same")
"""The results of comparing a policy with its shadow, explained in ``gateway.serving.shadow_comparison``."""


def _mutating(policy: Policy) -> bool:
    return policy.phase is Phase.MUTATING


def _cached(policy: Policy) -> bool:
    return policy.cache is not None


def _shadowed(policy: Policy) -> bool:
    return policy.shadow is not None


def _first_failures(policy: Policy | None) -> tuple[Reason, ...]:
    """The reasons that are worth an alert; their series start at 0. The others exist once they have occurred."""
    if policy is None or policy.phase is Phase.VALIDATING:
        return (Reason.WORKER_UNAVAILABLE,)
    return (Reason.WORKER_UNAVAILABLE, Reason.WRITE_SCOPE)


def _first_limits(policy: Policy | None) -> tuple[str, ...]:
    del policy
    return LIMITS


def _counter(
    name: str,
    text: str,
    *,
    of: Callable[[Policy], bool] = always,
    starts: Callable[[Policy | None], Iterable[str]] | None = None,
    **labels: Iterable[str] | None,
) -> Metric:
    return Metric(name=name, text=text, labels=labels, of=of, starts=starts)


def _gauge(name: str, text: str, *, combined: Combination = Combination.SUM, **labels: Iterable[str] | None) -> Metric:
    """A gauge. ``combined``: with several processes; most measure what each process has for itself."""
    return Metric(name=name, text=text, kind=Kind.GAUGE, labels=labels, combined=combined)


def _histogram(
    name: str, text: str, *, buckets: tuple[float, ...] = BUCKETS, lazy: bool = False, **labels: Iterable[str] | None
) -> Metric:
    return Metric(name=name, text=text, kind=Kind.HISTOGRAM, labels=labels, buckets=buckets, lazy=lazy)


def _of_process(kind: Kind, name: str, text: str, combined: Combination = Combination.SUM) -> Metric:
    return Metric(name=name, text=text, kind=kind, labels={}, lazy=True, prefixed=False, combined=combined)


# ------------------------------------------------------------------------------------------------------- reviews

REVIEWS: Final = _counter("reviews_total", "Reviews answered.", phase=Phase, outcome=ANSWERED)
REVIEW_SECONDS: Final = _histogram("review_duration_seconds", "From the request's head to its answer.", phase=Phase)
REVIEW_BUDGET_REMAINING: Final = _histogram(
    "review_budget_remaining_seconds",
    "Time that was left of a review's budget when it was decided.",
    buckets=REMAINING_BUCKETS,
    phase=Phase,
)
REVIEW_BUDGET_EXHAUSTED: Final = _counter(
    "review_budget_exhausted_total", "Reviews in which a policy failed with `BUDGET_EXHAUSTED`.", phase=Phase
)
ENTRY_REVIEWS: Final = _counter(
    "entry_reviews_total", "Reviews answered through an entry.", phase=Phase, entry=CONFIGURED, outcome=ANSWERED
)
OUTDATED_ENTRY_REVIEWS: Final = _counter(
    "outdated_entry_reviews_total",
    "Reviews that an outdated registration has sent to an entry: what `render` prints now is not applied.",
    phase=Phase,
    entry=CONFIGURED,
)
POLICY_VERDICTS: Final = _counter(
    "policy_verdicts_total", "What policies answered.", phase=Phase, policy=CONFIGURED, verdict=VERDICTS
)
POLICY_FAILURES: Final = _counter(
    "policy_failures_total",
    "Policies that failed.",
    phase=Phase,
    policy=CONFIGURED,
    reason=Reason,
    starts=_first_failures,
)
POLICY_CALL_SECONDS: Final = _histogram(
    "policy_call_duration_seconds",
    "From the call of a policy's worker to its answer, or to the end of its time. Not of calls that reach no worker.",
    buckets=POLICY_BUCKETS,
    lazy=True,
    phase=Phase,
    policy=CONFIGURED,
)
FAILED_OPEN: Final = _counter(
    "failed_open_total", "Failures ignored by failurePolicy Ignore.", phase=Phase, policy=CONFIGURED
)
POLICY_ANSWERS: Final = _counter(
    "policy_answers_total", "Answers of policies, by source.", phase=Phase, policy=CONFIGURED, source=Source
)
POLICY_CONFLICTS: Final = _counter(
    "policy_conflicts_total",
    "Writes to a field that another policy of the review had written.",
    phase=(Phase.MUTATING,),
    policy=CONFIGURED,
    of=_mutating,
)
PREFETCHES: Final = _counter(
    "policy_prefetches_total", "Calls of mutating policies before their turn.", result=PREFETCH_RESULTS
)
IDEMPOTENCY_CHECKS: Final = _counter(
    "idempotency_checks_total",
    "Mutations checked for idempotency by calling all their policies again.",
    result=IDEMPOTENCY_CHECK_RESULTS,
)
IDEMPOTENCY_CHECKED_POLICIES: Final = _counter(
    "idempotency_checked_policies_total",
    "Policies called again with their own result.",
    phase=(Phase.MUTATING,),
    policy=CONFIGURED,
    result=IDEMPOTENCY_RESULTS,
    of=_mutating,
)
SHADOW_COMPARISONS: Final = _counter(
    "shadow_comparisons_total",
    "Verdicts compared with those of shadows.",
    phase=Phase,
    policy=CONFIGURED,
    result=COMPARED,
    of=_shadowed,
)

# ----------------------------------------------------------------------------------------------------- the cache

CACHE_LOOKUPS: Final = _counter(
    "cache_lookups_total",
    "Lookups in the cache, for policies that have one.",
    phase=Phase,
    policy=CONFIGURED,
    result=LookupResult,
    of=_cached,
)
CACHE_EVENTS: Final = _counter("cache_events_total", "Events of the cache's entries.", event=CacheEvent)
CACHE_PURGED_POLICIES: Final = _counter(
    "cache_purged_policies_total", "Policies whose verdicts were purged, here or elsewhere."
)
CACHE_MEMORY_ENTRIES: Final = _gauge("cache_memory_entries", "Entries of the cache in this process.")
CACHE_MEMORY_BYTES: Final = _gauge("cache_memory_bytes", "Bytes of the cache in this process.")
CACHE_SEAL_FAILURES: Final = _counter(
    "cache_seal_failures_total",
    "Entries of Redis that cannot be opened with this gateway's keys: altered, moved or forged.",
)
CACHE_REDIS_ERRORS: Final = _counter("cache_redis_errors_total", "Errors of Redis, by reason.", reason=REDIS_ERRORS)
CACHE_REDIS_SKIPPED: Final = _gauge(
    "cache_redis_skipped", "Whether Redis is skipped after repeated errors.", combined=Combination.MAX
)

# --------------------------------------------------------------------------------------------------- the workers

WORKER_CALLS: Final = _counter(
    "worker_calls_total",
    "Calls of workers that have ended, also of shadows and idempotency checks; `failure` includes timeouts.",
    worker=CONFIGURED,
    transport=Transport,
    result=CALL_RESULTS,
)
WORKER_CALL_SECONDS: Final = _histogram(
    "worker_call_duration_seconds",
    "From a call to its answer, or to the end of its time; waiting and retries included. Not of calls that reach no "
    "worker.",
    worker=CONFIGURED,
    transport=Transport,
)
WORKER_CALLS_IN_FLIGHT: Final = _gauge(
    "worker_calls_in_flight", "Calls of a worker that are not answered yet.", worker=CONFIGURED, transport=Transport
)
WORKER_EVENTS: Final = _counter("worker_events_total", "Events of workers.", worker=CONFIGURED, event=WorkerEvent)
WORKER_CONNECTIONS: Final = _gauge(
    "worker_connections",
    "Connections to a worker that can be called: described, and serving; of a queue, its bridges.",
    worker=CONFIGURED,
)
QUEUE_LENGTH: Final = _gauge(
    "queue_length",
    "Calls in a worker's queue, of all gateways: waiting and in progress.",
    worker=CONFIGURED,
    combined=Combination.MAX,
)
QUEUE_OLDEST_SECONDS: Final = _gauge(
    "queue_oldest_seconds",
    "Age of the oldest call in a worker's queue that this process has seen.",
    worker=CONFIGURED,
    combined=Combination.MAX,
)
HOOK_PROCESSES: Final = _gauge("hook_processes", "Running processes of a hook.", worker=CONFIGURED)

# ------------------------------------------------------------------------------------- HTTP, and the configuration

HTTP_REQUESTS_REJECTED: Final = _counter(
    "http_requests_rejected_total", "Requests rejected without a review.", reason=REFUSALS
)
ADMIN_REQUESTS_REJECTED: Final = _counter(
    "admin_requests_rejected_total",
    "Requests to the admin listener that were refused, and connections that ended at one of its limits.",
    reason=REFUSALS,
)
LIMIT_HITS: Final = _counter(
    "limit_hits_total", "Times that a limit was reached.", limit=(*LIMITS, *LIMIT_OF.values()), starts=_first_limits
)
REVIEWS_CANCELED: Final = _counter(
    "reviews_canceled_total", "Reviews that the API server canceled: they have no answer.", phase=Phase
)
REVIEWS_IN_FLIGHT: Final = _gauge("reviews_in_flight", "Reviews being decided.")
REVIEWS_WAITING: Final = _gauge("reviews_waiting", "Reviews that wait to begin: there are more than can be judged.")
REVIEWS_IN_FLIGHT_LIMIT: Final = _gauge(
    "reviews_in_flight_limit", "Reviews that may be decided at once; others fail with `OVERLOADED`."
)
HEAVY_REVIEWS: Final = _counter(
    "heavy_reviews_total", "Reviews with more than 20,000 JSON values, which take turns to be read."
)
LONG_EVALUATIONS: Final = _counter(
    "long_evaluations_total", "Evaluations of matchConditions that took too long for the event loop: a thread did them."
)
BODY_BYTES_IN_FLIGHT: Final = _gauge("body_bytes_in_flight", "Bytes of the bodies of reviews being decided.")
BODY_BYTES_IN_FLIGHT_LIMIT: Final = _gauge(
    "body_bytes_in_flight_limit", "Bytes that these bodies may have; other requests are refused."
)
CONNECTIONS: Final = _gauge("connections", "TLS connections.")
RETAINED_DECISIONS: Final = _gauge("retained_decisions", "Decisions retained for /explain and the dashboard.")
RETAINED_DECISION_BYTES: Final = _gauge("retained_decision_bytes", "Their estimated bytes.")
RETAINED_DECISIONS_OLDEST: Final = _gauge(
    "retained_decisions_oldest_timestamp_seconds",
    "Unix time since which all refused and failed decisions are retained: how far back explain reaches.",
    combined=Combination.MAX,
)
REDUCED_DECISIONS: Final = _counter(
    "reduced_decisions_total", "Decisions that were too large to be retained with their objects."
)
CONNECTIONS_ENDED: Final = _counter(
    "connections_ended_total", "Connections that a reply with Connection: close ended.", reason=(DRAIN, MAX_AGE)
)
CERTIFICATE_EXPIRATION: Final = _gauge(
    "certificate_expiration_timestamp_seconds",
    "Unix time at which the TLS certificate of new connections expires.",
    combined=Combination.MIN,
)
CERTIFICATE_RELOADS: Final = _counter(
    "certificate_reloads_total", "Changes of the TLS certificate's files that were read.", result=("invalid", "loaded")
)
CREDENTIAL_RELOADS: Final = _counter(
    "credential_reloads_total",
    "Changes of the files with clients' credentials that were read.",
    result=("invalid", "loaded"),
)
CONFIGURATION_ERRORS: Final = _gauge(
    "configuration_errors", "Errors in the configuration that was read last.", combined=Combination.MAX
)
CONFIGURATION_RELOADS: Final = _counter(
    "configuration_reloads_total", "Changes of the configuration that were read.", result=RELOADS
)
LAST_RELOAD_SUCCESSFUL: Final = _gauge(
    "configuration_last_reload_successful",
    "Whether the configuration read last is served; 0: the last good configuration is served instead.",
    combined=Combination.MIN,
)
CONFIGURATION_LOADED: Final = _gauge(
    "configuration_loaded_timestamp_seconds",
    "Unix time at which the served configuration was read.",
    combined=Combination.MIN,
)

LOG_LINES_DROPPED: Final = _counter(
    "log_lines_dropped_total", "Log lines dropped because standard error was not read in time."
)

POLICIES: Final = _gauge(
    "policies", "Policies of the served configuration.", combined=Combination.MAX, phase=Phase, mode=Mode
)

DECISION_LOG: Final = "log"
RECORDINGS: Final = "recordings"

DECISIONS_DROPPED: Final = _counter(
    "decisions_dropped_total",
    "Decisions that were not written to the decision log, or not recorded.",
    output=(DECISION_LOG, RECORDINGS),
    reason=Drop,
)

SPAN_RESULTS: Final = ("dropped", "exported", "failed")
"""What becomes of a span, explained in ``gateway.telemetry.traces.export``."""

TRACE_SPANS: Final = _counter(
    "trace_spans_total",
    "Spans of traces: exported; lost because exporting them failed; dropped because the queue was full, or at a stop.",
    result=SPAN_RESULTS,
)

DEGRADED_POLICIES: Final = _gauge(
    "degraded_policies",
    "Policies that cannot be called as configured: their last good version is called, or they fail.",
    reason=UnavailableReason,
    effect=(FAILURE, LAST_GOOD),
    combined=Combination.MAX,
)

# --------------------------------------------------------------------------------------------------- the process

BUILD_INFO: Final = _gauge(
    "build_info",
    "1, with the versions of the gateway and of Python.",
    combined=Combination.MAX,
    version=CONFIGURED,
    python=CONFIGURED,
)
EVENT_LOOP_LAG: Final = _histogram(
    "event_loop_lag_seconds",
    "By how much a timer of the event loop is late, sampled 20 times a second: every review waits as long. A call that "
    "holds the loop for longer than 50 ms is seen.",
    buckets=LAG_BUCKETS,
)
PROCESS_CPU: Final = _of_process(Kind.COUNTER, "process_cpu_seconds_total", "User and system CPU time.")
PROCESS_RESIDENT_MEMORY: Final = _of_process(Kind.GAUGE, "process_resident_memory_bytes", "Resident memory.")
PROCESS_VIRTUAL_MEMORY: Final = _of_process(Kind.GAUGE, "process_virtual_memory_bytes", "Virtual memory.")
PROCESS_OPEN_FDS: Final = _of_process(Kind.GAUGE, "process_open_fds", "Open file descriptors.")
PROCESS_MAX_FDS: Final = _of_process(Kind.GAUGE, "process_max_fds", "File descriptors that may be open.")
PROCESS_START_TIME: Final = _of_process(
    Kind.GAUGE, "process_start_time_seconds", "Unix time at which the process started.", Combination.MIN
)

PROCESS: Final = (
    BUILD_INFO,
    EVENT_LOOP_LAG,
    PROCESS_CPU,
    PROCESS_RESIDENT_MEMORY,
    PROCESS_VIRTUAL_MEMORY,
    PROCESS_OPEN_FDS,
    PROCESS_MAX_FDS,
    PROCESS_START_TIME,
)
"""Of every process."""

DASHBOARD_CLOSED: Final = "closed"
DASHBOARD_LIMIT: Final = "limit"
DASHBOARD_SLOW: Final = "slow"
DASHBOARD_STOPPED: Final = "stopped"
"""Why a live stream of the dashboard ended, or was refused: the browser closed it, too many are open, the browser did
not read it, the gateway stops."""

DASHBOARD_STREAMS: Final = _gauge("dashboard_streams", "Browsers that receive the dashboard's live stream.")
DASHBOARD_STREAMS_ENDED: Final = _counter(
    "dashboard_streams_ended_total",
    "Live streams of the dashboard that ended, or were refused.",
    reason=(DASHBOARD_CLOSED, DASHBOARD_LIMIT, DASHBOARD_SLOW, DASHBOARD_STOPPED),
)

# ---------------------------------------------------------------------------------------------- who has which

GATEWAY: Final = (
    REVIEWS,
    REVIEW_SECONDS,
    REVIEW_BUDGET_REMAINING,
    REVIEW_BUDGET_EXHAUSTED,
    ENTRY_REVIEWS,
    OUTDATED_ENTRY_REVIEWS,
    POLICY_VERDICTS,
    POLICY_FAILURES,
    POLICY_CALL_SECONDS,
    FAILED_OPEN,
    POLICY_ANSWERS,
    POLICY_CONFLICTS,
    PREFETCHES,
    IDEMPOTENCY_CHECKS,
    IDEMPOTENCY_CHECKED_POLICIES,
    SHADOW_COMPARISONS,
    CACHE_LOOKUPS,
    CACHE_EVENTS,
    CACHE_PURGED_POLICIES,
    CACHE_MEMORY_ENTRIES,
    CACHE_MEMORY_BYTES,
    WORKER_CALLS,
    WORKER_CALL_SECONDS,
    WORKER_CALLS_IN_FLIGHT,
    WORKER_EVENTS,
    WORKER_CONNECTIONS,
    QUEUE_LENGTH,
    QUEUE_OLDEST_SECONDS,
    HOOK_PROCESSES,
    HTTP_REQUESTS_REJECTED,
    ADMIN_REQUESTS_REJECTED,
    LIMIT_HITS,
    REVIEWS_CANCELED,
    REVIEWS_IN_FLIGHT,
    REVIEWS_WAITING,
    REVIEWS_IN_FLIGHT_LIMIT,
    HEAVY_REVIEWS,
    LONG_EVALUATIONS,
    BODY_BYTES_IN_FLIGHT,
    BODY_BYTES_IN_FLIGHT_LIMIT,
    CONNECTIONS,
    RETAINED_DECISIONS,
    RETAINED_DECISION_BYTES,
    RETAINED_DECISIONS_OLDEST,
    REDUCED_DECISIONS,
    CONNECTIONS_ENDED,
    CERTIFICATE_EXPIRATION,
    CERTIFICATE_RELOADS,
    CREDENTIAL_RELOADS,
    CONFIGURATION_ERRORS,
    CONFIGURATION_RELOADS,
    LAST_RELOAD_SUCCESSFUL,
    CONFIGURATION_LOADED,
    POLICIES,
    DEGRADED_POLICIES,
    LOG_LINES_DROPPED,
    DECISIONS_DROPPED,
    TRACE_SPANS,
    *PROCESS,
    DASHBOARD_STREAMS,
    DASHBOARD_STREAMS_ENDED,
)
"""Of a gateway."""

CLUSTER_LOOKUPS: Final = _counter(
    "cluster_lookups_total",
    "Lookups in the Kubernetes API during reviews.",
    kind=("authorization", "namespace"),
    result=("failed", "found", "limited"),
)
CLUSTER_WATCH_OPEN: Final = _gauge(
    "cluster_watch_open",
    "Whether all watches of the Kubernetes API are open: what is known is up to date.",
    combined=Combination.MIN,
)

REGISTRATION_STATE: Final = _gauge(
    "registration_state",
    "1 for the state of the registration, as this replica sees it.",
    state=RegistrationState,
    combined=Combination.MAX,
)

CLUSTER: Final = (CLUSTER_LOOKUPS, CLUSTER_WATCH_OPEN, REGISTRATION_STATE)
"""Of a gateway with ``--cluster``."""

WEBHOOK_PROBE_SUCCESS: Final = _gauge(
    "webhook_probe_success",
    "Whether the API server can call this gateway's Service, by the last probe with the registered caBundles.",
    combined=Combination.MIN,
)
WEBHOOK_CERTIFICATE_EXPIRATION: Final = Metric(
    name="webhook_certificate_expiration_timestamp_seconds",
    text="Unix time at which the certificate that the Service shows expires, and the registered CA that issued it.",
    kind=Kind.GAUGE,
    combined=Combination.MIN,
    labels={"role": ("ca", "leaf")},
    starts=lambda _policy: (),
)

WEBHOOK_PROBE: Final = (WEBHOOK_PROBE_SUCCESS, WEBHOOK_CERTIFICATE_EXPIRATION)
"""Of one that probes its Service: with ``--cluster`` and ``--service``."""

REDIS: Final = (CACHE_SEAL_FAILURES, CACHE_REDIS_ERRORS, CACHE_REDIS_SKIPPED)
"""Of one that shares verdicts through Redis."""

PROCESSES_SERVING: Final = _gauge("processes_serving", "Processes of this gateway that serve, of `--processes`.")
PROCESS_RESTARTS: Final = _counter(
    "process_restarts_total", "Processes of this gateway that have ended and were started again."
)
PROCESSES: Final = (PROCESSES_SERVING, PROCESS_RESTARTS)
"""Of one with several processes."""

BRIDGE_PREFIX: Final = f"{PREFIX}bridge_"

BRIDGE_EVENTS: Final = _counter("events_total", "Events of the queue's entries, and of Redis.", event=ConsumerEvent)
BRIDGE_CALLS_IN_FLIGHT: Final = _gauge("calls_in_flight", "Calls at the worker, and answers not yet written.")
BRIDGE_CONSUMING: Final = _gauge("consuming", "Whether calls are taken from the queue.")

BRIDGE: Final = (
    BRIDGE_EVENTS,
    WORKER_CALLS,
    WORKER_CALL_SECONDS,
    WORKER_CALLS_IN_FLIGHT,
    WORKER_EVENTS,
    WORKER_CONNECTIONS,
    BRIDGE_CALLS_IN_FLIGHT,
    BRIDGE_CONSUMING,
    LOG_LINES_DROPPED,
    TRACE_SPANS,
    ADMIN_REQUESTS_REJECTED,
    *PROCESS,
)
"""Of a bridge, which is a process of its own: under BRIDGE_PREFIX, and without the label ``worker``, of which it has
one."""

HOOK_WORKER_PREFIX: Final = f"{PREFIX}hook_worker_"

RUN_RESULTS: Final = ("ended", "killed", "rejected")
"""How a run ended: by itself; stopped, because of its time, its output or its call; not begun, too many wait."""

HOOK_RUNS: Final = _counter("runs_total", "Runs of a hook, by how they ended.", hook=CONFIGURED, result=RUN_RESULTS)
SNAPSHOT_COMPLETE: Final = _gauge(
    "snapshot_complete",
    "Whether calls can use a snapshot: its objects are listed, and may be watched.",
    hook=CONFIGURED,
    binding=CONFIGURED,
)
SNAPSHOT_WATCHED: Final = _gauge(
    "snapshot_watched",
    "Whether all watches of a snapshot are open: it is up to date.",
    hook=CONFIGURED,
    binding=CONFIGURED,
)
SNAPSHOT_OBJECTS: Final = _gauge("snapshot_objects", "Objects in a snapshot.", hook=CONFIGURED, binding=CONFIGURED)
SNAPSHOT_BYTES: Final = _gauge("snapshot_bytes", "Bytes of a snapshot.", hook=CONFIGURED, binding=CONFIGURED)

HOOK_WORKER: Final = (
    HOOK_RUNS,
    SNAPSHOT_COMPLETE,
    SNAPSHOT_WATCHED,
    SNAPSHOT_OBJECTS,
    SNAPSHOT_BYTES,
    TRACE_SPANS,
    ADMIN_REQUESTS_REJECTED,
    *PROCESS,
)
"""Of a ``hook-worker``: under HOOK_WORKER_PREFIX. Those of snapshots exist in a cluster."""
