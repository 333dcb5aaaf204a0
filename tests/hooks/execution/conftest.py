"""Hooks run in a loop like the gateway's, uvloop's, and in asyncio's own, as in hook-worker."""

import asyncio

import uvloop


def pytest_asyncio_loop_factories(config, item):
    """Both."""
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
