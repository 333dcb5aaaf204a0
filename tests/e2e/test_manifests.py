"""What helm renders, as a real kube-apiserver sees it: each object by a dry run."""

import asyncio
import json
import re
import subprocess

import pytest
import yaml

from tests.deploy.chart import NAME, RENDERED
from tests.e2e.client import APPLY, Client, eventually
from tests.e2e.objects import config_map, namespace, pod
from tests.e2e.policies import CONFIG_MAPS, denies, rules
from tests.e2e.worker_process import WorkerProcess
from tests.hooks.scripts import python_hook
from tests.integration.process import COMMAND
from tests.integration.running import policy, until

OF_OTHERS = {
    "monitoring.coreos.com": ("ServiceMonitor", "PrometheusRule"),
    "cert-manager.io": ("Certificate", "Issuer"),
}
"""Kinds that the manifests have and kube-apiserver has not, by group, in version v1."""

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def stub(group, kind):
    """A kind that accepts every object."""
    names = {"kind": kind, "plural": f"{kind.lower()}s"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    definition |= {"metadata": {"name": f"{names['plural']}.{group}"}}
    return definition | {"spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}}


def objects(values):
    """What is rendered with the values of this name."""
    return list(yaml.safe_load_all(RENDERED[values].read_text()))


@pytest.fixture
async def client(api_server):
    """A client of an API server that has the stubs, and the release's namespace, for restricted pods only."""
    async with Client(api_server) as client:
        await client.create(namespace(NAME, labels=RESTRICTED))
        await client.create(namespace("platform"))
        for group, kinds in OF_OTHERS.items():
            for kind in kinds:
                await client.create(stub(group, kind))
                await eventually(lambda group=group, kind=kind: plural(client, f"{group}/v1", kind))
        yield client


async def plural(client, version, kind):
    """The resource of a kind, from discovery; None if it is not served yet."""
    reply = await client.send("GET", f"/apis/{version}" if "/" in version else f"/api/{version}")
    resources = reply.body.get("resources", ())
    return next((each["name"] for each in resources if each["kind"] == kind and "/" not in each["name"]), None)


async def applied(client, obj, **parameters):
    """The response to server-side apply of the object, where unknown and repeated fields are errors."""
    version, metadata = obj["apiVersion"], obj["metadata"]
    resource = await plural(client, version, obj["kind"])
    scope = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    path = f"/{'apis' if '/' in version else 'api'}/{version}{scope}/{resource}/{metadata['name']}"
    options = {"fieldManager": "helm", "fieldValidation": "Strict"} | parameters
    return await client.send("PATCH", path, obj, media=APPLY, **options)


@pytest.mark.parametrize("values", RENDERED)
async def test_kube_apiserver_accepts_every_object(client, values):
    """With all values that the tests have, each object passes validation; pods that Pod Security warns of are on a
    node's own network.
    """
    warnings = []
    for each in objects(values):
        reply = await applied(client, each, dryRun="All")
        assert reply.code == 201, (each["kind"], each["metadata"]["name"], reply)
        warnings += reply.warnings
    violations = "host namespaces (hostNetwork=true)"
    if values == "node-network":
        assert [each.partition(": ")[2] for each in warnings] == [violations]
    else:
        assert warnings == []


async def test_the_dry_run_finds_what_is_wrong(client):
    """It refuses a field that does not exist, and warns of pods that Pod Security would refuse."""
    (wrong,) = [each for each in objects(None) if each["kind"] == "Deployment"]
    spec = wrong["spec"]["template"]["spec"]
    spec["unknown"] = "x"
    reply = await applied(client, wrong, dryRun="All")
    assert (reply.code, ".spec.template.spec.unknown: field not declared in schema" in reply.message) == (500, True)
    del spec["unknown"], spec["securityContext"]
    reply = await applied(client, wrong, dryRun="All")
    assert reply.code == 201
    assert "seccompProfile" in reply.warnings[0]


@pytest.fixture
async def account(client, api_server, tmp_path):
    """A kubeconfig of the chart's service account, which may do what the chart allows."""
    return await kubeconfig(client, api_server.kubeconfig(tmp_path), None, NAME)


async def kubeconfig(client, file, values, name):
    """The file with the token of this service account, which may do what is rendered with the values."""
    for each in objects(values):
        kind = each["kind"]
        if kind == "ServiceAccount" or kind.startswith(("ClusterRole", "Role", "FlowSchema", "PriorityLevel")):
            assert (await applied(client, each)).code in {200, 201}
    config = json.loads(file.read_text())
    config["users"][0]["user"]["token"] = await token(client, name)
    file.write_text(json.dumps(config))
    return file


async def token(client, name):
    """The token that the kubelet would give to the pod."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    path = f"/api/v1/namespaces/{NAME}/serviceaccounts/{name}/token"
    reply = await client.send("POST", path, request)
    assert reply.code == 201, reply
    return reply.body["status"]["token"]


async def test_the_gateway_may_do_what_it_does(client, cluster, account):
    """With its service account it knows namespaces and authorizations, at the chart's priority level."""
    assert (await client.apply(namespace(cluster.namespace, labels={"chart": "yes"}))).code == 200
    policy = denies(
        "no",
        rules=CONFIG_MAPS,
        namespaceSelector={"matchLabels": {"chart": "yes"}},
        matchConditions=[{"name": "admin", "expression": "authorizer.path('/metrics').check('get').allowed()"}],
    )
    gateway = await cluster.enforce("--kubeconfig", account, validating=[policy])

    async def refused():
        # kube-apiserver learns of a new role a moment later.
        return (await cluster.create(config_map(), dryRun="All")).code == 403

    await eventually(refused)
    await until(lambda: gateway.metric("cluster_watch_open") == 1)
    (level,) = [each["metadata"]["name"] for each in objects(None) if each["kind"] == "FlowSchema"]
    counter = rf'^apiserver_flowcontrol_dispatched_requests_total{{flow_schema="{level}".* [1-9]'
    assert re.search(counter, (await client.send("GET", "/metrics")).message, re.MULTILINE)


async def test_the_gateway_may_register_itself(client, cluster, account, balancer, authority, ca_file, tmp_path):
    """With its service account it keeps its registration, and the Job before its removal deletes that."""
    own = {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}}
    cluster.write(validating=[denies("no", rules=CONFIG_MAPS, namespaceSelector=own)])
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME, "namespace": NAME}}
    await client.create(service | {"spec": {"type": "ExternalName", "externalName": "localhost"}})
    certificate, key = authority.issue(f"{NAME}.{NAME}.svc").write(tmp_path)
    tls = ("--tls-cert", certificate, "--tls-key", key)
    place = ("--name", NAME, "--service", f"{NAME}/{NAME}:{balancer.port}", "--ca-bundle", ca_file)
    balancer.add(await cluster.start("--kubeconfig", account, "--register", *place, tls=tls))

    async def refused():
        return (await cluster.create(config_map(), dryRun="All")).code == 403

    await eventually(refused)
    command = [COMMAND, "uninstall", "--kubeconfig", account, "--namespace", NAME, "--name", NAME]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    assert (await client.send("GET", f"{path}/{NAME}")).code == 404


