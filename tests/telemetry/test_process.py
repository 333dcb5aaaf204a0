"""What a process shows of itself."""

import asyncio
import os
import platform
import resource
import sys
import time

import pytest

from gateway import __version__
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.process import observe_process, watch_lag
from tests.integration.running import until
from tests.samples import sample_value


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has /proc")
def test_a_process_shows_what_prometheus_shows_of_every_process():
    """The numbers are those of this process, as the system has them."""
    metrics = Metrics()
    observe_process(metrics)

    def value(name):
        return sample_value(metrics, f"process_{name}", {})

    assert 0 < value("cpu_seconds_total") <= time.process_time()
    assert 1e6 < value("resident_memory_bytes") < value("virtual_memory_bytes")
    assert 3 <= value("open_fds") <= value("max_fds") == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert time.time() - 86_400 < value("start_time_seconds") < time.time()
    started = value("start_time_seconds")
    observe_process(metrics)
    assert abs(value("start_time_seconds") - started) <= 2 / os.sysconf("SC_CLK_TCK") + 0.1


def test_the_version_is_a_label():
    """As info metrics have it: 1, to be joined with others."""
    metrics = Metrics()
    observe_process(metrics)
    labels = {"version": __version__, "python": platform.python_version()}
    assert sample_value(metrics, "admission_gateway_build_info", labels) == 1


async def test_the_lag_of_the_loop_is_sampled(monkeypatch):
    """A loop that is blocked for a while has a timer that is late by as much."""
    monkeypatch.setattr("gateway.telemetry.process._LAG_SECONDS", 0.001)
    metrics = Metrics()
    watching = asyncio.create_task(watch_lag(metrics))
    await asyncio.sleep(0)
    ends = time.monotonic() + 0.03
    while time.monotonic() < ends:
        pass
    await until(lambda: sample_value(metrics, "admission_gateway_event_loop_lag_seconds_count", {}))
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert sample_value(metrics, "admission_gateway_event_loop_lag_seconds_sum", {}) > 0.02
