"""Hooks run in a loop like the gateway's, uvloop's, and in asyncio's own, as in hook-worker."""

import asyncio

import pytest
import uvloop
from structlog.testing import capture_logs


@pytest.fixture
def log():
    """What is logged in the meantime."""
    with capture_logs() as entries:
        yield entries


def pytest_asyncio_loop_factories(config, item):
    """Both."""
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
