"""Starts a gateway unless it is to stop meanwhile, and serves it until it is to stop."""

import asyncio
from typing import Any, Final

import structlog

from gateway.serving.app import Gateway
from gateway.serving.processes.channel import ProcessChannel
from gateway.serving.settings import Address

_LOG: Final = structlog.get_logger(__name__)

_SSL_ERROR: Final = "Fatal error on SSL protocol"
_CLOSED: Final = "the handler is closed"
"""uvloop's words."""


async def start_unless(
    stop: asyncio.Event, gateway: Gateway, channel: ProcessChannel | None = None
) -> tuple[Address, Address] | None:
    """Start a gateway, as ``Gateway.start`` does; None, with nothing left running, if ``stop`` is set meanwhile."""
    starting = asyncio.create_task(gateway.start(channel))
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


def handle_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no caller can catch, except one of uvloop's that means nothing.

    When a peer resets a TLS connection whose data uvloop is about to read, uvloop writes to the closed transport, and
    reports that as a fatal error of a connection that has ended anyway.
    """
    if context.get("message") == _SSL_ERROR and _CLOSED in str(context.get("exception")):
        _LOG.debug("a TLS connection ended while it was read", why=str(context["exception"]))
    else:
        loop.default_exception_handler(context)
