"""Hooks of ``hook-worker`` take their snapshots from the cluster, and change objects in it."""

import asyncio
import json
import re
import urllib.request

import pytest

from tests.caching.servers import free_port
from tests.e2e.api_server import JANE
from tests.e2e.client import eventually
from tests.e2e.objects import config_map, namespace, pod
from tests.e2e.policies import rules
from tests.e2e.worker_process import WorkerProcess
from tests.hooks.scripts import python_hook
from tests.integration.process import COMMAND
from tests.integration.running import policy
from tests.links.proxy import Fault, FaultProxy

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
        # The relay to the API server runs in this loop, so nothing may block it.
        await asyncio.to_thread(worker.ready)
        about = {"policy": "judge-test-example-com", "sideEffects": "NoneOnDryRun" if not binding else "None"}
        judge = policy("judge", worker="hooks", cache={"ttl": "1h"}, **about)
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
    async with FaultProxy(host, int(port)) as proxy:
        file = api_server.kubeconfig(tmp_path)
        file.write_text(file.read_text().replace(f":{port}", f":{proxy.port}"))
        await cluster.create(config_map("a"))
        admin = free_port()
        flags = ("--admin-listen", f"127.0.0.1:{admin}")
        await hook_worker(SHOW, *flags, kubeconfig=file, kind="ConfigMap", **named(cluster), **NAMES)
        await eventually(lambda: shown(admin, complete=1, watched=1, objects=1))
        await proxy.switch(Fault.REFUSED)
        await cluster.create(config_map("b"))
        assert await snapshot(cluster) == [{"filterResult": "a"}]
        await eventually(lambda: shown(admin, complete=1, watched=0, objects=1))
        await proxy.switch(Fault.NONE)

        async def both():
            return await snapshot(cluster) == [{"filterResult": "a"}, {"filterResult": "b"}]

        await eventually(both)
        await eventually(lambda: shown(admin, complete=1, watched=1, objects=2))


async def shown(port, **gauges):
    """Whether its metrics are these."""

    def read():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
            return response.read().decode()

    found = re.findall(
        r"^admission_gateway_hook_worker_snapshot_(\w+)\{.*\} (.*)$", await asyncio.to_thread(read), re.MULTILINE
    )
    return gauges.items() <= {name: float(value) for name, value in found}.items()


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


async def permit(cluster, *verbs):
    """Let Jane do this with the ConfigMaps of the namespace."""
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs)}
    group = {"apiGroup": "rbac.authorization.k8s.io"}
    bound = {"roleRef": group | {"kind": "Role", "name": "r"}, "subjects": [group | {"kind": "User", "name": JANE}]}
    for obj in ({"kind": "Role", "rules": [rule]}, {"kind": "RoleBinding"} | bound):
        reply = await cluster.create(rbac | {"metadata": {"name": "r"}} | obj)
        assert reply.code == 201, reply


async def test_list_and_watch_in_the_namespace_are_enough(cluster, api_server, hook_worker, tmp_path):
    """For a binding that names its namespaces."""
    await permit(cluster, "list", "watch")
    await cluster.create(config_map("a"))
    file = api_server.kubeconfig(tmp_path, JANE)
    await hook_worker(SHOW, kubeconfig=file, kind="ConfigMap", **named(cluster), **NAMES)
    assert await snapshot(cluster) == [{"filterResult": "a"}]
    await cluster.create(config_map("b"))

    async def both():
        return len(await snapshot(cluster)) == 2

    await eventually(both)


async def test_what_cannot_be_watched_is_no_snapshot(cluster, api_server, hook_worker, tmp_path):
    """A list alone would never change again."""
    await permit(cluster, "list")
    file = api_server.kubeconfig(tmp_path, JANE)
    await hook_worker(SHOW, kubeconfig=file, kind="ConfigMap", **named(cluster))

    async def refused():
        return 'cannot watch resource "configmaps"' in (await cluster.create(pod(), dryRun="All")).message

    await eventually(refused)


async def test_a_snapshot_that_is_too_large_is_an_error(cluster, hook_worker):
    """It names the limit; no more than that is kept in memory."""
    await cluster.create(config_map("a", data={"a": "x" * 2000}))
    await hook_worker(SHOW, "--limit-hook-snapshot-bytes", "1000", kind="ConfigMap", **named(cluster))
    reply = await cluster.create(pod())
    assert reply.code == 500
    assert "more than 1000 bytes (limit hook_snapshot_bytes)" in reply.message


# ---------------------------------------------------------------------------------------------------------- changes


def writing(*operations, answer="{'allowed': True}", code=0):
    """The body of a hook that requests these operations."""
    return f"""
with open(os.environ["KUBERNETES_PATCH_PATH"], "w") as file:
    file.writelines(json.dumps(each) + chr(10) for each in {operations!r})
json.dump({answer}, open(os.environ["ADMISSION_RESPONSE_PATH"], "w"))
sys.exit({code})
"""


