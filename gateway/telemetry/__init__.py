"""One Decision record -> metrics and log lines. What the gateway shows of itself, and nothing that a review waits
for.
"""

from gateway.telemetry.decisions import DecisionLog
from gateway.telemetry.logs import configure_logs
from gateway.telemetry.metrics import Metrics

__all__ = ["DecisionLog", "Metrics", "configure_logs"]
