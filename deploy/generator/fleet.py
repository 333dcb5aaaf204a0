"""The dashboard of all replicas: what users get, which policies and workers are behind it, and what ends soon."""

from typing import Final

from deploy.generator.grafana import Dashboard, Row
from deploy.generator.panels import Panel, durations, graph, heat_map, stat, table
from deploy.generator.promql import gauge, increase, quantile, rate, share
from deploy.generator.replicas import REPLICAS
from gateway.telemetry.table import (
    BODY_BYTES_IN_FLIGHT,
    BODY_BYTES_IN_FLIGHT_LIMIT,
    BUILD_INFO,
    CACHE_LOOKUPS,
    CACHE_REDIS_ERRORS,
    CERTIFICATE_EXPIRATION,
    DEGRADED_POLICIES,
    FAILED_OPEN,
    HTTP_REQUESTS_REJECTED,
    LIMIT_HITS,
    POLICY_CALL_SECONDS,
    POLICY_FAILURES,
    POLICY_VERDICTS,
    REVIEW_BUDGET_EXHAUSTED,
    REVIEW_SECONDS,
    REVIEWS,
    REVIEWS_CANCELED,
    REVIEWS_IN_FLIGHT,
    REVIEWS_IN_FLIGHT_LIMIT,
    WORKER_CALL_SECONDS,
    WORKER_CALLS,
    WORKER_CONNECTIONS,
)

_DAY: Final = 86_400
_BURN: Final = ((None, "green"), (1, "yellow"), (6, "red"))
_NONE: Final = ((None, "green"), (1, "red"))
_ALL: Final = ((None, "red"), (1, "green"))


def _burn(recorded: str, objective: str) -> str:
    """How fast an objective is spent, by what the rules for Prometheus record."""
    allowed = f'(1 - scalar(max(admission_gateway:objective_ratio{{objective="{objective}"}})))'
    return f'max({recorded}_rate1h{{job=~"$job"}}) / {allowed}'


def _burning(title: str, recorded: str, objective: str, text: str) -> Panel:
    said = f"{text} 1 is just what the objective allows in a month. Recorded by the rules for Prometheus."
    return stat(title, "none", _burn(recorded, objective), _BURN, said)


_NOW: Final = [
    stat(
        "Replicas",
        "short",
        gauge(BUILD_INFO, how="count"),
        ((None, "red"), (1, "yellow"), (2, "green")),
        "Replicas that Prometheus scrapes.",
    ),
    _burning(
        "Availability: burn rate",
        "job_phase:admission_gateway_reviews:failed_ratio",
        "availability",
        "How fast reviews are refused because a policy failed, in the last hour.",
    ),
    _burning(
        "Latency: burn rate",
        "job_phase:admission_gateway_review_duration_seconds:slow_ratio",
        "latency",
        "How fast reviews take longer than the objective, in the last hour.",
    ),
    stat(
        "Failed open",
        "short",
        increase(FAILED_OPEN),
        _NONE,
        "Failures that failurePolicy Ignore let pass: not enforced.",
    ),
    stat(
        "Policies not in force",
        "short",
        f"max({gauge(DEGRADED_POLICIES, 'instance')})",
        _NONE,
        "Policies that fail each request, or run in their last good version: /readyz?verbose says why.",
    ),
    stat(
        "Certificate ends in",
        "s",
        f"{gauge(CERTIFICATE_EXPIRATION, how='min')} - time()",
        ((None, "red"), (7 * _DAY, "yellow"), (21 * _DAY, "green")),
        "From its end on kube-apiserver refuses every connection.",
    ),
]

