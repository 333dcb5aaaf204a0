"""The scenarios of Kubernetes' end-to-end tests of webhooks, with its own agnhost behind the gateway.

They are those of test/e2e/apimachinery/webhook.go; what they do with single objects is in test_existing_webhooks. Where
they create, change or delete a configuration, the gateway has it as a policy, and its registration follows.
"""

import asyncio
import signal
import subprocess

import pytest

from tests.e2e.client import JSON_PATCH, MERGE, eventually
from tests.e2e.cluster import HOST, SERVICE, SERVICE_NAMESPACE, UNTOUCHED
from tests.e2e.objects import config_map, namespace, pod
from tests.e2e.policies import CONFIG_MAPS, rules
from tests.e2e.test_existing_webhooks import START, UNWANTED
from tests.integration.process import COMMAND
from tests.integration.running import until
from tests.webhooks.native import configuration, text, webhook

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
CREATED = rules("configmaps", operations=["CREATE"])
STAGE_1, STAGE_2 = {"mutation-stage-1": "yes"}, {"mutation-stage-2": "yes"}
NO_CONFIG_MAP = "the configmap contains unwanted key and value"
SKIP = {"skip-webhook-admission": "yes"}
KINDS = ("Mutating", "Validating")


class Behind:
    """One gateway with agnhost's webhooks as policies, registered for the test's two namespaces."""

    def __init__(self, cluster, port, authority, flags):
        self.cluster, self._port, self._authority = cluster, port, authority
        self._flags = ("--resolve", f"{HOST}:{port}=127.0.0.1:{port}", *flags)
        self._gateway = None
        self._loaded = 0

    def hook(self, name, route, matched=CREATED, *, trusted=True, **fields):
        """A webhook of agnhost's; without ``trusted`` it has no caBundle."""
        service = {"namespace": SERVICE_NAMESPACE, "name": SERVICE, "path": route, "port": self._port}
        bundle = self._authority if trusted else None
        return webhook(f"{name}.k8s.io", {"service": service}, bundle, rules=matched, **fields)

    async def register(self, *objects):
        """Have these configurations instead of those before."""
        self.cluster.policies.write_text(text({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
        if self._gateway is None:
            self._gateway = await self.cluster.start(*self._flags)
        else:
            self._loaded += 1
            self._gateway.process.send_signal(signal.SIGHUP)
            await until(lambda: self._gateway.metric("configuration_reloads_total", result="loaded") == self._loaded)
        await self.cluster.register(self._gateway.port)

    async def validate(self, *hooks):
        await self.register(configuration("Validating", "e2e", *hooks))

    async def mutate(self, *hooks):
        await self.register(configuration("Mutating", "e2e", *hooks))

    async def denied(self, obj, *words):
        """The object cannot be created, and its user reads these words."""
        reply = await self.cluster.create(obj)
        assert reply.code >= 400, reply
        assert [word for word in words if word not in reply.message] == [], reply
        return reply

    async def stored(self, obj, **options):
        """What becomes of an object that can be created."""
        reply = await self.cluster.create(obj, **options)
        assert reply.code == 201, reply
        return reply.body


@pytest.fixture
async def behind(cluster, agnhost, authority, api_server, tmp_path):
    assert (await cluster.client.create(namespace(cluster.other, labels=SKIP))).code == 201
    return Behind(cluster, agnhost.port, authority, ("--kubeconfig", api_server.kubeconfig(tmp_path)))


async def test_deny_create(behind):
    """Unwanted pods and configmaps, those that hang, and what is in a namespace that is left out."""
    unless = {"matchExpressions": [{"key": "skip-webhook-admission", "operator": "NotIn", "values": ["yes"]}]}
    await behind.validate(
        behind.hook("deny-unwanted-pod", "/pods", rules("pods", operations=["CREATE"]), timeoutSeconds=1),
        behind.hook("deny-unwanted-configmap-data", "/configmaps", CONFIG_MAPS, namespaceSelector=unless),
        behind.hook("fail-open", "/configmaps", trusted=False, failurePolicy="Ignore"),
    )
    unwanted = pod("unwanted", labels=UNWANTED)
    unwanted["spec"]["containers"][0]["name"] = "webhook-disallow"
    await behind.denied(unwanted, "the pod contains unwanted container name", "the pod contains unwanted label")
    await behind.denied(pod("hangs", labels={"webhook-e2e-test": "wait-forever"}), "webhook", "deadline")
    assert (await behind.cluster.send("GET", pod("hangs"))).code == 404
    await behind.denied(config_map("unwanted", data=UNWANTED), NO_CONFIG_MAP)
    admitted = config_map("admitted", data={"admit": "this"})
    await behind.stored(admitted)
    for method, media in (("PUT", "application/json"), ("PATCH", "application/strategic-merge-patch+json")):
        changed = admitted | {"data": UNWANTED}
        reply = await behind.cluster.send(method, admitted, changed, media=media)
        assert (reply.code, NO_CONFIG_MAP in reply.message) == (400, True)
    await behind.stored(config_map("unwanted", data=UNWANTED, namespace=behind.cluster.other))


async def test_fail_closed(behind):
    """What cannot be called for want of a caBundle refuses with InternalError."""
    await behind.validate(behind.hook("fail-closed", "/configmaps", trusted=False))
    reply = await behind.denied(config_map(), "failed calling webhook")
    assert (reply.code, reply.body["reason"]) == (500, "InternalError")


async def test_a_mutated_pod_has_defaults(behind):
    """Those of the API server, which come after the mutation."""
    await behind.mutate(behind.hook("adding-init-container", "/mutating-pods", rules("pods", operations=["CREATE"])))
    (added,) = (await behind.stored(pod("webhook-to-be-mutated")))["spec"]["initContainers"]
    assert (added["name"], added["terminationMessagePolicy"]) == ("webhook-added-init-container", "File")


async def test_configurations_of_webhooks_are_left_alone(behind):
    """No webhook is called for them."""
    group = {"group": "admissionregistration.k8s.io", "version": "*"}
    resources = [f"{kind.lower()}webhookconfigurations" for kind in KINDS]
    deletions, creations = (rules(*resources, operations=[each], **group) for each in ("DELETE", "CREATE"))
    await behind.register(
        configuration("Validating", "e2e", behind.hook("deny-deletions", "/always-deny", deletions)),
        configuration("Mutating", "e2e", behind.hook("add-label", "/add-label", creations)),
    )
    for kind, resource in zip(KINDS, resources, strict=True):
        made = configuration(kind, f"{behind.cluster.namespace}-dummy")
        made = await behind.cluster.client.send("POST", f"{REGISTRATION}/{resource}", made)
        assert (made.code, "labels" in made.body["metadata"]) == (201, False)
        name = made.body["metadata"]["name"]
        assert (await behind.cluster.client.send("DELETE", f"{REGISTRATION}/{resource}/{name}")).code == 200


class Kind:
    """A kind of the test's own, with versions v1 and v2, of which v1 is stored."""

    def __init__(self, client, group, data):
        self.client, self.group, self.name = client, group, f"widgets.{group}"
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"data": data, "dummy": {"type": "string"}}}}
        self.versions = [
            {"name": each, "served": True, "storage": each == "v1", "schema": schema} for each in ("v1", "v2")
        ]
        self.definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": group,
                "names": {"kind": "Widget", "plural": "widgets"},
                "scope": "Namespaced",
                "versions": self.versions,
            },
        }

    def object(self, version="v1", **metadata):
        return {"apiVersion": f"{self.group}/{version}", "kind": "Widget", "metadata": {"name": "w"} | metadata}

    def rules(self):
        return rules("widgets", group=self.group, operations=["CREATE", "UPDATE"])

    async def define(self):
        assert (await self.client.create(self.definition)).code == 201

        async def served():
            replies = [
                await self.client.create(self.object(version, namespace=UNTOUCHED), dryRun="All")
                for version in ("v1", "v2")
            ]
            return all(reply.code == 201 for reply in replies)

        await eventually(served)

    async def store_v2(self):
        versions = [each | {"storage": each["name"] == "v2"} for each in self.versions]
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{self.name}"
        assert (await self.client.send("PATCH", path, {"spec": {"versions": versions}}, media=MERGE)).code == 200


