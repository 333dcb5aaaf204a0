"""Workers run in a loop like the gateway's."""

import uvloop


def pytest_asyncio_loop_factories(config, item):
    """The gateway serves on uvloop."""
    return {"uvloop": uvloop.new_event_loop}
