"""The texts of Redis' errors that may be logged."""

import asyncio

import pytest
from redis import exceptions

from gateway.redis.addresses import redis_address
from gateway.redis.clients import close_client, make_client
from gateway.redis.faults import reason_of


async def test_a_server_that_closes_the_connection_may_require_tls():
    """TLS is suggested only if the connection has never worked: a stopping server closes it, too."""
    ended = asyncio.Event()

    async def hang_up(reader, writer):
        writer.write_eof()
        await reader.read()
        writer.close()
        await writer.wait_closed()
        ended.set()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = make_client(redis_address(f"redis://127.0.0.1:{port}"), seconds=30.0, connections=1)
        with pytest.raises(exceptions.ConnectionError, match="closed by server") as caught:
            await client.execute_command("PING")
        await close_client(client)
        await asyncio.wait_for(ended.wait(), 30)
    assert reason_of(caught.value) == "ConnectionError: it closed the connection; does it require TLS?"
    assert reason_of(caught.value, has_worked=True) == "ConnectionError: it closed the connection"
