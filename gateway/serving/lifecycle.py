"""Starts a gateway unless it is to stop meanwhile, and serves it until it is to stop."""

import asyncio
from typing import Final

import structlog

from gateway.serving.app import Gateway
from gateway.serving.settings import Address

_LOG: Final = structlog.get_logger(__name__)


async def start_unless(stop: asyncio.Event, gateway: Gateway) -> tuple[Address, Address] | None:
    """Start a gateway, as ``Gateway.start`` does; None, with nothing left running, if ``stop`` is set meanwhile."""
    starting = asyncio.create_task(gateway.start())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
    await asyncio.gather(starting, stopping, return_exceptions=True)
    return None if starting.cancelled() else starting.result()


async def serve_until(stop: asyncio.Event, gateway: Gateway) -> None:
    """Serve a started gateway until ``stop`` is set, then drain; when ``stop`` is set again, stop at once."""
    await stop.wait()
    stop.clear()
    _LOG.info("stopping: serving until no client is connected", seconds=gateway.drain_seconds)
    draining = asyncio.create_task(gateway.stop())
    timeout = asyncio.create_task(stop.wait())
    await asyncio.wait((draining, timeout), return_when=asyncio.FIRST_COMPLETED)
    if not draining.done():
        draining.cancel()
        await asyncio.gather(draining, return_exceptions=True)
        await gateway.stop(drain=False)
    timeout.cancel()
    await asyncio.gather(timeout, return_exceptions=True)
    if not draining.cancelled():
        # Raises the error of a failed stop: it must not end as exit code 0.
        draining.result()
