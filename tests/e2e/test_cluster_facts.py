"""With --cluster, the gateway knows namespaces and authorizations as kube-apiserver does."""

import asyncio
import itertools

import pytest

from gateway.registration.kubernetes_versions import lacking
from tests.e2e.api_server import JANE, RELEASE
from tests.e2e.client import eventually
from tests.e2e.objects import config_map, namespace, pod
from tests.e2e.policies import CONFIG_MAPS, denies, judge
from tests.integration.running import until
from tests.links.proxy import Fault, FaultProxy

TEAM_A = {"namespaceSelector": {"matchLabels": {"team": "a"}}}


@pytest.fixture
def in_cluster(api_server, tmp_path):
    """The flags of a gateway that may do everything."""
    return ("--kubeconfig", api_server.kubeconfig(tmp_path))


def allows(expression):
    """A condition that denies whom ``expression`` is true for."""
    return {"matchConditions": [{"name": "authorized", "expression": expression}]}


async def test_a_namespace_is_used_in_the_second_in_which_it_is_created(cluster, in_cluster):
    """Each new namespace has its own labels at once; none is unknown."""
    names = [f"{cluster.namespace}-{index}" for index in range(20)]
    cluster.write(validating=[denies("no", rules=CONFIG_MAPS, **TEAM_A), judge("other", rules=CONFIG_MAPS)])
    gateway = await cluster.start(*in_cluster)
    await cluster.register(gateway.port, *names)

    async def create(index, name):
        labels = {"team": "a"} if index % 2 else {}
        assert (await cluster.client.create(namespace(name, labels=labels))).code == 201
        return (await cluster.client.create(config_map(namespace=name))).code

    codes = await asyncio.gather(*itertools.starmap(create, enumerate(names)))
    assert codes == [201, 403] * 10


async def test_a_namespaces_labels_are_followed(cluster, in_cluster):
    """A label that is changed while the gateway serves counts a moment later."""
    await cluster.enforce(*in_cluster, validating=[denies("no", rules=CONFIG_MAPS, **TEAM_A), judge("other")])
    assert (await cluster.create(config_map())).code == 201
    own = namespace(cluster.namespace, labels={"team": "a"})
    await cluster.client.apply(own)

    async def refused():
        return (await cluster.create(config_map("probe"), dryRun="All")).code == 403

    await eventually(refused)


async def test_what_is_known_stays_while_the_api_server_is_away(cluster, api_server, tmp_path):
    """Namespaces that were known are; of a new one nothing is known, and its error says why."""
    host, port = api_server.url.removeprefix("https://").split(":")
    async with FaultProxy(host, int(port)) as proxy:
        file = api_server.kubeconfig(tmp_path)
        file.write_text(file.read_text().replace(f":{port}", f":{proxy.port}"))
        policies = [denies("no", rules=CONFIG_MAPS, **TEAM_A), judge("other", rules=CONFIG_MAPS)]
        gateway = await cluster.enforce("--kubeconfig", file, validating=policies)
        assert gateway.metric("cluster_watch_open") == 1
        await proxy.switch(Fault.REFUSED)
        assert (await cluster.create(config_map())).code == 201
        assert (await cluster.client.create(namespace(cluster.other))).code == 201
        unknown = await cluster.client.create(config_map(namespace=cluster.other))
    assert unknown.code == 404
    assert "NAMESPACE_UNKNOWN: Kubernetes API: GET /api/v1/namespaces/" in unknown.message
    await until(lambda: gateway.metric("cluster_watch_open") == 0)
    assert gateway.metric("cluster_lookups_total", kind="namespace", result="failed") == 1


async def test_a_missing_permission_is_named(cluster, api_server, tmp_path):
    """In the answer to whom it concerns, and on /readyz; the gateway is ready, and judges what needs no namespace."""
    file = api_server.kubeconfig(tmp_path, JANE)
    policies = [denies("no", rules=CONFIG_MAPS, **TEAM_A), judge("other")]
    gateway = await cluster.enforce("--kubeconfig", file, validating=policies)
    reply = await cluster.create(config_map())
    assert reply.code == 404
    assert 'cannot get resource "namespaces" in API group ""' in reply.message
    assert (await cluster.create(pod())).code == 201
    status, report = gateway.page("/readyz?verbose")
    assert status == 200
    assert 'cannot list resource "namespaces"' in report


async def test_a_namespace_is_known_by_its_name_without_a_cluster(cluster):
    """One that is made after the start, under a selector for its name alone."""
    named = {"matchLabels": {"kubernetes.io/metadata.name": cluster.other}}
    policies = [denies("no", rules=CONFIG_MAPS, namespaceSelector=named), judge("other", rules=CONFIG_MAPS)]
    await cluster.enforce(validating=policies)
    assert (await cluster.client.create(namespace(cluster.other))).code == 201
    assert (await cluster.create(config_map())).code == 201
    assert (await cluster.client.create(config_map(namespace=cluster.other))).code == 403


_PODS = "authorizer.group('').resource('pods')"

AUTHORIZATIONS = [
    "authorizer.requestResource.check('create').allowed()",
    "authorizer.requestResource.check('nonsense').allowed()",
    f"{_PODS}.namespace('default').check('delete').allowed()",
    "authorizer.group('').resource('nodes').check('delete').allowed()",
    "authorizer.path('/metrics').check('get').allowed()",
    "authorizer.path('/healthz').check('get').allowed()",
    "authorizer.serviceAccount('kube-system', 'default').group('').resource('pods').check('list').allowed()",
    f"{_PODS}.fieldSelector('spec.nodeName=a').check('list').allowed()",
    f"{_PODS}.labelSelector('team in (a, b)').check('list').allowed()",
    f"!{_PODS}.check('get').errored() && {_PODS}.check('get').error() == ''",
]


async def test_an_authorization_is_the_api_servers(cluster, in_cluster):
    """A condition with ``authorizer`` has the same value whether kube-apiserver evaluates it, or the gateway."""
    values = {}
    for isolate in (True, False):
        policies = [
            judge(f"p{index}", rules=CONFIG_MAPS, isolate=isolate, warnings=[str(index)], **allows(expression))
            for index, expression in enumerate(AUTHORIZATIONS)
            if not lacking(expression, RELEASE)
        ]
        gateway = await cluster.enforce(*in_cluster, validating=policies)
        replies = [
            await cluster.create(config_map(f"c{user}-{isolate}".lower()), user=user) for user in ("admin", JANE)
        ]
        assert [reply.code for reply in replies] == [201, 201], replies
        values[isolate] = [sorted(reply.warnings) for reply in replies]
    assert values[False] == values[True]
    assert values[True][0] != values[True][1]
    assert gateway.metric("cluster_lookups_total", kind="authorization", result="found") > 0
