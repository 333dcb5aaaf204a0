"""Everything is restarted, one after the other, under 10,000 creates: none fails, and none passes without a verdict."""

import asyncio
import base64
import contextlib
import os

import pytest

from gateway.serving.replica_findings import MEMBERS
from tests.caching import servers
from tests.e2e.objects import config_map
from tests.e2e.policies import CONFIG_MAPS, judge, required_labels
from tests.e2e.test_rollout import CONFIGURED, Creates, labels, replica
from tests.e2e.worker_process import WorkerProcess
from tests.integration.running import policy, until

pytestmark = pytest.mark.timeout(600)

CREATES = 10_000
"""Of so many creates around three restarts, none may be wrong."""

QUARTER = CREATES // 4
"""Before, between and after three restarts."""

JUDGED = "judged"

FORBIDDEN_SHARE = 5
"""Each fifth object lacks the label that a policy requires."""

SHARDS = 600
"""So many objects differ in what policies read of them."""


class JudgedCreates(Creates):
    """Creates of which each reply must show the verdicts of all policies.

    An object without an owner is denied. Any other is stored with the label of the mutating policy, and its user gets
    the warning of the validating one: each is missing where a policy failed open.
    """

    def made(self, number):
        """An object, with an owner or without."""
        owner = {"owner": "a"} if number % FORBIDDEN_SHARE else {}
        return config_map(f"c{number}", labels={"shard": f"s{number % SHARDS}"} | owner)

    def is_right(self, obj, reply):
        """Whether it was judged, and as it must be."""
        sent = obj["metadata"]["labels"]
        if "owner" not in sent:
            return reply.code == 403 and "owner" in reply.message
        stored = sent | {"team": "a"}
        return reply.code == 201 and reply.body["metadata"]["labels"] == stored and reply.warnings == [JUDGED]

    async def enough(self):
        """Wait for what is missing of all creates."""
        while (missing := CREATES - self.done) > 0:
            await self.more(min(missing, CREATES // 10))

    def report(self, what):
        """Say how many there were (``pytest -rP`` shows it); assert that none was wrong."""
        print(f"{what}: {self.done} creates, of which {len(self.failed)} failed or were undecided")  # noqa: T201
        assert self.failed == [], [each.body for each in self.failed[:3]]
        assert self.done >= CREATES


async def many(creates, number=QUARTER):
    """Wait for so many more: a tenth of all at a time, as a machine may be slow."""
    for _ in range(0, number, CREATES // 10):
        await creates.more(CREATES // 10)


def validating(**fields):
    """One that warns of each object that it allows, and one that denies those without an owner."""
    judging = {"rules": CONFIG_MAPS} | fields
    return [judge(warnings=[JUDGED], **judging), required_labels("owner", **judging)]


async def test_gateways(cluster, balancer):
    """Three replicas are replaced: a pod gets SIGTERM before its endpoint is removed."""
    cluster.write(mutating=[labels()], validating=validating())
    replicas = [await replica(cluster, balancer) for _ in range(3)]
    await cluster.register(balancer.port)
    async with JudgedCreates(cluster) as creates:
        for gateway in replicas:
            await many(creates)
            _, code = await asyncio.gather(replica(cluster, balancer), balancer.delete(gateway))
            assert code == 0
        await creates.enough()
    creates.report("three gateways replaced")


async def test_workers(cluster):
    """Three replicas of a worker end on SIGTERM, one after the other, and are started again."""
    addresses = [f"127.0.0.1:{servers.free_port()}" for _ in range(3)]
    target = f"ipv4:{','.join(addresses)}"
    with contextlib.ExitStack() as stack:

        def start(address):
            worker = WorkerProcess(address, CONFIGURED)
            stack.callback(worker.stop)
            return worker.ready()

        workers = [start(address) for address in addresses]
        warning = {"settings": {"warnings": [JUDGED]}, "policy": "judge", "rules": CONFIG_MAPS}
        policies = [policy("judge", worker="rolling", **warning), required_labels("owner", rules=CONFIG_MAPS)]
        gateway = await cluster.enforce(workers={"rolling": target}, mutating=[labels()], validating=policies)
        async with JudgedCreates(cluster) as creates:
            for worker in workers:
                await until(lambda: gateway.metric("worker_connections", worker="rolling") == len(workers))
                await many(creates)
                assert await asyncio.to_thread(worker.terminate) == 0
                await asyncio.to_thread(start, worker.target)
            await creates.enough()
    creates.report("three replicas of a worker restarted")


async def test_redis(cluster, balancer, tmp_path):
    """The Redis through which two replicas share their verdicts is killed three times, and started again; on a busy
    machine, it is late in between.
    """
    keys = tmp_path / "keys"
    keys.write_text(base64.b64encode(os.urandom(32)).decode())
    with servers.server(tmp_path) as redis:
        cached = {"cache": {"ttl": "10s"}, "inputs": ["/object/metadata/labels"]}
        flags = ("--redis", redis.url, "--seal-key-file", keys)
        cluster.write(mutating=[labels(**cached)], validating=validating(**cached))
        replicas = [await replica(cluster, balancer, *flags) for _ in range(2)]
        await cluster.register(balancer.port)
        async with JudgedCreates(cluster) as creates:
            for _ in range(3):
                found = shared(replicas)
                await many(creates)
                await until(lambda: shared(replicas) > found)  # noqa: B023 - awaited here
                redis.kill()
                await creates.more()
                await asyncio.to_thread(redis.start)
                # It is empty; verdicts are shared by it again.
                await until(lambda: held(redis) > 0)
            await creates.enough()
        print(f"verdicts found in Redis: {shared(replicas)}")  # noqa: T201 - pytest -rP shows it
    creates.report("Redis killed three times")


def shared(replicas):
    """How many verdicts the replicas found in Redis."""
    lines = [line for each in replicas for line in each.admin("/metrics").splitlines()]
    lookups = [line for line in lines if line.startswith("admission_gateway_cache_lookups_total{")]
    return sum(float(line.rpartition(" ")[2]) for line in lookups if 'result="redis"' in line)


def held(redis):
    """How many verdicts are in it."""
    with redis.client as client:
        return client.dbsize() - client.exists(MEMBERS)
