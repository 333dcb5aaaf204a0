"""This version beside another one: on one Redis, one set of objects, and one registration. By hand:

    make e2e-beside PREVIOUS=COMMIT

The other version is installed, updated to this one and rolled back while clients create. No release exists yet, so the
other version is a commit; its gateways and bridges run from a checkout of their own.
"""

import asyncio
import base64
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from tests.caching import servers
from tests.caching.servers import free_port
from tests.e2e.client import eventually
from tests.e2e.cluster import SERVICE, SERVICE_NAMESPACE
from tests.e2e.kinds import Kinds, define, mutating, validating
from tests.e2e.policies import CONFIG_MAPS, default_labels, judge
from tests.e2e.test_rollout import STAYING, Creates
from tests.integration.bridging import Bridging
from tests.integration.process import COMMAND
from tests.integration.running import until

PREVIOUS = Path(os.environ.get("PREVIOUS_TREE", "not given: make e2e-beside"))
OTHER = PREVIOUS / ".venv/bin/admission-gateway"

STREAM = "admission:beside"
REGISTERED = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


class Installation:
    """Replicas of both versions behind one Service. ``flags`` are those of all."""

    def __init__(self, cluster, balancer, flags):
        self.cluster, self.balancer, self.running = cluster, balancer, []
        self._flags = flags

    async def start(self, command):
        """One more replica. An address of its own gives it an entry of its own in the status of objects."""
        address = ("--listen", f"127.0.0.1:{free_port()}")
        gateway = await self.cluster.start(*STAYING, *self._flags, *address, command=command)
        self.balancer.add(gateway)
        await until(lambda: self.balancer.is_ready(gateway))
        self.running.append(gateway)
        return gateway

    async def stop(self, gateway):
        """Stop a replica. Until then it could read all that the others have written to Redis."""
        assert gateway.metric("cache_seal_failures_total") == 0
        assert total(gateway, "cache_redis_errors_total", 'reason="unreadable"') == 0
        self.running.remove(gateway)
        assert await self.balancer.delete(gateway) == 0

    async def replace(self, gateway, command):
        """A rolling update of one replica: the new one first."""
        made = await self.start(command)
        await self.stop(gateway)
        return made

    async def agrees(self, *objects):
        """Wait until each replica reports each object as enforced, and no other replica does."""
        names = {f"{socket.gethostname()[:63]}:{gateway.port}" for gateway in self.running}

        async def agreed():
            stored = [(await self.cluster.client.get(obj)).body["status"] for obj in objects]
            return all(
                {each["name"] for each in status["replicas"] if each["reason"] == "Enforced"} == names
                and [each["status"] for each in status["conditions"]] == ["True", "True"]
                for status in stored
            )

        await eventually(agreed)

    async def registered(self):
        """Wait until one replica keeps the registration; the webhooks as they are then, by kind and name."""
        await until(lambda: sum(each.metric("registration_state", state="registered") for each in self.running) == 1)
        found = {}
        for kind in REGISTERED:
            obj = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind}
            reply = await self.cluster.client.get(obj | {"metadata": {"name": self.cluster.namespace}})
            found |= {(kind, each["name"]): each for each in reply.body["webhooks"]}
        return found


def total(gateway, name, label=""):
    """The sum of the series of a metric that have this label: ``name="value"``."""
    series = re.findall(rf"admission_gateway_{name}{{(.*)}} (.*)", gateway.admin("/metrics"))
    return sum(float(value) for labels, value in series if label in labels)


async def purge(command, gateway, others):
    """Purge with the command of a version, at a replica; the others, of the other version, take it up."""
    before = [each.metric("cache_purged_policies_total") for each in others]
    arguments = ("purge", "team-a/cached.test.example.com", "--admin", f"http://127.0.0.1:{gateway.admin_port}")
    await asyncio.to_thread(subprocess.run, [command, *arguments], check=True, capture_output=True)
    await until(
        lambda: all(each.metric("cache_purged_policies_total") > was for each, was in zip(others, before, strict=True))
    )


@pytest.fixture
def keys(tmp_path):
    """A file of one key: for the cache, and for the queue."""
    file = tmp_path / "keys"
    file.write_text(base64.b64encode(os.urandom(32)).decode())
    return file


@pytest.fixture
def redis(tmp_path):
    with servers.server(tmp_path) as made:
        yield made


@pytest.fixture
def bridges(redis, keys, workers):
    """A bridge of each version, before the worker of the harness."""
    flags = ("--queue", STREAM, "--key-file", keys, "--redis", redis.url, "--worker", workers["configured"])
    started = [Bridging(*flags, command=command).ready() for command in (OTHER, COMMAND)]
    yield started
    for each in started:
        each.stop()


@pytest.fixture
async def installation(cluster, balancer, redis, keys, bridges, api_server, tmp_path, ca_file):
    about = ("--service", f"{SERVICE_NAMESPACE}/{SERVICE}:{balancer.port}", "--ca-bundle", ca_file)
    access = ("--kubeconfig", api_server.kubeconfig(tmp_path), "--cluster-policies", "--register")
    storage = ("--redis", redis.url, "--seal-key-file", keys)
    queued = {"queue": {"stream": STREAM, "keyFile": str(keys)}}
    api = {"apiVersion": "admission-gateway.dev/v1alpha1"}
    cluster.write(documents=[api | {"kind": "Worker", "metadata": {"name": "queued"}, "spec": queued}])
    return Installation(cluster, balancer, (*about, *access, *storage, "--name", cluster.namespace))


async def test_an_update_and_its_rollback_lose_no_create(installation, bridges):
    """Two replicas are replaced by this version's, and these by the other version's again."""
    cluster = installation.cluster
    here = {
        "rules": CONFIG_MAPS,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}},
    }
    queued = judge("queued", **here) | {"worker": "queued"}
    cached = judge("cached", inputs=[], cache={"ttl": "5m"}, **here)
    objects = (mutating(default_labels({"team": "a"}, **here)), validating(cached, queued))
    await define(cluster.client, PREVIOUS)
    kinds = Kinds(cluster.client)
    await kinds.apply(*objects)
    old = [await installation.start(OTHER) for _ in range(2)]
    webhooks = await installation.registered()
    try:
        async with Creates(cluster) as creates:
            await installation.agrees(*objects)
            await creates.more()
            await define(cluster.client)
            await creates.more()
            new = [await installation.start(COMMAND)]
            await installation.agrees(*objects)
            await creates.more(400)
            assert total(new[0], "cache_lookups_total", 'result="redis"') > 0
            assert total(new[0], "cache_lookups_total", 'result="miss"') == 0
            await purge(COMMAND, new[0], old)
            await purge(OTHER, old[0], new)
            await installation.stop(old.pop())
            new.append(await installation.replace(old.pop(), COMMAND))
            assert await installation.registered() == webhooks
            await installation.agrees(*objects)
            await creates.more(400)
            back = [await installation.replace(each, OTHER) for each in new]
            assert await installation.registered() == webhooks
            await installation.agrees(*objects)
            await creates.more(max(400, 2000 - creates.done))
        print(f"{creates.done} creates, of which {len(creates.failed)} failed")  # noqa: T201 - `-rP` shows it
        assert creates.failed == []
        assert min(each.event("answered") for each in bridges) > 0
        for each in back:
            await installation.stop(each)
    finally:
        await kinds.close()
