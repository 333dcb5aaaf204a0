"""Faults between kube-apiserver and gateway, both ways: each create is judged, or fails as its failurePolicy says."""

import asyncio
import re
from functools import partial
from itertools import count

from gateway.reasons import Reason
from tests.e2e.objects import config_map, namespace
from tests.e2e.policies import CONFIG_MAPS, denies, judge
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import POLL_SECONDS
from tests.links.growth import REPETITIONS, Growth
from tests.links.observed import Observer
from tests.links.proxy import FAULTS, Fault, FaultProxy
from tests.links.report import cell
from tests.links.reviews import FAILURE_POLICIES, JUDGED, LOST, POLICY_SECONDS
from tests.links.world import RECOVERY_SECONDS

_DELAYS = {Fault.LATENCY, Fault.JITTER}
_STANDS_STILL = {Fault.BLACKHOLE, Fault.SILENCE, Fault.DRIP}
_NUMBERS = count()

_KINDS = ("task ", "descriptor ")
"""What a fault may leave behind; objects are kept of each namespace."""


def selected(name, failure_policy):
    """The fields of a policy for objects with its label. It has a second, and so its entry has two."""
    label = {"matchLabels": {"failure-policy": failure_policy}}
    about = {"name": f"{name}-{failure_policy.lower()}", "rules": CONFIG_MAPS, "objectSelector": label}
    return about | {"failurePolicy": failure_policy, "timeoutSeconds": POLICY_SECONDS}


def labelled(failure_policy, **metadata):
    """An object that only the policy with this failurePolicy judges."""
    return config_map(f"c{next(_NUMBERS)}", labels={"failure-policy": failure_policy}, **metadata)


async def test_between_the_api_server_and_the_gateway(cluster, tmp_path, record_property):
    """kube-apiserver applies the failurePolicy of the entry to what has no answer; nothing else passes unjudged."""
    cluster.write(validating=[judge(**selected("judge", each), warnings=[JUDGED]) for each in FAILURE_POLICIES])
    observer, growth = Observer(tmp_path, "gateway"), Growth(*_KINDS)
    gateway = await cluster.start(**observer.options)

    async def created():
        replies = await asyncio.gather(*(cluster.create(labelled(each), dryRun="All") for each in FAILURE_POLICIES))
        return dict(zip(FAILURE_POLICIES, map(outcome, FAILURE_POLICIES, replies), strict=True))

    def outcome(failure_policy, reply):
        if reply.warnings == [JUDGED]:
            assert reply.code == 201, reply
            return {JUDGED}
        if failure_policy == "Fail":
            assert (reply.code, "failed calling webhook" in reply.message) == (500, True), reply
        else:
            annotations = cluster.audited(reply)
            assert any(key.startswith("failed-open.validating.webhook") for key in annotations), annotations
            assert reply.code == 201, reply
        return {LOST}

    async with FaultProxy("127.0.0.1", gateway.port) as proxy:
        await cluster.register(proxy.port)
        await judged(created, seconds=WAIT_SECONDS)
        await growth.start(observer)

        async def once(fault):
            await proxy.switch(fault)
            found = await created()
            await proxy.switch(Fault.NONE)
            attempts = await judged(created)
            assert set().union(*found.values()) == {JUDGED if fault in _DELAYS else LOST}, fault
            return found, attempts

        for fault in FAULTS:
            results = await growth.repeated(partial(once, fault))
            record_property(*cell("kube-apiserver to gateway", "HTTPS", fault, results))


async def judged(created, *, seconds=RECOVERY_SECONDS):
    """Create until all are judged, for so long at most; gives how often."""
    attempts = 1
    async with asyncio.timeout(seconds):
        while set().union(*(await created()).values()) != {JUDGED}:
            attempts += 1
            await asyncio.sleep(POLL_SECONDS)
    return attempts


async def test_between_the_gateway_and_the_kubernetes_api(cluster, api_server, tmp_path, record_property):
    """A namespace that is known is, whatever the link does; a new one is known in time, or its policies fail."""
    host, port = api_server.url.removeprefix("https://").split(":")
    names = [f"{cluster.namespace}-fault-{number}" for number in range(len(FAULTS) * REPETITIONS)]
    observer, growth = Observer(tmp_path, "gateway"), Growth(*_KINDS)
    team = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
    cluster.write(validating=[denies("no", **selected("no", each), **team) for each in FAILURE_POLICIES])
    async with FaultProxy(host, int(port)) as proxy:
        file = api_server.kubeconfig(tmp_path)
        file.write_text(file.read_text().replace(f":{port}", f":{proxy.port}"))
        gateway = await cluster.start("--kubeconfig", file, **observer.options)
        known = f"{cluster.namespace}-known"
        await cluster.client.create(namespace(known, labels={"team": "a"}))
        await cluster.register(gateway.port, known, *names)

        async def created(name):
            replies = await asyncio.gather(
                *(cluster.client.create(labelled(each, namespace=name), dryRun="All") for each in FAILURE_POLICIES)
            )
            return dict(zip(FAILURE_POLICIES, (looked_up(cluster, reply) for reply in replies), strict=True))

        await judged(partial(created, known), seconds=WAIT_SECONDS)
        await growth.start(observer)

        async def once(fault):
            name = names.pop()
            await proxy.switch(fault)
            assert (await cluster.client.create(namespace(name, labels={"team": "a"}))).code == 201
            found, beside = await asyncio.gather(created(name), created(known))
            await proxy.switch(Fault.NONE)
            attempts = await judged(partial(created, name))
            assert beside == {each: {JUDGED} for each in FAILURE_POLICIES}, fault
            assert set().union(*found.values()) <= expected(fault), fault
            return found, attempts

        for fault in FAULTS:
            results = await growth.repeated(partial(once, fault))
            record_property(*cell("gateway to Kubernetes API", "HTTPS", fault, results))


def expected(fault):
    """What may become of a review whose namespace is looked up over a link with this fault."""
    if fault in _DELAYS:
        return {JUDGED}
    if fault is Fault.CORRUPT:
        # TLS waits for more if the bit is one of a record's length.
        return {Reason.NAMESPACE_UNKNOWN, Reason.BUDGET_EXHAUSTED}
    return {Reason.BUDGET_EXHAUSTED if fault in _STANDS_STILL else Reason.NAMESPACE_UNKNOWN}


def looked_up(cluster, reply):
    """JUDGED, or the reason of a failure, which is an audit annotation under Ignore."""
    if reply.code == 201:
        annotations = cluster.audited(reply).items()
        return {value for key, value in annotations if key.endswith("/no-ignore.test.example.com_failed-open")}
    if reply.message.endswith(": no"):
        return {JUDGED}
    return {re.search(r"denied the request: ([A-Z_]+): ", reply.message)[1]}
