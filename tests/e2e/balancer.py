"""A Service with endpoints, in front of gateways and in the test's own loop.

As with EndpointSlices and kube-proxy, a new connection goes to one of the endpoints that were ready when last probed,
in turn; an established one stays where it is, whatever becomes of the endpoint. The endpoint of a pod that is deleted
is removed a moment after the pod gets SIGTERM. A connection that the gateway refuses until then is lost.
"""

import asyncio
import contextlib
import itertools

import aiohttp

_CHUNK = 65536

_PROBE_SECONDS = 0.05

_LAG_SECONDS = 0.2
"""From the deletion of a pod until every node has removed its endpoint; in a cluster it is up to some seconds."""


class Balancer:
    """``async with Balancer() as balancer``: it listens on ``balancer.port``."""

    def __init__(self):
        self.port = 0
        self._ready = {}
        self._turns = itertools.count()
        self._tasks = set()

    async def __aenter__(self):
        self._session = aiohttp.ClientSession()
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc_info):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._session.close()

    def add(self, gateway):
        """An endpoint: a gateway that runs."""
        self._ready[gateway] = False
        self._start(self._probe(gateway))

    async def delete(self, gateway):
        """Delete the gateway's pod: SIGTERM, and soon afterwards no new connections. Gives its exit code."""
        gateway.terminate()
        asyncio.get_running_loop().call_later(_LAG_SECONDS, self._ready.pop, gateway)
        return await asyncio.to_thread(gateway.exit_code)

    def is_ready(self, gateway):
        """Whether new connections may go to it."""
        return self._ready.get(gateway, False)

    def _start(self, coroutine):
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _probe(self, gateway):
        """As a kubelet does, until the pod is deleted."""
        while gateway in self._ready:
            try:
                async with self._session.get(f"http://127.0.0.1:{gateway.admin_port}/readyz") as response:
                    ready = response.status == 200
            except aiohttp.ClientError:
                ready = False
            if gateway in self._ready:
                self._ready[gateway] = ready
            await asyncio.sleep(_PROBE_SECONDS)

    def _connected(self, reader, writer):
        self._start(self._proxy(reader, writer))

    async def _proxy(self, reader, writer):
        async with closed(writer):
            ready = [gateway for gateway, ready in self._ready.items() if ready]
            if not ready:
                return
            chosen = ready[next(self._turns) % len(ready)]
            back_reader, back_writer = await asyncio.open_connection("127.0.0.1", chosen.port)
            async with closed(back_writer):
                self._start(copy(back_reader, writer))
                await copy(reader, back_writer)


@contextlib.asynccontextmanager
async def closed(writer):
    """Close a connection at the end, before the loop ends; one that is lost is no error."""
    try:
        with contextlib.suppress(OSError):
            yield
    except asyncio.CancelledError:
        # What is not sent yet would be waited for.
        writer.transport.abort()
        raise
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def copy(reader, writer):
    """Pass on what one side sends to the other, its end included."""
    async with closed(writer):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
