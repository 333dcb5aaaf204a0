"""A gateway process in front of what is called over HTTPS or over a queue."""

import pytest
import uvloop

from tests.authorities import Authority
from tests.integration.fixtures import certificates, gateway, pair, serve, serving, trust
from tests.webhooks.agnhost_process import Agnhost, agnhost_binary
from tests.webhooks.native import SERVICE_HOST

__all__ = ["certificates", "gateway", "pair", "serve", "serving", "trust"]


def pytest_asyncio_loop_factories(config, item):
    """The gateway serves on uvloop."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def authority():
    """The CA of the webhooks' certificates; not that of the gateway's."""
    return Authority("webhooks")


@pytest.fixture(scope="session")
def webhook_pair(authority, tmp_path_factory):
    """Files of certificate and key of a webhook, as a Service and by address."""
    return authority.issue(SERVICE_HOST, "127.0.0.1").write(tmp_path_factory.mktemp("webhook"))


@pytest.fixture(scope="module")
def agnhost(webhook_pair):
    """Start the real agnhost: ``agnhost("--sidecar-image", IMAGE)``. It runs to the module's end."""
    binary, started = agnhost_binary(), []

    def start(*flags):
        process = Agnhost(binary, webhook_pair, flags)
        started.append(process)
        return process.ready()

    yield start
    for process in started:
        process.stop()