def about(cluster, operation, name="a", **members):
    place = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": cluster.namespace, "name": name}
    return {"operation": operation} | place | members


async def data(cluster, name="a"):
    """What a ConfigMap has; None: it does not exist."""
    reply = await cluster.client.get(cluster.own(config_map(name)))
    return reply.body.get("data", {}) if reply.code == 200 else None


async def test_a_hook_creates_an_object(cluster, hook_worker):
    """When the request is answered, the object is there; also if the hook denies."""
    made = cluster.own(config_map("a", data={"by": "hook"}))
    await hook_worker(writing({"operation": "Create", "object": made}, answer="{'allowed': False, 'message': 'no'}"))
    reply = await cluster.create(pod())
    assert (reply.code, reply.message.rsplit(": ", 1)[1]) == (403, "no")
    assert await data(cluster) == {"by": "hook"}


async def test_a_dry_run_changes_nothing(cluster, hook_worker):
    """It is allowed; the same request without dry run is not answered from the cache."""
    made = cluster.own(config_map("a"))
    await hook_worker(writing({"operation": "Create", "object": made}))
    assert (await cluster.create(pod(), dryRun="All")).code == 201
    assert await data(cluster) is None
    assert (await cluster.create(pod())).code == 201
    assert await data(cluster) == {}


async def test_operations_are_done_in_their_order(cluster, hook_worker):
    """Each as shell-operator does it; those on what is missing are no errors."""
    made = cluster.own(config_map("a", data={"step": "1"}))
    await cluster.create(config_map("old"))
    await cluster.create(config_map("orphaned"))
    await hook_worker(
        writing(
            {"operation": "CreateOrUpdate", "object": made},
            {"operation": "CreateIfNotExists", "object": made | {"data": {"step": "never"}}},
            {"operation": "CreateOrUpdate", "object": made | {"data": {"step": "2", "keep": "x"}}},
            about(cluster, "MergePatch", mergePatch={"data": {"step": "3"}}),
            about(cluster, "JSONPatch", jsonPatch=[{"op": "add", "path": "/data/json", "value": "4"}]),
            about(cluster, "JQPatch", jqFilter='.data.jq = .data.step + "5"'),
            about(cluster, "MergePatch", "none", mergePatch={"data": {}}, ignoreMissingObject=True),
            about(cluster, "JQPatch", "none", jqFilter=".", ignoreMissingObject=True),
            about(cluster, "DeleteInBackground", "old"),
            about(cluster, "DeleteNonCascading", "none"),
            about(cluster, "Delete", "none"),
        )
    )
    reply = await cluster.create(pod())
    assert reply.code == 201, reply
    assert await data(cluster) == {"step": "3", "keep": "x", "json": "4", "jq": "35"}
    assert await data(cluster, "old") is None


async def test_a_failed_operation_is_a_failed_hook(cluster, hook_worker):
    """The others are done all the same, and the log has the reason."""
    made = cluster.own(config_map("a"))
    operations = about(cluster, "MergePatch", "none", mergePatch={"data": {}}), {"operation": "Create", "object": made}
    worker = await hook_worker(writing(*operations))
    reply = await cluster.create(pod())
    assert (reply.code, reply.message.rsplit(": ", 1)[1]) == (403, "Hook failed")
    assert await data(cluster) == {}
    line = worker.find(lambda line: "hook failed" in line)
    assert f"MergePatch v1/ConfigMap/{cluster.namespace}/none: " in line
    assert 'configmaps "none" not found' in line


async def test_a_missing_permission_to_change_is_named(cluster, api_server, hook_worker, tmp_path):
    """With verb and resource, in the log; the request is denied."""
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{cluster.namespace}-x"}}
    worker = await hook_worker(
        writing({"operation": "Create", "object": made}), kubeconfig=api_server.kubeconfig(tmp_path, JANE)
    )
    reply = await cluster.create(pod())
    assert (reply.code, reply.message.rsplit(": ", 1)[1]) == (403, "Hook failed")
    assert worker.find(lambda line: 'cannot create resource "namespaces"' in line)


async def test_of_a_failed_hook_only_patches_of_status_are_done(cluster, hook_worker):
    """Those with ignoreHookError."""
    await cluster.create(pod("other"))
    place = {
        "operation": "MergePatch",
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": cluster.namespace,
        "name": "other",
    }
    status = place | {"subresource": "/status", "mergePatch": {"status": {"message": "seen"}}, "ignoreHookError": True}
    made = {"operation": "Create", "object": cluster.own(config_map("a"))}
    await hook_worker(writing(status, made, code=1))
    reply = await cluster.create(pod())
    assert (reply.code, reply.message.rsplit(": ", 1)[1]) == (403, "Hook failed")
    assert (await cluster.get(pod("other")))["status"]["message"] == "seen"
    assert await data(cluster) is None
