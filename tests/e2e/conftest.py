"""One API server and two workers for all tests; for each test a namespace, and gateways of its own."""

import asyncio
from itertools import count
from pathlib import Path

import pytest

from tests.authorities import Authority
from tests.e2e.api_server import ApiServer
from tests.e2e.balancer import Balancer
from tests.e2e.client import Client
from tests.e2e.cluster import HOST, Cluster, prepare
from tests.e2e.worker_process import WorkerProcess
from tests.integration.fixtures import serve
from tests.webhooks.agnhost_process import Agnhost, agnhost_binary

__all__ = ["serve"]

_NUMBERS = count(1)
_WORKERS = {"samples": ["-m", "admission_worker.samples"], "configured": [Path(__file__).parent / "configured.py"]}


@pytest.fixture(scope="session")
def api_server(tmp_path_factory):
    """kube-apiserver, ready."""
    server = ApiServer(tmp_path_factory.mktemp("api-server"))
    try:
        asyncio.run(_prepared(server.ready()))
        yield server
    finally:
        server.stop()


async def _prepared(server):
    async with Client(server) as client:
        await prepare(client)


@pytest.fixture(scope="session")
def authority():
    """Of the gateways' certificate."""
    return Authority("gateways")


@pytest.fixture(scope="session")
def ca_file(tmp_path_factory, authority):
    """Its own certificate; the gateways' is in the same folder."""
    folder = tmp_path_factory.mktemp("gateways")
    authority.issue(HOST).write(folder)
    (folder / "ca.crt").write_bytes(authority.pem)
    return folder / "ca.crt"


@pytest.fixture(scope="session")
def pair(ca_file):
    """The flags that name certificate and key."""
    return ("--tls-cert", ca_file.with_name("tls.crt"), "--tls-key", ca_file.with_name("tls.key"))


@pytest.fixture(scope="session")
def workers(tmp_path_factory):
    """The target of each worker: the samples, and ``configured``."""
    folder = tmp_path_factory.mktemp("workers")
    started = {name: WorkerProcess(f"unix:{folder}/{name}.sock", *arguments) for name, arguments in _WORKERS.items()}
    try:
        yield {name: worker.ready().target for name, worker in started.items()}
    finally:
        for worker in started.values():
            worker.stop()


@pytest.fixture(scope="session")
def agnhost(ca_file):
    """The process; it has the gateways' certificate, and their Service leads to it as well."""
    started = Agnhost(agnhost_binary(), (ca_file.with_name("tls.crt"), ca_file.with_name("tls.key")))
    try:
        yield started.ready()
    finally:
        started.stop()


@pytest.fixture
async def cluster(request, api_server, tmp_path, ca_file, workers, serve):
    """The test's own part of the cluster."""
    async with Client(api_server) as client:
        own = Cluster(client, f"e2e-{next(_NUMBERS)}", tmp_path, ca_file=ca_file, workers=workers, serve=serve)
        await own.open()
        yield own
        await own.close()


@pytest.fixture
async def balancer():
    """In front of gateways."""
    async with Balancer() as started:
        yield started
