"""A worker's pods are replaced by others, with other addresses behind the same name: that of a headless Service."""

import asyncio
import socket
from contextlib import ExitStack
from pathlib import Path

from gateway.transports.grpc import endpoint_set
from tests.caching.servers import free_port
from tests.e2e import configured
from tests.e2e.worker_process import WorkerProcess
from tests.integration.client import message
from tests.integration.running import configuration, policy, source, until
from tests.traffic import recording

NAME = "labels.policies.svc"

REVIEWS = 2_000
"""Of so many around the change, none may fail."""

QUARTER = REVIEWS // 4

CLIENTS = 10

CACHED = 4
"""Lookups that DNS answers from its cache after a change."""


class Names:
    """Cluster DNS for one name, ``addresses``; all others are looked up as ever."""

    def __init__(self, *addresses):
        self.addresses = self._shown = addresses
        self._left = 0
        self._real = asyncio.get_running_loop().getaddrinfo

    def change(self, *addresses):
        """The name has these addresses, which DNS shows some lookups later."""
        self.addresses, self._left = addresses, CACHED

    async def getaddrinfo(self, host, port, **fields):
        if host != NAME:
            return await self._real(host, port, **fields)
        self._left -= 1
        if self._left < 0:
            self._shown = self.addresses
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in self._shown]


class Reviews:
    """Clients that send reviews, each the next when it has the last. ``failed`` are answers that do not allow."""

    def __init__(self, served):
        self.done = 0
        self.failed = []
        self._served = served
        self._ending = False

    async def __aenter__(self):
        self._tasks = [asyncio.create_task(self._run()) for _ in range(CLIENTS)]
        return self

    async def __aexit__(self, *exc_info):
        self._ending = True
        await asyncio.gather(*self._tasks)

    async def _run(self):
        client = await self._served.client()
        while not self._ending:
            answer = await client.send(message(recording("pod-create.1v")))
            self.done += 1
            if answer.status != 200 or not answer.response["allowed"]:
                self.failed.append(answer)

    async def more(self):
        """Wait for a quarter of all."""
        wanted = self.done + QUARTER
        await until(lambda: self.done >= wanted)


async def test_a_rolling_update_to_other_addresses_loses_no_review(gateway, monkeypatch):
    """An old pod gets SIGTERM when the new one is ready; DNS shows that a while later."""
    monkeypatch.setattr(endpoint_set, "RESOLVE_SECONDS", 0.05)
    port = free_port()
    names = Names("127.0.0.2", "127.0.0.3")
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", names.getaddrinfo)
    with ExitStack() as stack:

        def start(address):
            worker = WorkerProcess(f"{address}:{port}", Path(configured.__file__))
            stack.callback(worker.stop)
            return worker.ready()

        old = {address: await asyncio.to_thread(start, address) for address in names.addresses}
        text = source(workers={"labels": f"dns:///{NAME}:{port}"}, validating=[policy("judge", worker="labels")])
        async with gateway(configuration(text)) as served, Reviews(served) as reviews:
            await reviews.more()
            for gone, new in (("127.0.0.2", "127.0.0.4"), ("127.0.0.3", "127.0.0.5")):
                await until(lambda: served.metric("worker_connections", worker="labels") == 2)
                await asyncio.to_thread(start, new)
                names.change(*(address for address in names.addresses if address != gone), new)
                assert await asyncio.to_thread(old[gone].terminate) == 0
                await until(lambda: served.metric("worker_connections", worker="labels") == 2)
                await reviews.more()
            await reviews.more()
    assert reviews.done >= REVIEWS
    assert reviews.failed == []
