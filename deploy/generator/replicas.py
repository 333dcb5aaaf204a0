"""A row of panels about the replicas: processes, configuration, registration, and what is lost on the way."""

from typing import Final

from deploy.generator.grafana import Row
from deploy.generator.panels import graph, stat
from deploy.generator.promql import gauge, quantile, rate
from gateway.telemetry.table import (
    CACHE_MEMORY_BYTES,
    CONFIGURATION_ERRORS,
    CONNECTIONS,
    DECISIONS_DROPPED,
    EVENT_LOOP_LAG,
    LAST_RELOAD_SUCCESSFUL,
    LOG_LINES_DROPPED,
    POLICIES,
    PROCESS_CPU,
    PROCESS_RESIDENT_MEMORY,
    REGISTRATION_STATE,
    TRACE_SPANS,
    WEBHOOK_PROBE_SUCCESS,
)

_NONE: Final = ((None, "green"), (1, "red"))
_ALL: Final = ((None, "red"), (1, "green"))

REPLICAS: Final = Row(
    title="Replicas",
    panels=[
        graph(
            "CPU",
            "percentunit",
            {"{{instance}}": rate(PROCESS_CPU, "instance")},
            "Cores that each replica uses; a process uses one at most.",
        ),
        graph(
            "Memory",
            "bytes",
            {"{{instance}}": gauge(PROCESS_RESIDENT_MEMORY, "instance"), "cache": gauge(CACHE_MEMORY_BYTES)},
            "Resident memory of each replica, and what the caches of all hold.",
        ),
        graph(
            "Lag of the event loop",
            "s",
            {"p99 {{instance}}": quantile(0.99, EVENT_LOOP_LAG, "instance")},
            "How late timers of a replica run: each review waits as long.",
        ),
        graph(
            "Lost",
            "ops",
            {
                "log lines": rate(LOG_LINES_DROPPED),
                "spans {{result}}": rate(TRACE_SPANS, "result", result="dropped|failed") + " > 0",
                "decisions {{output}} {{reason}}": rate(DECISIONS_DROPPED, "output", "reason") + " > 0",
            },
            "Log lines, decisions and spans that were not written, because what takes them is slow, full or away.",
        ),
        graph(
            "Connections",
            "short",
            {"{{instance}}": gauge(CONNECTIONS, "instance")},
            "TLS connections of each replica; kube-apiserver keeps some to each.",
        ),
        graph(
            "Policies",
            "short",
            {"{{phase}} {{mode}}": gauge(POLICIES, "phase", "mode", how="max")},
            "Policies of the served configuration. Its changes are marked in all panels.",
        ),
        stat(
            "Configuration loaded",
            "short",
            gauge(LAST_RELOAD_SUCCESSFUL, how="min"),
            _ALL,
            "0: a replica serves its last good configuration, because the files cannot be loaded.",
        ),
        stat(
            "Errors of the configuration",
            "short",
            gauge(CONFIGURATION_ERRORS, how="max"),
            _NONE,
            "Of what was read last.",
        ),
        stat(
            "Called by the API server",
            "short",
            gauge(WEBHOOK_PROBE_SUCCESS, how="min"),
            _ALL,
            "0: kube-apiserver cannot call the gateway, by what the replicas' probe finds.",
        ),
        stat(
            "Registration not kept",
            "short",
            gauge(REGISTRATION_STATE, how="max", state="conflict|failed|refused|suspended"),
            _NONE,
            "1: what is registered is not kept as the policies need it.",
        ),
    ],
)
