"""Gateways that register themselves with a real kube-apiserver."""

import asyncio
import subprocess

import pytest

from tests.authorities import Authority
from tests.e2e.api_server import JANE, since
from tests.e2e.client import MERGE, eventually
from tests.e2e.cluster import SERVICE, SERVICE_NAMESPACE
from tests.e2e.objects import config_map
from tests.e2e.policies import CONFIG_MAPS, default_labels, denies, judge, note, rules
from tests.e2e.test_rollout import STAYING, THIRD, Creates
from tests.integration.process import COMMAND
from tests.integration.running import until

pytestmark = pytest.mark.e2e

KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
REGISTRATION = "admissionregistration.k8s.io/v1"
SUSPENDED = "admission-gateway.dev/suspended"


class Registrar:
    """Replicas of one gateway behind a balancer, registered under the name of the test's namespace."""

    def __init__(self, cluster, balancer, kubeconfig, ca_file):
        self.cluster, self.balancer = cluster, balancer
        self.name, self.kubeconfig = cluster.namespace, kubeconfig
        self._ca_file = ca_file
        self.port = balancer.port

    def write(self, **policies):
        """Policies that match in the test's namespace only."""
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self.cluster.namespace}}
        for each in (*policies.get("mutating", ()), *policies.get("validating", ())):
            each["namespaceSelector"] = selector
        self.cluster.write(**policies)

    async def start(self, *flags, kubeconfig=None, service=SERVICE, ca_file=None):
        """One more replica."""
        ca_bundle = ca_file or self._ca_file
        address = ("--service", f"{SERVICE_NAMESPACE}/{service}:{self.port}", "--ca-bundle", ca_bundle)
        access = ("--kubeconfig", kubeconfig or self.kubeconfig, "--register", "--name", self.name)
        gateway = await self.cluster.start(*address, *access, "--reload-interval", 0.1, *flags)
        self.balancer.add(gateway)
        await until(lambda: self.balancer.is_ready(gateway))
        return gateway

    def object(self, kind):
        return {"apiVersion": REGISTRATION, "kind": kind, "metadata": {"name": self.name}}

    async def live(self, kind=KINDS[0]):
        """The object; None: there is none."""
        reply = await self.cluster.client.get(self.object(kind))
        return reply.body if reply.code == 200 else None

    async def registered(self, *names, kind=KINDS[0]):
        """Wait until these webhooks are registered, and give them."""

        async def found():
            live = await self.live(kind)
            webhooks = [] if live is None else live.get("webhooks") or []
            return webhooks if [each["name"] for each in webhooks] == list(names) else None

        return await eventually(found)

    async def annotate(self, kind=KINDS[0], **annotations):
        body = {"metadata": {"annotations": annotations}}
        path = f"/apis/{REGISTRATION}/{kind.lower()}s/{self.name}"
        assert (await self.cluster.client.send("PATCH", path, body, media=MERGE)).code == 200

    async def replace(self, webhooks, kind=KINDS[0]):
        body = {"webhooks": webhooks}
        path = f"/apis/{REGISTRATION}/{kind.lower()}s/{self.name}"
        assert (await self.cluster.client.send("PATCH", path, body, media=MERGE)).code == 200

    async def in_state(self, state, *gateways):
        await until(lambda: all(each.metric("registration_state", state=state) for each in gateways))

    async def looks(self, gateway, number=2):
        """Wait until the leader has looked so often: each renewal of its lease is one."""
        path = f"{self.leases}/{self.name}-registration"
        seen = set()

        async def renewed():
            lease = (await self.cluster.client.send("GET", path)).body
            seen.add(lease.get("spec", {}).get("renewTime", ""))
            return len(seen - {""}) > number

        await eventually(renewed)

    async def command(self, name, *, kubeconfig=None):
        """Exit code and output of `uninstall` or `resume`."""
        flags = ("--kubeconfig", kubeconfig or self.kubeconfig, "--namespace", SERVICE_NAMESPACE, "--name", self.name)
        done = await asyncio.to_thread(subprocess.run, [COMMAND, name, *flags], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    @property
    def leases(self):
        return f"/apis/coordination.k8s.io/v1/namespaces/{SERVICE_NAMESPACE}/leases"

    async def release_lease(self):
        """As a leader leaves it that has stopped: without one, the first replica would wait LEASE_SECONDS."""
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
        metadata = {"name": f"{self.name}-registration"}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        assert (await self.cluster.client.send("POST", self.leases, lease)).code == 201

    async def delete_lease(self):
        assert (await self.cluster.client.send("DELETE", f"{self.leases}/{self.name}-registration")).code == 200

    async def close(self):
        for kind in KINDS:
            await self.cluster.client.delete(self.object(kind))


@pytest.fixture
async def registrar(api_server, cluster, balancer, tmp_path, ca_file):
    made = Registrar(cluster, balancer, api_server.kubeconfig(tmp_path), ca_file)
    await made.release_lease()
    yield made
    await made.close()


def labels(**fields):
    return default_labels({"team": "a"}, rules=CONFIG_MAPS, **fields)


CHAIN = "chain.default-labels.test.example.com"
GROUP = "group.judge.test.example.com"


def verbose(gateway):
    return gateway.page("/readyz?verbose")[1]


async def test_edited_deleted_and_resumed(registrar):
    """An edit is undone; a deletion is honoured by all replicas, until resume."""
    registrar.write(mutating=[labels()])
    replicas = [await registrar.start() for _ in range(2)]
    webhooks = await registrar.registered(CHAIN)
    annotations = (await registrar.live())["metadata"]["annotations"]
    assert annotations["admission-gateway.dev/owner"] == f"{SERVICE_NAMESPACE}/{SERVICE}"
    await registrar.replace([webhooks[0] | {"failurePolicy": "Ignore"}, webhooks[0] | {"name": "added.by.example.com"}])
    assert await registrar.registered(CHAIN) == webhooks

    assert (await registrar.cluster.client.delete(registrar.object(KINDS[0]))).code == 200
    await registrar.in_state("suspended", *replicas)
    for each in replicas:
        assert f"MutatingWebhookConfiguration {registrar.name} was deleted" in verbose(each)
    await registrar.looks(replicas[0])
    assert await registrar.live() is None

    code, output = await registrar.command("resume")
    assert code == 0, output
    assert "resumed" in output
    assert await registrar.registered(CHAIN) == webhooks
    code, output = await registrar.command("resume")
    assert (code, "nothing to do" in output) == (0, True)


async def test_suspended_by_the_annotation(registrar):
    """Somebody may then edit the object."""
    registrar.write(mutating=[labels()])
    gateway = await registrar.start()
    webhooks = await registrar.registered(CHAIN)
    await registrar.annotate(**{SUSPENDED: "incident 7"})
    await registrar.replace([])
    await registrar.in_state("suspended", gateway)
    assert "incident 7" in verbose(gateway)
    await registrar.looks(gateway)
    assert "webhooks" not in await registrar.live()
    assert (await registrar.command("resume"))[0] == 0
    assert await registrar.registered(CHAIN) == webhooks


async def test_uninstalled(registrar):
    """While a gateway runs, and for one that starts afterwards."""
    registrar.write(validating=[denies("no")])
    first = await registrar.start()
    await registrar.registered(GROUP, kind=KINDS[1])
    code, output = await registrar.command("uninstall")
    assert code == 0, output
    assert output.count("deleted") == 2
    await registrar.in_state("suspended", first)
    await registrar.balancer.delete(first)
    second = await registrar.start()
    await registrar.in_state("suspended", second)
    assert [await registrar.live(kind) for kind in KINDS] == [None, None]


async def test_a_leader_that_stops_is_replaced(registrar):
    """At once: it releases the lease."""
    registrar.write(mutating=[labels()])
    first = await registrar.start()
    await registrar.in_state("registered", first)
    second = await registrar.start()
    await registrar.in_state("standby", second)
    await registrar.balancer.delete(first)
    await registrar.in_state("registered", second)


async def test_the_first_replica_registers_the_gateway(registrar):
    """Although there is no Lease; and keeps the registration when the Lease is deleted."""
    await registrar.delete_lease()
    registrar.write(mutating=[labels()])
    gateway = await registrar.start()
    await registrar.in_state("registered", gateway)
    await registrar.delete_lease()
    await registrar.looks(gateway)
    assert gateway.metric("registration_state", state="registered") == 1


@since(30, "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy")
async def test_what_the_api_server_refuses_replaces_nothing(registrar):
    """The dry run says why; the good registration stays."""
    api = {"apiVersion": REGISTRATION}
    rule = {"apiGroups": ["admissionregistration.k8s.io"], "apiVersions": ["v1"], "operations": ["*"]}
    rule |= {"resources": ["mutatingwebhookconfigurations"]}
    small = f"object.metadata.name != '{registrar.name}' || object.webhooks.all(w, w.failurePolicy != 'Ignore')"
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": small, "message": "not so"}]}
    policy = api | {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": registrar.name}, "spec": spec}
    binding = {"policyName": registrar.name, "validationActions": ["Deny"]}
    bound = api | {"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": registrar.name}, "spec": binding}
    client = registrar.cluster.client

    registrar.write(mutating=[labels()])
    gateway = await registrar.start()
    webhooks = await registrar.registered(CHAIN)
    root = f"/apis/{REGISTRATION}/validatingadmissionpolicies"
    assert (await client.send("POST", root, policy)).code == 201
    assert (await client.send("POST", f"{root[:-3]}ybindings", bound)).code == 201
    try:

        async def denied():
            ignoring = registrar.object(KINDS[0]) | {"webhooks": [webhooks[0] | {"failurePolicy": "Ignore"}]}
            return (await client.apply(ignoring, dryRun="All")).code == 422

        await eventually(denied)
        registrar.write(mutating=[labels(failurePolicy="Ignore")])
        await registrar.in_state("refused", gateway)
        assert "not so" in verbose(gateway)
        assert await registrar.registered(CHAIN) == webhooks
    finally:
        await client.send("DELETE", f"{root}/{registrar.name}")
        await client.send("DELETE", f"{root[:-3]}ybindings/{registrar.name}")


async def test_two_gateways_of_one_name(registrar):
    """The second, behind another Service, touches nothing and says so."""
    registrar.write(mutating=[labels()])
    first = await registrar.start()
    await registrar.registered(CHAIN)
    await registrar.in_state("registered", first)
    await registrar.balancer.delete(first)
    version = (await registrar.live())["metadata"]["resourceVersion"]
    second = await registrar.start(service="another")
    await registrar.in_state("conflict", second)
    assert f"leads to {SERVICE_NAMESPACE}/{SERVICE}, and this gateway is {SERVICE_NAMESPACE}/another" in verbose(second)
    assert (await registrar.live())["metadata"]["resourceVersion"] == version


async def test_a_missing_permission_is_named(registrar, api_server, tmp_path):
    """By verb and resource; the gateway serves, and registers itself with those that the documentation names."""
    (tmp_path / "jane").mkdir()
    registrar.write(mutating=[labels()])
    gateway = await registrar.start(kubeconfig=api_server.kubeconfig(tmp_path / "jane", JANE))
    await registrar.in_state("failed", gateway)
    assert gateway.page("/readyz")[0] == 200
    assert 'cannot get resource "mutatingwebhookconfigurations"' in verbose(gateway)
    code, output = await registrar.command("uninstall", kubeconfig=api_server.kubeconfig(tmp_path / "jane", JANE))
    assert code == 2
    assert all(f'cannot delete resource "{kind.lower()}s"' in output for kind in KINDS)

    assert (await registrar.command("resume"))[0] == 0
    group = {"apiGroups": ["admissionregistration.k8s.io"], "resources": [f"{kind.lower()}s" for kind in KINDS]}
    rules = [group | {"verbs": ["create"]}, group | {"resourceNames": [registrar.name], "verbs": ["get", "update"]}]
    api, rbac = {"apiVersion": "rbac.authorization.k8s.io/v1"}, {"apiGroup": "rbac.authorization.k8s.io"}
    metadata = {"metadata": {"name": registrar.name}}
    subjects = {"subjects": [rbac | {"kind": "User", "name": JANE}]}
    role = rbac | {"kind": "ClusterRole", "name": registrar.name}
    for obj in (
        api | metadata | {"kind": "ClusterRole", "rules": rules},
        api | metadata | subjects | {"kind": "ClusterRoleBinding", "roleRef": role},
    ):
        assert (await registrar.cluster.client.create(obj)).code == 201
    await registrar.in_state("registered", gateway)
    await registrar.registered(CHAIN)
    assert gateway.logged("what could lock the cluster is judged without the webhooks of others")


async def test_a_new_entry_loses_no_create(registrar):
    """It is registered when both replicas serve it; each create has the labels throughout."""
    registrar.write(mutating=[labels()])
    replicas = [await registrar.start(*STAYING) for _ in range(2)]
    await registrar.registered(CHAIN)

    async def labelled():
        reply = await registrar.cluster.create(config_map(), dryRun="All")
        return reply.code == 201 and reply.body["metadata"].get("labels")

    await eventually(labelled)
    renamed = labels() | {"name": "renamed.test.example.com", "policy": "default-labels"}
    async with Creates(registrar.cluster) as creates:
        await creates.more(THIRD)
        registrar.write(mutating=[renamed], validating=[judge(rules=CONFIG_MAPS)])
        await registrar.registered("chain.renamed.test.example.com")
        await registrar.registered(GROUP, kind=KINDS[1])
        await creates.more(2 * THIRD)
    assert creates.lost_none(), creates.failed[:3]
    assert [each.metric("http_requests_rejected_total", reason="path") for each in replicas] == [0, 0]


async def test_what_could_lock_the_cluster_is_not_registered(registrar):
    """What `doctor` refuses; what was registered stays, and the log and /readyz say why."""
    registrar.write(mutating=[labels(failurePolicy="Ignore")])
    gateway = await registrar.start()
    await registrar.registered(CHAIN)
    nodes = judge(rules=rules("nodes"))
    registrar.cluster.write(mutating=[labels(failurePolicy="Ignore")], validating=[nodes])
    await registrar.in_state("refused", gateway)
    assert "it could lock the cluster: ValidatingWebhookConfiguration/" in verbose(gateway)
    assert "--register-despite-findings" in verbose(gateway)
    assert (await registrar.live(KINDS[1])).get("webhooks", []) == []


async def test_a_ca_bundle_that_does_not_verify_the_certificate_is_not_registered(registrar, tmp_path, ca_file):
    """All calls would fail. With another file of it, the gateway registers itself."""
    registrar.write(mutating=[labels()])
    own = tmp_path / "ca.crt"
    own.write_bytes(Authority("another").pem)
    gateway = await registrar.start(ca_file=own)
    await registrar.in_state("refused", gateway)
    assert "kube-apiserver could not verify the certificate of Service " in verbose(gateway)
    assert await registrar.live() is None
    own.write_bytes(ca_file.read_bytes())
    await registrar.registered(CHAIN)


async def test_an_operator_who_insists_is_obeyed_loudly(registrar):
    """With --register-despite-findings it is registered, and the log says so."""
    registrar.cluster.write(validating=[judge(rules=rules("nodes"))])
    gateway = await registrar.start("--register-despite-findings")
    await registrar.registered(GROUP, kind=KINDS[1])
    assert gateway.logged("what is registered could lock the cluster: --register-despite-findings")


async def test_labels_in_the_cluster_count(registrar):
    """Without them, the policy is safe; with them, no Pod of the cluster's DNS could start. Its change is refused then,
    and registered when the label has gone, or if an operator insists on it.
    """

    async def label(value):
        path, body = "/api/v1/namespaces/kube-system", {"metadata": {"labels": {registrar.name: value}}}
        assert (await registrar.cluster.client.send("PATCH", path, body, media=MERGE)).code == 200

    def write(**fields):
        registrar.cluster.write(
            validating=[judge(namespaceSelector={"matchLabels": {registrar.name: "yes"}}, **fields)]
        )

    async def timeouts():
        return [each["timeoutSeconds"] for each in (await registrar.live(KINDS[1]))["webhooks"]]

    write(timeoutSeconds=3)
    gateway = await registrar.start()
    await registrar.in_state("registered", gateway)
    assert await timeouts() == [4]
    await label("yes")
    write(timeoutSeconds=5)
    await registrar.in_state("refused", gateway)
    assert "kube-apiserver refuses CREATE pods in kube-system (cluster DNS)" in verbose(gateway)
    assert await timeouts() == [4]
    await label(None)
    await registrar.in_state("registered", gateway)
    assert await timeouts() == [6]

    await registrar.balancer.delete(gateway)
    await label("yes")
    write(timeoutSeconds=7)
    gateway = await registrar.start("--register-despite-findings")
    await registrar.in_state("registered", gateway)
    assert await timeouts() == [8]
    assert gateway.logged("what is registered could lock the cluster: --register-despite-findings")


NOTE = note("noted", text="yes", rules=CONFIG_MAPS)
RENAMED = labels() | {"name": "renamed.test.example.com", "policy": "default-labels"}

CHANGES = {
    "the first policy is renamed": [RENAMED, NOTE],
    "an entry is split": [labels(), NOTE | {"failurePolicy": "Ignore"}],
}


@pytest.mark.parametrize("change", CHANGES)
async def test_replicas_that_restart_know_the_registered_paths(registrar, change):
    """All of them, with another configuration, while the registration is suspended: each policy judges all the same."""
    registrar.write(mutating=[labels(), NOTE])
    before = [await registrar.start(*STAYING) for _ in range(2)]
    webhooks = await registrar.registered(CHAIN)
    await registrar.annotate(**{SUSPENDED: "incident 7"})
    await registrar.in_state("suspended", *before)
    registrar.write(mutating=CHANGES[change])
    async with Creates(registrar.cluster) as creates:
        await creates.more()
        after = [await registrar.start(*STAYING) for _ in range(2)]
        for each in before:
            assert await registrar.balancer.delete(each) == 0
        done = creates.done
        await creates.more()
    assert creates.failed == []
    assert await registrar.registered(CHAIN) == webhooks
    for each in CHANGES[change]:
        judged = {"phase": "mutating", "policy": f"test/{each['name']}", "verdict": "allow"}
        assert sum(gateway.metric("policy_verdicts_total", **judged) for gateway in after) >= creates.done - done
    assert [each.metric("http_requests_rejected_total", reason="path") for each in after] == [0, 0]
