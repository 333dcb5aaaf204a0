"""Logging is the process's: what a test sets up is taken down."""

import io
import json
import logging

import pytest
import structlog
import uvloop

from gateway.telemetry.logs import configure_logs
from tests.integration.fixtures import certificates, gateway, pair, serve, trust
from tests.integration.process import WAIT_SECONDS

__all__ = ["certificates", "gateway", "pair", "serve", "trust"]


def pytest_asyncio_loop_factories(config, item):
    """As the tests of the whole gateway."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def logging_kept(monkeypatch):
    """Puts the process's logging back as it was. Its end waits for the lines, however slow the machine."""
    monkeypatch.setattr("gateway.telemetry.logs.STOP_SECONDS", WAIT_SECONDS)
    root = logging.getLogger()
    before = root.level, root.handlers[:], structlog.get_config()
    yield
    root.level, root.handlers[:] = before[:2]
    structlog.configure(**before[2])


@pytest.fixture
def logs(logging_kept):
    """Log at debug as JSON; ``logs()`` ends that and gives the entries."""
    stream = io.StringIO()
    stop = configure_logs(level="debug", form="json", stream=stream)
    stopped = []

    def entries():
        stopped.append(stop())
        return [json.loads(line) for line in stream.getvalue().splitlines()]

    yield entries
    if not stopped:
        stop()
