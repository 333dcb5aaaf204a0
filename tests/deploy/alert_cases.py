"""For each alert, series that make it fire and series that almost do, as ``promtool test rules`` reads them."""

from dataclasses import dataclass, field

from gateway.telemetry.table import (
    BRIDGE_CONSUMING,
    BRIDGE_EVENTS,
    BRIDGE_PREFIX,
    CACHE_REDIS_ERRORS,
    CACHE_REDIS_SKIPPED,
    CACHE_SEAL_FAILURES,
    CERTIFICATE_EXPIRATION,
    CLUSTER_WATCH_OPEN,
    CONFIGURATION_ERRORS,
    CONFIGURATION_LOADED,
    DECISIONS_DROPPED,
    DEGRADED_POLICIES,
    FAILED_OPEN,
    HOOK_RUNS,
    HOOK_WORKER_PREFIX,
    HTTP_REQUESTS_REJECTED,
    IDEMPOTENCY_CHECKED_POLICIES,
    IDEMPOTENCY_CHECKS,
    LAST_RELOAD_SUCCESSFUL,
    LIMIT_HITS,
    LOG_LINES_DROPPED,
    OUTDATED_ENTRY_REVIEWS,
    POLICY_ANSWERS,
    POLICY_CONFLICTS,
    POLICY_FAILURES,
    PREFIX,
    PROCESS_RESTARTS,
    QUEUE_LENGTH,
    QUEUE_OLDEST_SECONDS,
    REGISTRATION_STATE,
    REVIEWS,
    REVIEWS_CANCELED,
    SNAPSHOT_WATCHED,
    TRACE_SPANS,
    WEBHOOK_CERTIFICATE_EXPIRATION,
    WEBHOOK_PROBE_SUCCESS,
    WORKER_CONNECTIONS,
    WORKER_EVENTS,
)

ONE = {"job": "gateway", "instance": "one"}
TWO = {"job": "gateway", "instance": "two"}
"""Two replicas of a gateway."""

POLICY = {"phase": "mutating", "policy": "team-a/labels"}
ABOUT = {"job": "gateway", "policy": "team-a/labels"}
WORKER = {"job": "gateway", "worker": "labels"}

DAY = 86_400
UP = "0+1x120"
"""A counter that grows by one each minute, for two hours."""
STEP = "0x10 1x110"
"""A counter that grew once, after ten minutes."""
NEVER = "0x120"
ALWAYS = "1x120"


def series(metric, values, *, of=ONE, prefix=PREFIX, suffix="", **labels):
    """A series of the table, with its values one minute apart."""
    assert labels.keys() == metric.labels.keys() - ({"worker"} if prefix == BRIDGE_PREFIX else set())
    inside = ",".join(f'{name}="{value}"' for name, value in sorted((labels | of).items()))
    return f"{prefix}{metric.name}{suffix}{{{inside}}}", values


@dataclass(frozen=True, kw_only=True)
class Case:
    """An alert that fires after ``minutes`` of ``fires``, with these labels besides its own, and not of ``silent``.

    It also fires of each series of ``alone``.
    """

    fires: list[tuple[str, str]]
    alone: list[tuple[str, str]] = field(default_factory=list)
    silent: list[tuple[str, str]]
    labels: dict[str, str] = field(default_factory=lambda: {"job": "gateway"})
    minutes: int = 60
    value: str = ""


def _rejected(reason, values):
    return series(HTTP_REQUESTS_REJECTED, values, reason=reason)


def _reviews(values):
    return series(REVIEWS, values, phase="mutating", outcome="allowed")


def _degraded(effect, values):
    return series(DEGRADED_POLICIES, values, reason="undescribed", effect=effect)


def _event(name, values):
    return series(WORKER_EVENTS, values, worker="labels", event=name)


def _bridge(event, values):
    return series(BRIDGE_EVENTS, values, prefix=BRIDGE_PREFIX, event=event)


def _run(result, values):
    return series(HOOK_RUNS, values, prefix=HOOK_WORKER_PREFIX, hook="pods.sh", result=result)


def _spans(result, values, prefix):
    return series(TRACE_SPANS, values, prefix=prefix, result=result)


def _bool(metric, *, bad="0", **labels):
    """A gauge of each of two replicas; that of the second turns bad."""
    good = "1" if bad == "0" else "0"
    both = [series(metric, f"{good}x120", **labels)]
    return {
        "fires": [*both, series(metric, f"{good}x5 {bad}x115", of=TWO, **labels)],
        "silent": [*both, series(metric, f"{good}x120", of=TWO, **labels)],
    }