HOOK = """
(context,) = json.load(open(os.environ["BINDING_CONTEXT_PATH"]))
seen = [each["object"]["metadata"]["name"] for each in context["snapshots"]["all"]]
made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": "platform"}}
json.dump({"operation": "CreateIfNotExists", "object": made}, open(os.environ["KUBERNETES_PATCH_PATH"], "w"))
json.dump({"allowed": False, "message": json.dumps(seen)}, open(os.environ["ADMISSION_RESPONSE_PATH"], "w"))
"""
"""It creates an object, and denies with the names of those that it sees."""

_PLATFORM = {"namespace": {"nameSelector": {"matchNames": ["platform"]}}}
HOOK_CONFIG = {
    "configVersion": "v1",
    "kubernetes": [{"name": "all", "apiVersion": "v1", "kind": "ConfigMap", **_PLATFORM}],
    "kubernetesValidating": [
        {"name": "judge.test.example.com", "rules": rules("pods"), "includeSnapshotsFrom": ["all"]}
    ],
}


@pytest.fixture
async def hook_worker(client, api_server, tmp_path):
    """`hook-worker` as the chart's pod starts it: hooks of a mounted ConfigMap, and their own service account."""
    (container,) = [
        container
        for each in objects("everything")
        if each["kind"] == "Deployment"
        for container in each["spec"]["template"]["spec"]["containers"]
        if container["name"] == "hooks" and "--cluster" in container["args"]
    ]
    file = await kubeconfig(client, api_server.kubeconfig(tmp_path), "everything", f"{NAME}-hooks")
    mounted = tmp_path / "hooks"
    python_hook(mounted / "..2026_11_23", HOOK, config=HOOK_CONFIG).chmod(0o555)
    (mounted / "..data").symlink_to("..2026_11_23")
    (mounted / "hook.py").symlink_to("..data/hook.py")
    here = {"--hooks-dir=/hooks": f"--hooks-dir={mounted}", "--cluster": f"--kubeconfig={file}"}
    worker = WorkerProcess(
        f"unix:{tmp_path}/hooks.sock", str(COMMAND), *(here.get(each, each) for each in container["args"])
    )
    yield worker.ready()
    worker.stop()


async def test_hooks_may_do_what_the_values_say(cluster, hook_worker):
    """With their own service account they see objects of a namespace, and change them."""
    about = {"policy": "judge-test-example-com", "sideEffects": "NoneOnDryRun"}
    cluster.write(workers={"hooks": hook_worker.target}, validating=[policy("judge", worker="hooks", **about)])
    gateway = await cluster.start()
    await cluster.register(gateway.port)

    async def seen():
        # kube-apiserver learns of a new role a moment later.
        return '["made"]' in (await cluster.create(pod())).message

    await eventually(seen)


_OWN = f"/api/v1/namespaces/{NAME}"
_KINDS = "/apis/admission-gateway.dev/v1alpha1"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (f"{_KINDS}/workers", True),
        (f"{_KINDS}/mutatingpolicyconfigurations", True),
        (f"{_KINDS}/validatingpolicyconfigurations", True),
        ("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", True),
        (f"{_OWN}/services/{NAME}", True),
        (f"{_OWN}/secrets/{NAME}-tls", True),
        (f"{_OWN}/secrets/another", False),
        (f"{_OWN}/secrets", False),
        ("/api/v1/secrets", False),
        ("/api/v1/pods", False),
        ("/apis/coordination.k8s.io/v1/leases", False),
    ],
)
async def test_the_gateway_may_read_what_it_needs(client, account, path, allowed):
    """Its kinds, what is registered, its own Service, Secret and Leases; and nothing else."""
    user = json.loads(account.read_text())["users"][0]["user"]["token"]

    async def answered():
        reply = await client.send("GET", path, user=user)
        # kube-apiserver learns of a new role a moment later.
        return (reply.code != 403) is allowed

    await eventually(answered)
