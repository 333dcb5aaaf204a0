"""What /metrics says, as Prometheus reads it."""

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.metrics import Metrics


def sample_value(metrics: Metrics, name: str, labels: Mapping[str, str]) -> float | None:
    """The value of one series; None: there is none."""
    families = text_string_to_metric_families(metrics.exposition()[1].decode())
    found = [each for family in families for each in family.samples if each.name == name and each.labels == labels]
    return found[0].value if found else None
