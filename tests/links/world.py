"""One gateway process, and a proxy on each of its links: to workers, a webhook, Redis, and to the gateway itself."""

import asyncio
import base64
import contextlib
import json
import os
from pathlib import Path
from time import monotonic

from gateway.serving.replica_findings import MEMBERS
from tests.authorities import Authority
from tests.caching import servers
from tests.e2e.worker_process import WorkerProcess
from tests.integration.bridging import Bridging, Contents
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import POLL_SECONDS, policy
from tests.links.growth import Growth
from tests.links.observed import Observer
from tests.links.proxy import FaultProxy
from tests.links.reviews import (
    FAILURE_POLICIES,
    JUDGED,
    PHASES,
    POLICY_SECONDS,
    decided_in_time,
    outcomes,
    policy_name,
)
from tests.transports.webhook.servers import Hook, http, json_patch, review, served, server_context

RECOVERY_SECONDS = 10
"""Seconds after which a link that has no fault any more must be used again. With ``LIMITS`` it should be five at most:
for a worker, gRPC's longest pause of 2.4, one to connect, and a half until Describe is tried again; for a bridge, whose
pauses after a short fault are half as long, a heartbeat of its own and one of the gateway. As long again is for
machines that have other work.
"""

WORKER = Path(__file__).parent / "worker.py"

API = {"apiVersion": "admission-gateway.dev/v1alpha1"}
STREAM = "admission:test"
NAMES = ("localhost", "127.0.0.1")

LIMITS = (
    *("--limit-worker-connect-seconds", 1),
    *("--limit-worker-circuit-open-seconds", 1),
    *("--limit-queue-redis-seconds", 1),
)
"""Of gateway and bridge: they decide when a link is used again, with the defaults seconds later."""

FLAGS = (*LIMITS, "--limit-retained-decisions", 1, "--max-connection-age", 0)
"""And what would grow to its limit."""


