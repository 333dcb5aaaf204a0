"""Hooks of ``hook-worker`` take their snapshots from the cluster."""

import json

import pytest

from tests.e2e.api_server import JANE
from tests.e2e.client import eventually
from tests.e2e.objects import config_map, namespace, pod
from tests.e2e.policies import rules
from tests.e2e.relay import Relay
from tests.e2e.worker_process import WorkerProcess
from tests.hooks.scripts import python_hook
from tests.integration.process import COMMAND
from tests.integration.running import policy

pytestmark = pytest.mark.e2e

JUDGE = "judge.test.example.com"

SHOW = """
(context,) = json.load(open(os.environ["BINDING_CONTEXT_PATH"]))
answer = {"allowed": False, "message": json.dumps(context["snapshots"]["all"])}
json.dump(answer, open(os.environ["ADMISSION_RESPONSE_PATH"], "w"))
"""
"""A hook that denies, with its snapshot as the message."""

NAMES = {"jqFilter": ".metadata.name", "keepFullObjectsInMemory": False}


@pytest.fixture
def hook_worker(cluster, api_server, tmp_path):
    """Start ``hook-worker`` with one hook: its body, its ``kubernetes`` binding; then a gateway that calls it."""
    started = []

    async def start(body, *flags, kubeconfig=None, **binding):
        file = kubeconfig or api_server.kubeconfig(tmp_path)
        included = {"includeSnapshotsFrom": ["all"]} if binding else {}
        config = {
            "configVersion": "v1",
            "kubernetes": [{"name": "all", "apiVersion": "v1"} | binding] if binding else [],
            "kubernetesValidating": [{"name": JUDGE, "rules": rules("pods"), **included}],
        }
        python_hook(tmp_path / "hooks", body, config={key: value for key, value in config.items() if value})
        command = [str(COMMAND), "hook-worker", "--hooks-dir", str(tmp_path / "hooks"), "--kubeconfig", str(file)]
        worker = WorkerProcess(f"unix:{tmp_path}/hooks.sock", *command, *flags)
        started.append(worker)
        worker.ready()
        judge = policy("judge", worker="hooks", policy="judge-test-example-com", cache={"ttl": "1h"})
        cluster.write(workers={"hooks": worker.target}, validating=[judge])
        gateway = await cluster.start()
        await cluster.register(gateway.port)
        return worker

    yield start
    for worker in started:
        worker.stop()


async def snapshot(cluster):
    """What the hook sees."""
    reply = await cluster.create(pod(), dryRun="All")
    assert reply.code == 403, reply
    return json.loads(reply.message.split("denied the request: ", 1)[1])


def named(cluster):
    return {"namespace": {"nameSelector": {"matchNames": [cluster.namespace]}}}


async def test_a_snapshot_follows_the_cluster(cluster, hook_worker):
    """The same request gets another verdict when an object is created or deleted, although the policy has a cache."""
    await hook_worker(SHOW, kind="ConfigMap", **named(cluster))
    assert await snapshot(cluster) == []
    await cluster.create(config_map("b", data={"a": "1"}))
    await cluster.create(config_map("a"))

    async def both():
        return len(await snapshot(cluster)) == 2

    await eventually(both)
    first, second = await snapshot(cluster)
    assert first.keys() == {"object"}
    stored = await cluster.get(config_map("b"))
    assert second["object"] == stored
    assert first["object"]["kind"] == "ConfigMap"
    await cluster.send("DELETE", config_map("b"))

    async def one():
        return len(await snapshot(cluster)) == 1

    await eventually(one)


@pytest.mark.parametrize(
    "selectors",
    [
        {"nameSelector": {"matchNames": ["wanted", "also"]}},
        {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]}},
        {
            "labelSelector": {
                "matchLabels": {"app": "x"},
                "matchExpressions": [{"key": "no", "operator": "DoesNotExist"}],
            }
        },
        {"fieldSelector": {"matchExpressions": [{"field": "metadata.name", "operator": "!=", "value": "other"}]}},
        {"kind": "cm"},
    ],
    ids=json.dumps,
)
async def test_the_api_server_selects(cluster, hook_worker, selectors):
    """By name, labels, fields; objects that were there before, and the result of a filter for each."""
    others = [config_map("other", labels={"app": "z"})] if selectors != {"kind": "cm"} else []
    for each in (config_map("wanted", labels={"app": "x"}), *others):
        await cluster.create(each)
    await hook_worker(SHOW, **({"kind": "ConfigMap"} | named(cluster) | NAMES | selectors))
    assert await snapshot(cluster) == [{"filterResult": "wanted"}]


async def test_namespaces_are_selected_by_labels(cluster, hook_worker):
    """A namespace counts from when it has the label until it has it no more."""
    own = namespace(cluster.namespace, labels={"of": cluster.namespace})
    selector = {"namespace": {"labelSelector": {"matchLabels": {"of": cluster.namespace}}}}
    await cluster.create(config_map("a"))
    await hook_worker(SHOW, kind="ConfigMap", **selector, **NAMES)
    assert await snapshot(cluster) == []
    await cluster.client.apply(own)

    async def selected():
        return await snapshot(cluster) == [{"filterResult": "a"}]

    await eventually(selected)
    await cluster.client.apply(namespace(cluster.namespace))

    async def dropped():
        return await snapshot(cluster) == []

    await eventually(dropped)


async def test_what_is_known_stays_while_the_api_server_is_away(cluster, api_server, hook_worker, tmp_path):
    """And what was changed meanwhile is seen afterwards."""
    host, port = api_server.url.removeprefix("https://").split(":")
    async with Relay(host, int(port)) as relay:
        file = api_server.kubeconfig(tmp_path)
        file.write_text(file.read_text().replace(f":{port}", f":{relay.port}"))
        await cluster.create(config_map("a"))
        await hook_worker(SHOW, kubeconfig=file, kind="ConfigMap", **named(cluster), **NAMES)
        await relay.stop()
        await cluster.create(config_map("b"))
        assert await snapshot(cluster) == [{"filterResult": "a"}]
        await relay.start()

        async def both():
            return await snapshot(cluster) == [{"filterResult": "a"}, {"filterResult": "b"}]

        await eventually(both)


@pytest.mark.parametrize(
    ("binding", "why"),
    [
        ({"kind": "ConfigMap"}, 'cannot list resource "configmaps" in API group ""'),
        ({"kind": "Thing", "apiVersion": "none.example.com/v1"}, "has no kind 'Thing' in none.example.com/v1"),
    ],
)
async def test_without_a_snapshot_a_call_fails(cluster, api_server, hook_worker, tmp_path, binding, why):
    """A missing permission is named with verb and resource, an unknown kind by its name."""
    await hook_worker(SHOW, kubeconfig=api_server.kubeconfig(tmp_path, JANE), **binding)
    reply = await cluster.create(pod())
    assert reply.code == 500
    assert "WORKER_FAILURE" in reply.message
    assert "the snapshot 'all' is not complete" in reply.message
    assert why in reply.message


async def test_a_snapshot_that_is_too_large_is_an_error(cluster, hook_worker):
    """It names the limit; no more than that is kept in memory."""
    await cluster.create(config_map("a", data={"a": "x" * 2000}))
    await hook_worker(SHOW, "--limit-hook-snapshot-bytes", "1000", kind="ConfigMap", **named(cluster))
    reply = await cluster.create(pod())
    assert reply.code == 500
    assert "more than 1000 bytes (limit hook_snapshot_bytes)" in reply.message
