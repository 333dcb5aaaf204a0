"""The whole gateway in a loop like its own: uvloop's."""

import uvloop

from tests.integration.fixtures import call, certificates, gateway, pair, serve, serving, trust

__all__ = ["call", "certificates", "gateway", "pair", "serve", "serving", "trust"]


def pytest_asyncio_loop_factories(config, item):
    """The gateway serves on uvloop."""
    return {"uvloop": uvloop.new_event_loop}
