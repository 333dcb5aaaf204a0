"""Gateways and workers come and go while clients create, and no create is lost for it."""

import asyncio
import os
import signal
import ssl
from itertools import count
from pathlib import Path

from gateway.serving.limits import DRAIN_SECONDS, SHUTDOWN_DELAY_SECONDS
from tests.e2e.cluster import HOST
from tests.e2e.objects import config_map, pod
from tests.e2e.policies import CONFIG_MAPS, default_labels, judge
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import policy, until
from tests.integration.workers import Gate, scripted

CREATING = 40
"""Clients at a time: kube-apiserver keeps 25 idle connections for a webhook, so that none of them stays idle."""

DELAY = SHUTDOWN_DELAY_SECONDS if os.environ.get("E2E_DEFAULT_DELAY") else 3
"""A replica serves on for longer than its endpoint is named: 15 times the balancer's lag. The default takes longer."""

STAYING = ("--drain", DRAIN_SECONDS, "--shutdown-delay", DELAY)

CREATES = 2_000
"""Of so many creates around a change, none may fail."""

THIRD = CREATES // 3 + CREATING
"""Before, during and after a change."""

_NUMBERS = count()

CONFIGURED = Path(__file__).parent / "configured.py"


class Creates:
    """Clients that create ConfigMaps, each the next when it has the last. ``failed`` are replies other than 201.

    ``labelled``: so are those without the label that ``labels`` adds, and those with a warning.
    """

    def __init__(self, cluster, *, labelled=True, clients=CREATING):
        self.done = 0
        self.failed = []
        self._cluster, self._labelled, self._clients = cluster, labelled, clients
        self._ending = False

    async def __aenter__(self):
        self._tasks = [asyncio.create_task(self._run()) for _ in range(self._clients)]
        return self

    async def __aexit__(self, *exc_info):
        self._ending = True
        await asyncio.gather(*self._tasks)

    async def _run(self):
        while not self._ending:
            obj = self.made(next(_NUMBERS))
            reply = await self._cluster.create(obj)
            self.done += 1
            if not self.is_right(obj, reply):
                self.failed.append(reply)

    def made(self, number):
        """The object that is created next."""
        return config_map(f"c{number}")

    def is_right(self, obj, reply):
        """Whether the reply is what its create must have."""
        return reply.code == 201 and (not self._labelled or _is_labelled(reply))

    async def more(self, number=5 * CREATING):
        """Wait for so many."""
        wanted = self.done + number
        await until(lambda: self.done >= wanted)

    def lost_none(self):
        """Whether none has failed, of as many as a change has to show."""
        return not self.failed and self.done >= CREATES


def labels(**fields):
    return default_labels({"team": "a"}, rules=CONFIG_MAPS, **fields)


def _is_labelled(reply):
    return reply.body["metadata"].get("labels") == {"team": "a"} and not reply.warnings


async def replica(cluster, balancer, *flags):
    """One more gateway behind the balancer."""
    gateway = await cluster.start(*STAYING, *flags)
    balancer.add(gateway)
    await until(lambda: balancer.is_ready(gateway))
    return gateway


async def test_a_new_replica_gets_its_share_without_a_lost_create(cluster, balancer):
    """Connections that are always in use are ended by replies at their maximum age; new ones go to the new replica."""
    cluster.write(mutating=[labels()])
    old = await replica(cluster, balancer, "--max-connection-age", 0.5)
    await cluster.register(balancer.port)
    # As few as kube-apiserver keeps connections for: it opens no others by itself.
    async with Creates(cluster, clients=10) as creates:
        await creates.more()
        new = await replica(cluster, balancer)
        await until(lambda: new.metric("reviews_total", phase="mutating", outcome="allowed") > 200)
        assert old.metric("connections_ended_total", reason="max_age") > 0
    assert creates.failed == []


async def test_a_killed_replica_loses_no_create_under_ignore(cluster, balancer):
    """What it was deciding is let pass by kube-apiserver; then the other replica decides all."""
    cluster.write(mutating=[labels(failurePolicy="Ignore")])
    killed, _ = [await replica(cluster, balancer) for _ in range(2)]
    await cluster.register(balancer.port)
    async with Creates(cluster, labelled=False) as creates:
        await creates.more()
        killed.process.kill()
        await until(lambda: not balancer.is_ready(killed))
        await creates.more()
    async with Creates(cluster) as decided:
        await decided.more()
    assert creates.failed == decided.failed == []


async def test_a_new_configuration_loses_no_create(cluster):
    """Each create has the labels of one configuration or the other."""
    gateway = await cluster.enforce(mutating=[labels()])
    async with Creates(cluster) as creates:
        await creates.more()
        cluster.write(mutating=[labels(onConflict="allow")], validating=[judge(rules=CONFIG_MAPS)])
        gateway.process.send_signal(signal.SIGHUP)
        await until(lambda: gateway.metric("configuration_reloads_total", result="loaded") == 1)
        await creates.more()
    assert creates.failed == []


async def test_a_renewed_certificate_loses_no_create(cluster, authority, ca_file, tmp_path):
    """It is replaced while clients create; new connections of kube-apiserver get the new one."""

    def renew():
        files = authority.issue(HOST).write(tmp_path)
        return ("--tls-cert", files[0], "--tls-key", files[1])

    async def shown():
        trust = ssl.create_default_context(cafile=ca_file)
        _, writer = await asyncio.open_connection("localhost", gateway.port, ssl=trust, server_hostname=HOST)
        writer.close()
        return writer.get_extra_info("ssl_object").getpeercert()["serialNumber"]

    cluster.write(mutating=[labels()])
    gateway = await cluster.start(tls=renew())
    await cluster.register(gateway.port)
    before = await shown()
    async with Creates(cluster) as creates:
        await creates.more(CREATES // 2)
        renew()
        await until(lambda: gateway.metric("certificate_reloads_total", result="loaded") == 1)
        await creates.more(CREATES // 2)
        assert await shown() != before
    assert creates.lost_none(), creates.failed[:3]


async def test_a_replica_that_stops_ends_its_reviews(cluster, balancer):
    """A create that waits for a policy while its gateway gets SIGTERM is decided by that policy."""
    gate = Gate()
    async with scripted("judge", review=gate) as target:
        cluster.write(workers={"scripted": target}, validating=[policy("judge")])
        gateway = await replica(cluster, balancer)
        await cluster.register(balancer.port)
        creating = asyncio.create_task(cluster.create(pod()))
        async with asyncio.timeout(WAIT_SECONDS):
            await gate.called.wait()
        deleting = asyncio.create_task(balancer.delete(gateway))
        await asyncio.to_thread(gateway.logged, "stopping: serving until no client is connected")
        gate.open.set()
        assert (await creating).code == 201
        assert await deleting == 0
