"""Answers of processes that have no end: passed on to a client as they come."""

import asyncio
from collections.abc import Sequence
from typing import Final

from gateway.serving import web
from gateway.serving.processes.requests import Reply
from gateway.serving.refusals import SERVER

DROPPED: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "server", "date"})
"""Fields of an answer that belong to the connection."""


async def copied(given: web.BaseRequest, reply: Reply) -> web.StreamResponse:
    """Write an answer that does not end as it comes, until the client leaves or the process ends."""
    headers = {name: text for name, text in reply.headers.items() if name not in DROPPED}
    response = web.StreamResponse(status=reply.status, headers={**headers, "Server": SERVER})
    try:
        await response.prepare(given)
        async for chunk in reply.chunks:
            await response.write(chunk)
    except ConnectionError:
        response.force_close()
    finally:
        await reply.close()
    return response


async def merged(given: web.BaseRequest, replies: Sequence[Reply]) -> web.StreamResponse:
    """Write whole events of all these streams as they come, until the client leaves or one of them ends.

    A client then connects again, and gets the events of the process that replaces another.
    """
    headers = {name: text for name, text in replies[0].headers.items() if name not in DROPPED}
    response = web.StreamResponse(headers={**headers, "Server": SERVER})

    async def copy(reply: Reply) -> None:
        rest = b""
        async for chunk in reply.chunks:
            whole, separator, rest = (rest + chunk).rpartition(b"\n\n")
            if separator:
                await response.write(whole + separator)

    copies: list[asyncio.Task[None]] = []
    try:
        await response.prepare(given)
        copies = [asyncio.create_task(copy(reply)) for reply in replies]
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    except ConnectionError:
        response.force_close()
    finally:
        for each in copies:
            each.cancel()
        results = await asyncio.gather(*copies, return_exceptions=True)
        for reply in replies:
            await reply.close()
    if any(isinstance(each, ConnectionError) for each in results):
        response.force_close()
    return response