async def mutated_twice(behind, data):
    """A kind whose data are of this schema, and an object of it that two webhooks have mutated."""
    kind = Kind(behind.cluster.client, f"{behind.cluster.namespace}.example.com", data)
    await kind.define()
    stages = [behind.hook(f"stage-{each}", "/mutating-custom-resource", kind.rules()) for each in (1, 2)]
    await behind.mutate(*stages)
    return kind, await behind.stored(kind.object() | {"data": START})


async def test_a_mutated_custom_resource_is_pruned(behind):
    """What its schema does not know is dropped after the mutation."""
    known = {name: {"type": "string"} for name in START | STAGE_1}
    _, stored = await mutated_twice(behind, {"type": "object", "properties": known})
    assert stored["data"] == START | STAGE_1


async def test_a_custom_resource_is_mutated_whatever_version_is_stored(behind):
    """It is patched through v2, which is stored now, and the webhooks' rules name v1."""
    kind, stored = await mutated_twice(behind, {"type": "object", "additionalProperties": {"type": "string"}})
    assert stored["data"] == START | STAGE_1 | STAGE_2
    await kind.store_v2()
    patch = [{"op": "add", "path": "/dummy", "value": "test"}]
    reply = await behind.cluster.send("PATCH", kind.object("v2"), patch, media=JSON_PATCH)
    assert (reply.code, reply.body["dummy"], reply.body["data"]) == (200, "test", START | STAGE_1 | STAGE_2)


