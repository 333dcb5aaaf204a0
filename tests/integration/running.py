"""A whole gateway in the test's own loop: real TLS in front, real gRPC behind, and a look at each decision."""

import asyncio
import contextlib
import http.client
import json
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.cli.transport_options import HookWorkerFactory
from gateway.engine.plan import Described
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Phase
from gateway.serving.app import Gateway
from gateway.serving.settings import Settings
from gateway.transports.transport_config import TransportConfig
from tests.integration.client import AsyncClient
from tests.integration.process import WAIT_SECONDS
from tests.samples import sample_value

POLL_SECONDS = 0.005

PODS = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


def policy(name, *, worker="scripted", **fields):
    """A policy on pods: NAME.test.example.com, of the worker's policy NAME."""
    base = {"name": f"{name}.test.example.com", "worker": worker, "rules": [PODS], "sideEffects": "None"}
    # Nearly all that a request of ten seconds leaves: a machine that stands still for a moment fails nothing.
    return base | {"timeoutSeconds": 9} | fields


def source(*, workers, mutating=(), validating=()):
    """The text of a policy file. ``workers``: for each name its ``grpc``, or its target."""
    api = {"apiVersion": "admission-gateway.dev/v1alpha1"}
    documents = [
        api
        | {
            "kind": "Worker",
            "metadata": {"name": name},
            "spec": {"grpc": {"target": grpc} if isinstance(grpc, str) else grpc},
        }
        for name, grpc in workers.items()
    ]
    for kind, policies in (("Mutating", mutating), ("Validating", validating)):
        if policies:
            metadata = {"name": "test"}
            documents.append(
                api | {"kind": f"{kind}PolicyConfiguration", "metadata": metadata, "policies": list(policies)}
            )
    return "---\n".join(json.dumps(document, indent=1) + "\n" for document in documents)


def configuration(text, directory=Path("/nonexistent")):
    """What the text of a policy file says."""
    return load([SourceText(name="test.yaml", content=text.encode(), directory=str(directory))])


class Running:
    """A gateway that serves in this loop. ``decisions`` are those made, by uid."""

    def __init__(self, context):
        self.decisions = {}
        self.context = context
        self.gateway = None
        self.port = self.admin_port = 0
        self._clients = []

    def decided(self, decision):
        self.decisions[decision.request.uid] = decision

    async def client(self):
        """A new connection; closed at the end."""
        client = await AsyncClient.connect(self.port, self.context)
        self._clients.append(client)
        return client

    async def send(self, content, *, wait_time=WAIT_SECONDS):
        """One request on a connection of its own, and its answer."""
        return await (await self.client()).send(content, wait_time=wait_time)

    def availability(self, name):
        """A policy's availability: a version, the Failure because of which it cannot be called, or None: not known."""
        qualified = f"test/{name}.test.example.com"
        availabilities = {
            **self.gateway.workers.availabilities(Phase.MUTATING),
            **self.gateway.workers.availabilities(Phase.VALIDATING),
        }
        found = availabilities.get(qualified)
        return found.version if isinstance(found, Described) else found

    def metric(self, name, **labels):
        """One value of the metrics."""
        return sample_value(self.gateway.metrics, f"admission_gateway_{name}", labels)

    async def admin(self, path, *, method="GET"):
        """Status and text of a page of the admin listener."""

        def get():
            client = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=WAIT_SECONDS)
            with contextlib.closing(client):
                client.request(method, path)
                response = client.getresponse()
                return response.status, response.read().decode()

        return await asyncio.to_thread(get)

    async def close(self):
        for client in self._clients:
            await client.close()
        await self.gateway.stop(drain=False)


@asynccontextmanager
async def running(known, certificates, context, *, wait=WAIT_SECONDS, **settings):
    """Serve a configuration, and stop it at the end.

    ``wait`` seconds at most for all workers to be described.
    """
    assert not known.fatal, known.errors
    served = Running(context)
    settings.setdefault("transport_config", TransportConfig(hooks=HookWorkerFactory()))
    chosen = Settings(
        listen=("127.0.0.1", 0),
        admin_listen=("127.0.0.1", 0),
        tls_cert=certificates.cert_file,
        tls_key=certificates.key_file,
        worker_startup_timeout=wait,
        **settings,
    )
    served.gateway = Gateway(known, chosen, consumers=(served,))
    (_, served.port), (_, served.admin_port) = await served.gateway.start()
    try:
        yield served
    finally:
        await served.close()


async def until(condition):
    """Wait until something holds."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():  # noqa: ASYNC110 - what is awaited knows of no event: a metric, a process, a standing
            await asyncio.sleep(POLL_SECONDS)