class World:
    """``async with World(folder, serve, trust, *transports) as world``: the gateway has policies of each transport.

    ``proxies`` has each link's by its name.
    """

    def __init__(self, folder, serve, trust, *transports, phases=PHASES, recovery_seconds=RECOVERY_SECONDS, env=None):
        self.proxies = {}
        self.process = self._contents = None
        self.trust = trust
        self._folder, self._serve, self._transports = folder, serve, transports
        self._phases, self._recovery_seconds = phases, recovery_seconds
        self._observer = Observer(folder, "gateway")
        self._env = env or {}
        self._stack = contextlib.AsyncExitStack()
        self._flags = list(FLAGS)
        self._bridges = []
        self._cache = None
        self._growth = Growth()

    async def __aenter__(self):
        authority = Authority("faults")
        self._tls = authority.issue(*NAMES).write(self._folder)
        self._ca = self._folder / "ca.crt"
        self._ca.write_bytes(authority.pem)
        async with contextlib.AsyncExitStack() as stack:
            self._stack = stack
            workers = {name: await self._worker(name) for name in self._transports}
            self._write(workers)
            await self._start()
            await self._proxy("clients", self.process.port)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc_info):
        await asyncio.to_thread(self.process.stop)
        await self._stack.aclose()

    async def outcomes(self, transport, *, port=None):
        """The outcomes of the reviews that concern this transport, by failurePolicy."""
        return await outcomes(port or self.process.port, self.trust, transport, self._phases)

    async def timely_outcomes(self, transport):
        """The same; each answer must have come in its policy's time."""
        return await outcomes(self.process.port, self.trust, transport, self._phases, decide=decided_in_time)

    async def judged(self, transport, *, port=None, seconds=None):
        """Poll until all are judged; gives how often they were sent."""
        attempts, ends = 1, monotonic() + (seconds or self._recovery_seconds)
        while {JUDGED} != set().union(*(found := await self.outcomes(transport, port=port)).values()):
            assert monotonic() < ends, f"{transport}: {found} after {attempts} attempts"
            attempts += 1
            await asyncio.sleep(POLL_SECONDS)
        return attempts

    async def cached(self):
        """Poll until verdicts get into Redis."""
        with self._cache.client as client:
            before, ends = _verdicts(client), monotonic() + self._recovery_seconds
            while _verdicts(client) == before:
                assert monotonic() < ends
                await self.outcomes("cached")

    async def repeated(self, once):
        """Await ``once()`` until no process holds more each time, and nothing waits in the queue; gives its results."""

        async def emptied():
            result = await once()
            await self._emptied()
            return result

        return await self._growth.repeated(emptied)

    async def settled(self):
        """Poll until no process holds much more than at the start, and nothing waits in the queue."""
        await self._growth.settled(self._recovery_seconds)
        await self._emptied()

    async def _emptied(self):
        """Poll until nothing waits in the queue."""
        ends = monotonic() + self._recovery_seconds
        while self._contents is not None and not await asyncio.to_thread(self._contents.is_done):
            assert monotonic() < ends, f"{self._contents.waiting()} entries stay in the queue"
            await asyncio.sleep(POLL_SECONDS)

    # ------------------------------------------------------------------------------------------------- its parts

    async def _proxy(self, name, port):
        self.proxies[name] = await self._stack.enter_async_context(FaultProxy("127.0.0.1", port))
        return self.proxies[name].port

    async def _worker(self, name):
        """The ``spec`` of a Worker."""
        made = {"webhook": self._webhook, "queue": self._queue, "cached": self._cached}
        return await made.get(name, self._grpc)(name)

    async def _grpc(self, name):
        port = await self._worker_process(name)
        return {"grpc": {"target": f"127.0.0.1:{port}", "tls": {"caFile": str(self._ca), "serverName": "localhost"}}}

    async def _worker_process(self, name):
        """A worker behind TLS and a proxy; the proxy's port."""
        port = servers.free_port()
        tls = ("--tls-cert", self._tls[0], "--tls-key", self._tls[1])
        worker = WorkerProcess(f"127.0.0.1:{port}", WORKER, *tls)
        self._stack.callback(worker.stop)
        await asyncio.to_thread(worker.ready)
        return await self._proxy(name, port)

    async def _cached(self, name):
        """A worker whose verdicts are shared by Redis, where the proxy is."""
        self._cache = self._stack.enter_context(servers.server(self._folder))
        address = f"redis://127.0.0.1:{await self._proxy('gateway to cache', self._cache.port)}"
        self._flags += ["--redis", address, "--seal-key-file", self._keys("seal.keys")]
        worker = WorkerProcess(f"unix:{self._folder}/{name}.sock", WORKER)
        self._stack.callback(worker.stop)
        return {"grpc": {"target": (await asyncio.to_thread(worker.ready)).target}}

    def _keys(self, name):
        file = self._folder / name
        file.write_text(base64.b64encode(os.urandom(32)).decode())
        return file

    async def _webhook(self, name):
        hook = await self._stack.enter_async_context(served(Hook(_judge), server_context(*self._tls)))
        port = await self._proxy(name, hook.port)
        bundle = base64.b64encode(self._ca.read_bytes()).decode()
        return {"webhook": {"url": f"https://127.0.0.1:{port}/judge", "caBundle": bundle}}

    async def _queue(self, name):
        redis = self._stack.enter_context(servers.server(self._folder))
        keys = self._keys("queue.keys")
        self._flags += ["--queue-redis", f"redis://127.0.0.1:{await self._proxy('gateway to Redis', redis.port)}"]
        url = f"redis://127.0.0.1:{await self._proxy('bridge to Redis', redis.port)}"
        target = f"127.0.0.1:{await self._worker_process('bridge to worker')}"
        tls = ("--worker-tls-ca", self._ca, "--worker-tls-server-name", "localhost")
        observer = Observer(self._folder, "bridge")
        self._bridges.append(observer)
        about = ("--queue", STREAM, "--key-file", keys, "--redis", url, "--worker", target)
        bridge = Bridging(*about, *tls, *LIMITS, **observer.options)
        self._stack.callback(bridge.stop)
        await asyncio.to_thread(bridge.ready)
        self._contents = Contents(redis)
        self._stack.callback(self._contents.close)
        return {"queue": {"stream": STREAM, "keyFile": str(keys)}}

    def _write(self, workers):
        documents = [
            API | {"kind": "Worker", "metadata": {"name": name}, "spec": spec} for name, spec in workers.items()
        ]
        for phase in self._phases:
            policies = [_policy(name, phase, each) for name in workers for each in FAILURE_POLICIES]
            kind = f"{phase.capitalize()}PolicyConfiguration"
            documents.append(API | {"kind": kind, "metadata": {"name": "test"}, "policies": policies})
        text = "---\n".join(json.dumps(each) + "\n" for each in documents)
        (self._folder / "policies.yaml").write_text(text)

    async def _start(self):
        policies = ("--policies", self._folder / "policies.yaml", "--worker-startup-timeout", WAIT_SECONDS)
        options = self._observer.options | {"env": self._observer.options["env"] | self._env}
        self.process = self._serve(*policies, *self._flags, **options)
        await asyncio.to_thread(self.process.ready)
        for name in self._transports:
            # Twice: connections are kept.
            assert [await self.judged(name, seconds=WAIT_SECONDS), await self.judged(name)]
        await self._growth.start(self._observer, *self._bridges)


def _verdicts(client):
    """How many names Redis holds, without that of the gateways that answer each other's queries."""
    return client.dbsize() - client.exists(MEMBERS)


def _policy(worker, phase, failure_policy):
    """One that judges what is labelled with its name."""
    name = policy_name(worker, phase, failure_policy)
    about = {} if worker == "webhook" else {"policy": {"mutating": "label", "validating": "judge"}[phase]}
    about |= {"failurePolicy": failure_policy, "timeoutSeconds": POLICY_SECONDS}
    # A call that may have an effect is unary, and is never repeated.
    about |= {"sideEffects": "NoneOnDryRun" if worker == "grpc-unary" else "None"}
    if worker == "cached":
        about |= {"cache": {"ttl": "5m"}, "inputs": ["/object/metadata/labels"]}
    return policy(name, worker=worker, objectSelector={"matchLabels": {"policy": name}}, **about)


def _judge(got):
    """As tests/links/worker.py does."""
    labels = got.review["request"]["object"]["metadata"]["labels"]
    wanted = labels["verdict"]
    answer = {} if wanted == "allow" else {"status": {"message": "forbidden", "code": 403, "reason": "Forbidden"}}
    if wanted == "allow" and "-mutating-" in labels["policy"]:
        answer = json_patch({"op": "add", "path": "/metadata/labels/judged", "value": wanted})
    return http(body=review(got, allowed=wanted == "allow", auditAnnotations={"judged": wanted}, **answer))