async def test_deny_custom_resource_definition(behind):
    """One with the unwanted label, if the objectSelector selects it."""
    unique = {"e2e": behind.cluster.namespace}
    created = rules("customresourcedefinitions", group="apiextensions.k8s.io", version="*", operations=["CREATE"])
    await behind.validate(behind.hook("deny-crd", "/crd", created, objectSelector={"matchLabels": unique}))
    kind = Kind(behind.cluster.client, f"{behind.cluster.namespace}.example.com", {"type": "object"})
    for labels, code in ((unique | UNWANTED, 400), (UNWANTED, 201)):
        labelled = kind.definition | {"metadata": {"name": kind.name, "labels": labels}}
        reply = await behind.cluster.client.create(labelled, dryRun="All")
        assert reply.code == code, reply
        assert code == 201 or "the crd contains unwanted label" in reply.message


async def test_honor_timeout(behind):
    """A webhook that takes five seconds is waited for as long as it says, 10 s by default."""
    cases = {
        "shorter": ({"timeoutSeconds": 1}, 500),
        "ignored": ({"timeoutSeconds": 1, "failurePolicy": "Ignore"}, 201),
        "longer": ({"timeoutSeconds": 10}, 201),
        "default": ({}, 201),
    }
    hooks = []
    for name, (fields, _) in cases.items():
        hook = behind.hook(name, "/always-allow-delay-5s", objectSelector={"matchLabels": {"case": name}})
        del hook["timeoutSeconds"]
        hooks.append(hook | fields)
    await behind.validate(*hooks)
    created = [behind.cluster.create(config_map(name, labels={"case": name})) for name in cases]
    replies = dict(zip(cases, await asyncio.gather(*created), strict=True))
    assert {name: reply.code for name, reply in replies.items()} == {name: code for name, (_, code) in cases.items()}
    assert "/always-allow-delay-5s?timeout=1s" in replies["shorter"].message
    assert "deadline" in replies["shorter"].message


async def test_changed_and_removed_configurations(behind):
    """Of rules without CREATE nothing is called; ten configurations work at once, and are removed together."""
    validating = behind.hook("deny-unwanted-configmap-data", "/configmaps")
    mutating = behind.hook("adding-configmap-data-stage-1", "/mutating-configmaps")
    updates = {"rules": rules("configmaps", operations=["UPDATE"])}

    def both(count=1, **fields):
        hooks = zip(KINDS, (mutating | fields, validating | fields), strict=True)
        return [configuration(kind, f"e2e-{index}", hook) for kind, hook in hooks for index in range(count)]

    steps = [
        (both(), 400, STAGE_1),
        (both(**updates), 201, {}),
        (both(), 400, STAGE_1),
        (both(10), 400, STAGE_1 | STAGE_2),
        ([], 201, {}),
    ]
    for number, (objects, code, added) in enumerate(steps):
        await behind.register(*objects)
        reply = await behind.cluster.create(config_map(f"unwanted-{number}", data=UNWANTED))
        assert (reply.code, NO_CONFIG_MAP in reply.body.get("message", "")) == (code, code == 400)
        stored = await behind.stored(config_map(f"started-{number}", data=START))
        assert stored["data"] == START | added


async def test_match_conditions(behind):
    """They are registered as they were written, and decide; what does not compile is refused."""
    conditions = [{"name": "expression-1", "expression": "object.metadata.name != 'skip-me'"}]
    for more in ([], [{"name": "expression-2", "expression": "object.metadata.namespace != 'production'"}]):
        await behind.mutate(behind.hook("stage-1", "/mutating-configmaps", matchConditions=conditions + more))
        path = f"{REGISTRATION}/mutatingwebhookconfigurations/{behind.cluster.namespace}"
        (registered,) = (await behind.cluster.client.send("GET", path)).body["webhooks"]
        assert registered["matchConditions"] == conditions + more
        for name, added in ((f"mutated-{len(more)}", STAGE_1), ("skip-me", {})):
            stored = await behind.stored(config_map(name, data=START), dryRun="All")
            assert stored["data"] == START | added
    bad = [{"name": "bad", "expression": "... [] bad expression"}]
    for kind in KINDS:
        hook = behind.hook("bad", "/always-allow", matchConditions=bad)
        command = [COMMAND, "check", "-"]
        written = text(configuration(kind, "bad", hook)).encode()
        done = await asyncio.to_thread(subprocess.run, command, input=written, capture_output=True)
        assert done.returncode == 1
        assert b"compilation failed" in done.stdout + done.stderr


async def test_the_resources_are_discovered(behind):
    """Whatever is registered."""
    groups = (await behind.cluster.client.send("GET", "/apis")).body["groups"]
    (found,) = [each for each in groups if each["name"] == "admissionregistration.k8s.io"]
    assert "v1" in [each["version"] for each in found["versions"]]
    resources = {each["name"] for each in (await behind.cluster.client.send("GET", REGISTRATION)).body["resources"]}
    assert {f"{kind.lower()}webhookconfigurations" for kind in KINDS} <= resources
