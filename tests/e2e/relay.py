"""A TCP connection to the API server that a test can cut, and join again."""

import asyncio

from tests.e2e.balancer import closed, copy


class Relay:
    """``async with Relay(host, port) as relay``: it listens on ``relay.port`` until ``stop``."""

    def __init__(self, host, port):
        self.port = 0
        self._to = host, port
        self._tasks = set()

    async def __aenter__(self):
        await self.start()
        return self

    async def __aexit__(self, *exc_info):
        await self.stop()

    async def start(self):
        """Relay, at the same port as before."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self):
        """Refuse new connections, and end those that there are."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader, writer):
        self._tasks.add(asyncio.create_task(self._relay(reader, writer)))

    async def _relay(self, reader, writer):
        async with closed(writer):
            back_reader, back_writer = await asyncio.open_connection(*self._to)
            async with closed(back_writer):
                await asyncio.gather(copy(back_reader, writer), copy(reader, back_writer))