_REVIEWS: Final = [
    graph(
        "Reviews",
        "reqps",
        {"{{phase}} {{outcome}}": rate(REVIEWS, "phase", "outcome")},
        "Reviews decided: allowed, denied by a worker, or failed because a policy under Fail failed.",
        stacked=True,
    ),
    durations("Time of a review", "From the request's head to its answer. Points are traces.", REVIEW_SECONDS, "phase"),
    heat_map("Times of reviews", "How many reviews took how long. Points are traces.", REVIEW_SECONDS),
    graph(
        "Not decided",
        "reqps",
        {
            "canceled {{phase}}": rate(REVIEWS_CANCELED, "phase"),
            "out of time {{phase}}": rate(REVIEW_BUDGET_EXHAUSTED, "phase"),
            "rejected {{reason}}": rate(HTTP_REQUESTS_REJECTED, "reason") + " > 0",
        },
        "Reviews that the API server gave up or that ran out of its time, and requests rejected without a review.",
    ),
    graph(
        "In flight",
        "percentunit",
        {
            "reviews": f"{gauge(REVIEWS_IN_FLIGHT)} / {gauge(REVIEWS_IN_FLIGHT_LIMIT)}",
            "bytes of bodies": f"{gauge(BODY_BYTES_IN_FLIGHT)} / {gauge(BODY_BYTES_IN_FLIGHT_LIMIT)}",
        },
        "What is being decided, of what may be. At 100 % reviews are refused with OVERLOADED, or 429.",
    ),
    graph(
        "Limits reached",
        "ops",
        {"{{limit}}": rate(LIMIT_HITS, "limit") + " > 0"},
        "Each limit: docs/reference/limits.md.",
    ),
]

_POLICIES: Final = [
    table(
        "Policies",
        "policy",
        {
            "verdicts": ("reqps", rate(POLICY_VERDICTS, "policy")),
            "denied": ("percentunit", share(POLICY_VERDICTS, "policy", verdict="deny")),
            "failed": ("percentunit", share(POLICY_VERDICTS, "policy", verdict="failure")),
            "p99 of a call": ("s", quantile(0.99, POLICY_CALL_SECONDS, "policy")),
        },
        "Each policy of the configuration; its name leads to its dashboard.",
    ),
    graph(
        "Denials",
        "reqps",
        {"{{policy}}": f"topk(10, {rate(POLICY_VERDICTS, 'policy', verdict='deny')} > 0)"},
        "The ten policies that deny most, those in mode warn or audit included.",
        link="policy",
    ),
    graph(
        "Failures",
        "reqps",
        {"{{policy}} {{reason}}": f"topk(10, {rate(POLICY_FAILURES, 'policy', 'reason')} > 0)"},
        "The ten most frequent failures by policy and reason code.",
        link="policy",
    ),
    graph(
        "Failed open",
        "reqps",
        {"{{policy}}": rate(FAILED_OPEN, "policy") + " > 0"},
        "Failures that failurePolicy Ignore let pass: not enforced.",
        link="policy",
    ),
]

_WORKERS: Final = [
    table(
        "Workers",
        "worker",
        {
            "connections": ("short", gauge(WORKER_CONNECTIONS, "worker")),
            "calls": ("reqps", rate(WORKER_CALLS, "worker")),
            "failed": ("percentunit", share(WORKER_CALLS, "worker", result="failure")),
            "p99 of a call": ("s", quantile(0.99, WORKER_CALL_SECONDS, "worker")),
        },
        "Each worker of the configuration; its name leads to its dashboard.",
    ),
    graph(
        "Hits of the cache",
        "percentunit",
        {"hits": share(CACHE_LOOKUPS, result="memory|redis|shared")},
        "Share of the lookups that saved a call, of policies with a cache.",
    ),
    graph(
        "Cache and Redis",
        "ops",
        {"Redis {{reason}}": rate(CACHE_REDIS_ERRORS, "reason"), "{{result}}": rate(CACHE_LOOKUPS, "result")},
        "Lookups by result, and errors of Redis.",
    ),
]

FLEET: Final = Dashboard(
    subject="fleet",
    title="Admission gateway: fleet",
    text="What users get of all replicas, and which policies and workers are behind it.",
    rows=[
        Row(title="Now", panels=_NOW),
        Row(title="Reviews", panels=_REVIEWS),
        Row(title="Policies", panels=_POLICIES),
        Row(title="Workers and cache", panels=_WORKERS),
        REPLICAS,
    ],
)