CASES = {
    "AdmissionGatewayAbsent": Case(fires=[], silent=[series(CONFIGURATION_LOADED, ALWAYS)], labels={}),
    "AdmissionWebhookPathBroken": Case(**_bool(WEBHOOK_PROBE_SUCCESS)),
    "AdmissionCallersRejected": Case(
        fires=[_rejected("unauthenticated", "0+2x120"), _reviews(UP)],
        silent=[_rejected("unauthenticated", UP), _reviews("0+2x120")],
    ),
    "AdmissionPoliciesUnavailable": Case(
        fires=[_degraded("failure", ALWAYS)],
        silent=[_degraded("failure", "0x58 1x60"), _degraded("last_good", ALWAYS)],
        labels={"job": "gateway", "reason": "undescribed"},
        minutes=59,
    ),
    "AdmissionPoliciesOutdated": Case(
        fires=[_degraded("last_good", ALWAYS)],
        silent=[_degraded("last_good", NEVER), _degraded("failure", ALWAYS)],
        labels={"job": "gateway", "reason": "undescribed"},
    ),
    "AdmissionPoliciesFailOpen": Case(
        fires=[series(FAILED_OPEN, UP, **POLICY)], silent=[series(FAILED_OPEN, STEP, **POLICY)], labels=ABOUT
    ),
    "AdmissionVerdictsStale": Case(
        fires=[series(POLICY_ANSWERS, UP, source="stale", **POLICY)],
        silent=[series(POLICY_ANSWERS, UP, source="called", **POLICY)],
        labels=ABOUT,
    ),
    "AdmissionPolicyOutOfScope": Case(
        fires=[series(POLICY_FAILURES, STEP, reason="WRITE_SCOPE", **POLICY)],
        silent=[series(POLICY_FAILURES, STEP, reason="WORKER_FAILURE", **POLICY)],
        labels=ABOUT,
        minutes=15,
    ),
    "AdmissionPoliciesInConflict": Case(
        fires=[series(POLICY_CONFLICTS, STEP, **POLICY)],
        silent=[series(POLICY_CONFLICTS, NEVER, **POLICY)],
        labels=ABOUT,
    ),
    "AdmissionPolicyNotIdempotent": Case(
        fires=[series(IDEMPOTENCY_CHECKED_POLICIES, STEP, result="unstable", **POLICY)],
        silent=[series(IDEMPOTENCY_CHECKED_POLICIES, UP, result="stable", **POLICY)],
        labels=ABOUT,
    ),
    "AdmissionMutationsNotIdempotent": Case(
        fires=[series(IDEMPOTENCY_CHECKS, STEP, result="unstable")],
        silent=[series(IDEMPOTENCY_CHECKS, UP, result="stable")],
    ),
    "AdmissionReviewsCanceled": Case(
        fires=[series(REVIEWS_CANCELED, UP, phase="mutating")],
        silent=[series(REVIEWS_CANCELED, STEP, phase="mutating")],
        labels={"job": "gateway", "phase": "mutating"},
    ),
    "AdmissionLimitHit": Case(
        fires=[series(LIMIT_HITS, UP, limit="reviews_in_flight")],
        silent=[series(LIMIT_HITS, UP, limit="header_seconds")],
        labels={"job": "gateway", "limit": "reviews_in_flight"},
    ),
    "AdmissionLogLinesLost": Case(fires=[series(LOG_LINES_DROPPED, UP)], silent=[series(LOG_LINES_DROPPED, NEVER)]),
    "AdmissionDecisionsDropped": Case(
        fires=[series(DECISIONS_DROPPED, UP, output="log", reason="full")],
        silent=[series(DECISIONS_DROPPED, UP, output="log", reason="shutdown")],
        labels={"job": "gateway", "output": "log", "reason": "full"},
    ),
    "AdmissionSpansLost": Case(
        fires=[_spans("failed", UP, PREFIX)],
        alone=[_spans("failed", UP, BRIDGE_PREFIX), _spans("failed", UP, HOOK_WORKER_PREFIX)],
        silent=[
            _spans(result, values, prefix)
            for prefix in (PREFIX, BRIDGE_PREFIX, HOOK_WORKER_PREFIX)
            for result, values in (("exported", UP), ("failed", NEVER))
        ],
        labels={"job": "gateway", "result": "failed"},
    ),
    "AdmissionTlsHandshakesFail": Case(fires=[_rejected("tls", UP)], silent=[_rejected("hangup", UP)]),
    "AdmissionProcessesRestart": Case(fires=[series(PROCESS_RESTARTS, UP)], silent=[series(PROCESS_RESTARTS, NEVER)]),
    "AdmissionGatewayInternalError": Case(
        fires=[_rejected("internal", UP), series(POLICY_FAILURES, NEVER, reason="INTERNAL", **POLICY)],
        silent=[_rejected("internal", NEVER), series(POLICY_FAILURES, UP, reason="WORKER_FAILURE", **POLICY)],
    ),
    "AdmissionWorkerAway": Case(**_bool(WORKER_CONNECTIONS, worker="labels"), labels=WORKER),
    "AdmissionQueueSlow": Case(
        fires=[series(QUEUE_LENGTH, "6000x120", worker="labels")],
        silent=[
            series(QUEUE_LENGTH, "4000x120", worker="labels"),
            series(QUEUE_OLDEST_SECONDS, "4x120", worker="labels"),
        ],
        labels=WORKER,
    ),
    "AdmissionQueueUnreadable": Case(
        fires=[_event("unreadable", UP)], silent=[_event("unreadable", NEVER), _event("expired", UP)], labels=WORKER
    ),
    "AdmissionBridgeNotConsuming": Case(
        fires=[series(BRIDGE_CONSUMING, NEVER, prefix=BRIDGE_PREFIX)],
        silent=[series(BRIDGE_CONSUMING, ALWAYS, prefix=BRIDGE_PREFIX)],
        labels=ONE,
    ),
    "AdmissionBridgeDropsCalls": Case(
        fires=[_bridge("poison", UP)],
        silent=[_bridge("taken", UP), _bridge("late", NEVER)],
        labels={"job": "gateway", "event": "poison"},
    ),
    "AdmissionHooksKilledOrRefused": Case(
        fires=[_event("hook_killed", UP)],
        silent=[_event("hook_killed", NEVER), _event("hook_run", UP)],
        labels={**WORKER, "event": "hook_killed"},
    ),
    "AdmissionHookRunsFail": Case(
        fires=[_run("killed", UP)],
        silent=[_run("killed", NEVER), _run("ended", UP)],
        labels={"job": "gateway", "hook": "pods.sh", "result": "killed"},
    ),
    "AdmissionHookSnapshotsOutdated": Case(
        **_bool(SNAPSHOT_WATCHED, prefix=HOOK_WORKER_PREFIX, hook="pods.sh", binding="pods"),
        labels={"job": "gateway", "hook": "pods.sh", "binding": "pods"},
    ),
    "AdmissionRedisSkipped": Case(**_bool(CACHE_REDIS_SKIPPED, bad="1")),
    "AdmissionRedisRefuses": Case(
        fires=[series(CACHE_REDIS_ERRORS, UP, reason="response")],
        silent=[series(CACHE_REDIS_ERRORS, UP, reason="timeout")],
        labels={"job": "gateway", "reason": "response"},
    ),
    "AdmissionCacheSealsBroken": Case(
        fires=[series(CACHE_SEAL_FAILURES, UP)], silent=[series(CACHE_SEAL_FAILURES, NEVER)]
    ),
    "AdmissionConfigurationErrors": Case(**_bool(CONFIGURATION_ERRORS, bad="3")),
    "AdmissionConfigurationNotLoaded": Case(**_bool(LAST_RELOAD_SUCCESSFUL)),
    "AdmissionRegistrationOutdated": Case(
        fires=[series(OUTDATED_ENTRY_REVIEWS, UP, phase="mutating", entry="chain.one"), _rejected("path", NEVER)],
        silent=[_rejected("path", STEP), _rejected("method", UP)],
    ),
    "AdmissionRegistrationNotKept": Case(
        fires=[series(REGISTRATION_STATE, ALWAYS, state="refused")],
        silent=[
            series(REGISTRATION_STATE, NEVER, state="refused"),
            series(REGISTRATION_STATE, ALWAYS, state="standby"),
        ],
        labels={"job": "gateway", "state": "refused"},
    ),
    "AdmissionRegistrationSuspended": Case(
        fires=[series(REGISTRATION_STATE, ALWAYS, state="suspended")],
        silent=[series(REGISTRATION_STATE, "0x60 1x60", state="suspended")],
        minutes=90,
    ),
    "AdmissionClusterWatchClosed": Case(**_bool(CLUSTER_WATCH_OPEN)),
    "AdmissionCertificateExpires": Case(
        fires=[series(CERTIFICATE_EXPIRATION, f"{6 * DAY + 3600}x120")],
        silent=[series(CERTIFICATE_EXPIRATION, f"{8 * DAY}x120")],
        value="6d 0h 0m 0s",
    ),
    "AdmissionWebhookTrustExpires": Case(
        fires=[series(WEBHOOK_CERTIFICATE_EXPIRATION, f"{20 * DAY + 3600}x120", role="ca")],
        silent=[series(WEBHOOK_CERTIFICATE_EXPIRATION, f"{22 * DAY}x120", role="ca")],
        labels={"job": "gateway", "role": "ca"},
        value="20d 0h 0m 0s",
    ),
}
"""All alerts but those on objectives."""
