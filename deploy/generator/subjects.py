"""The dashboards of one policy and of one worker."""

from typing import Final

from deploy.generator.grafana import Dashboard, Row
from deploy.generator.panels import durations, graph, heat_map, stat
from deploy.generator.promql import gauge, increase, rate, share
from gateway.telemetry.table import (
    CACHE_LOOKUPS,
    FAILED_OPEN,
    HOOK_PROCESSES,
    IDEMPOTENCY_CHECKED_POLICIES,
    POLICY_ANSWERS,
    POLICY_CALL_SECONDS,
    POLICY_CONFLICTS,
    POLICY_FAILURES,
    POLICY_VERDICTS,
    QUEUE_LENGTH,
    QUEUE_OLDEST_SECONDS,
    SHADOW_COMPARISONS,
    WORKER_CALL_SECONDS,
    WORKER_CALLS,
    WORKER_CALLS_IN_FLIGHT,
    WORKER_CONNECTIONS,
    WORKER_EVENTS,
)

_NONE: Final = ((None, "green"), (1, "red"))
_SHARE: Final = ((None, "green"), (0.01, "yellow"), (0.1, "red"))
_INFO: Final = ((None, "blue"),)

POLICY: Final = Dashboard(
    subject="policy",
    title="Admission gateway: policy",
    text="One policy: what it decides, how long its worker takes, and why it fails.",
    variable=POLICY_VERDICTS,
    rows=[
        Row(
            title="Now",
            panels=[
                stat(
                    "Verdicts", "reqps", rate(POLICY_VERDICTS, policy="$policy"), _INFO, "Turns of the policy.", width=6
                ),
                stat(
                    "Denied",
                    "percentunit",
                    share(POLICY_VERDICTS, policy="$policy", verdict="deny"),
                    _INFO,
                    "Share of the verdicts; in mode warn or audit, of what it would deny.",
                    width=6,
                ),
                stat(
                    "Failed",
                    "percentunit",
                    share(POLICY_VERDICTS, policy="$policy", verdict="failure"),
                    _SHARE,
                    "Share of the turns without a verdict; failurePolicy decides them.",
                    width=6,
                ),
                stat(
                    "Failed open",
                    "short",
                    increase(FAILED_OPEN, policy="$policy"),
                    _NONE,
                    "Let pass by Ignore.",
                    width=6,
                ),
            ],
        ),
        Row(
            title="Verdicts",
            panels=[
                graph(
                    "Verdicts",
                    "reqps",
                    {"{{phase}} {{verdict}}": rate(POLICY_VERDICTS, "phase", "verdict", policy="$policy")},
                    "What it answers.",
                    stacked=True,
                ),
                graph(
                    "Failures",
                    "reqps",
                    {"{{reason}}": rate(POLICY_FAILURES, "reason", policy="$policy")},
                    "By reason code: docs/denied.md says what each means.",
                    stacked=True,
                ),
                graph(
                    "Where answers come from",
                    "reqps",
                    {"{{source}}": rate(POLICY_ANSWERS, "source", policy="$policy")},
                    "A call, this review's memo, a cache, or none: the failure was known without a call.",
                    stacked=True,
                ),
            ],
        ),
        Row(
            title="Calls",
            panels=[
                durations(
                    "Time of a call",
                    "Until the worker has answered, or its time is over. Points are traces.",
                    POLICY_CALL_SECONDS,
                    "phase",
                    policy="$policy",
                ),
                heat_map(
                    "Times of calls",
                    "How many calls took how long. Points are traces.",
                    POLICY_CALL_SECONDS,
                    policy="$policy",
                ),
                graph(
                    "Lookups in the cache",
                    "reqps",
                    {"{{result}}": rate(CACHE_LOOKUPS, "result", policy="$policy")},
                    "Of a policy with a cache: memory, redis and shared saved a call.",
                    stacked=True,
                ),
            ],
        ),
        Row(
            title="Beside others",
            panels=[
                graph(
                    "Conflicts",
                    "ops",
                    {"conflicts": rate(POLICY_CONFLICTS, policy="$policy")},
                    "Writes to a field that another policy of the review had written.",
                ),
                graph(
                    "Idempotency",
                    "ops",
                    {"{{result}}": rate(IDEMPOTENCY_CHECKED_POLICIES, "result", policy="$policy")},
                    "Called again with its own result: unstable changes it once more.",
                ),
                graph(
                    "Shadow",
                    "ops",
                    {"{{result}}": rate(SHADOW_COMPARISONS, "result", policy="$policy")},
                    "Its verdicts compared with those of its shadow.",
                ),
            ],
        ),
    ],
)

