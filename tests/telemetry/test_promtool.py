"""Prometheus' own linter finds nothing to say about the metrics."""

import subprocess

import pytest

from gateway.policies.model import Phase
from gateway.telemetry.labels import GRPC_EVENTS
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import (
    BRIDGE,
    BRIDGE_PREFIX,
    CLUSTER,
    GATEWAY,
    HOOK_WORKER,
    HOOK_WORKER_PREFIX,
    PREFIX,
    REDIS,
    WEBHOOK_PROBE,
)
from tests.deploy.promtool import program
from tests.world import policy

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("metrics", "prefix"),
    [
        ((*GATEWAY, *CLUSTER, *WEBHOOK_PROBE, *REDIS), PREFIX),
        (BRIDGE, BRIDGE_PREFIX),
        (HOOK_WORKER, HOOK_WORKER_PREFIX),
    ],
    ids=["gateway", "bridge", "hook-worker"],
)
def test_promtool_has_no_complaint(metrics, prefix):
    """Every name, unit, type and help text is as Prometheus' conventions have it."""
    made = Metrics(metrics, prefix=prefix)
    made.know([policy("one"), policy("two", phase=Phase.VALIDATING)], [(Phase.MUTATING, "chain.one")])
    made.worker_added("labels", GRPC_EVENTS)
    said = subprocess.run(
        [program("promtool"), "check", "metrics"], input=made.exposition()[1], capture_output=True, check=False
    )
    assert (said.stdout + said.stderr).decode() == ""
    assert said.returncode == 0