WORKER: Final = Dashboard(
    subject="worker",
    title="Admission gateway: worker",
    text="One worker: how it is reached, how many calls it gets, how long they take, and what fails.",
    variable=WORKER_CONNECTIONS,
    rows=[
        Row(
            title="Now",
            panels=[
                stat(
                    "Connections, least",
                    "short",
                    gauge(WORKER_CONNECTIONS, how="min", worker="$worker"),
                    ((None, "red"), (1, "green")),
                    "Of the replica that has the fewest; at 0 its policies fail there.",
                    width=6,
                ),
                stat("Calls", "reqps", rate(WORKER_CALLS, worker="$worker"), _INFO, "Calls that have ended.", width=6),
                stat(
                    "Failed",
                    "percentunit",
                    share(WORKER_CALLS, worker="$worker", result="failure"),
                    _SHARE,
                    "Share of the calls without a verdict, timeouts included.",
                    width=6,
                ),
                stat(
                    "In flight", "short", gauge(WORKER_CALLS_IN_FLIGHT, worker="$worker"), _INFO, "Open calls.", width=6
                ),
            ],
        ),
        Row(
            title="Calls",
            panels=[
                graph(
                    "Calls",
                    "reqps",
                    {"{{transport}} {{result}}": rate(WORKER_CALLS, "transport", "result", worker="$worker")},
                    "By how they ended.",
                    stacked=True,
                ),
                durations(
                    "Time of a call",
                    "Until its answer or the end of its time, with waiting and retries. Points are traces.",
                    WORKER_CALL_SECONDS,
                    worker="$worker",
                ),
                heat_map(
                    "Times of calls",
                    "How many calls took how long. Points are traces.",
                    WORKER_CALL_SECONDS,
                    worker="$worker",
                ),
            ],
        ),
        Row(
            title="Connections",
            panels=[
                graph(
                    "Connections",
                    "short",
                    {"{{instance}}": gauge(WORKER_CONNECTIONS, "instance", worker="$worker")},
                    "Connections of each replica that can be called; of a queue, its bridges.",
                ),
                graph(
                    "Events",
                    "ops",
                    {"{{event}}": rate(WORKER_EVENTS, "event", worker="$worker") + " > 0"},
                    "What happens on its connections: docs/reference/metrics.md says what each means.",
                ),
                graph(
                    "Processes of a hook",
                    "short",
                    {"{{instance}}": gauge(HOOK_PROCESSES, "instance", worker="$worker")},
                    "Running processes, of a worker that is a hook.",
                ),
            ],
        ),
        Row(
            title="Queue",
            panels=[
                graph(
                    "Length",
                    "short",
                    {"calls": gauge(QUEUE_LENGTH, how="max", worker="$worker")},
                    "Calls in its queue, waiting and in progress, of a worker behind one.",
                ),
                graph(
                    "Oldest call",
                    "s",
                    {"{{instance}}": gauge(QUEUE_OLDEST_SECONDS, "instance", how="max", worker="$worker")},
                    "Age of the oldest call that each replica has seen there: more bridges, if it grows.",
                ),
            ],
        ),
    ],
)
