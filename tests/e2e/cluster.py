"""A test's own part of the API server: a namespace, and webhooks that are called for nothing outside of it.

Webhooks are registered as `render` prints them, with the test's namespaces as a further selector. kube-apiserver calls
them a moment later. To wait for that, the harness registers two webhooks of its own after them, which refuse one
object: kube-apiserver takes up the configurations of a kind in the order in which they were made.
"""

import asyncio
import json
import subprocess

from tests.e2e.api_server import JANE
from tests.e2e.client import eventually, path
from tests.e2e.objects import config_map, namespace, thing
from tests.integration.process import COMMAND
from tests.integration.running import source

SERVICE_NAMESPACE, SERVICE = "gateways", "gateway"
HOST = f"{SERVICE}.{SERVICE_NAMESPACE}.svc"
"""All gateways, each by its port: of a Service of type ExternalName, kube-apiserver uses no port of its own."""

UNTOUCHED = "default"
"""A namespace without webhooks."""

REFUSED_PORT = 1
"""Where nothing listens."""

_REGISTRATION = "admissionregistration.k8s.io/v1"
_KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_NOT_OF_WEBHOOKS = ("authorization.k8s.io/", "pod-security.kubernetes.io/")
_NAME_LABEL = "kubernetes.io/metadata.name"


async def prepare(client):
    """What all tests need, once: the gateways' Service, and a user who may edit what is in namespaces."""
    rbac = {"apiGroup": "rbac.authorization.k8s.io"}
    for obj in (
        namespace(SERVICE_NAMESPACE),
        service(),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "developers"},
            # `edit` itself is put together by a controller.
            "roleRef": rbac | {"kind": "ClusterRole", "name": "system:aggregate-to-edit"},
            "subjects": [rbac | {"kind": "Group", "name": "developers"}],
        },
    ):
        assert (await client.create(obj)).code == 201, obj
    await _in_force(client, "prepared")

    async def may_edit():
        return (await client.create(config_map(namespace=UNTOUCHED), user=JANE, dryRun="All")).code == 201

    await eventually(may_edit)


def service(name=SERVICE):
    """A Service that leads to this machine."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": SERVICE_NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


async def _in_force(client, name):
    """Wait until kube-apiserver uses all configurations that exist now. Returns two that were made for this."""
    made = [_refusal(kind, f"in-force-{name}", f"{name}-{kind}") for kind in _KINDS]
    for obj in made:
        label = obj["webhooks"][0]["objectSelector"]["matchLabels"]["probe"]
        await client.create(obj)

        async def refused(label=label):
            probe = config_map("probe", namespace=SERVICE_NAMESPACE, labels={"probe": label})
            reply = await client.create(probe, dryRun="All")
            return reply.code == 500 and "connection refused" in reply.message

        await eventually(refused)
    return made


def _refusal(kind, name, label):
    """A webhook that cannot be called, for what has this label."""
    webhook = {
        "name": "probe.e2e.example.com",
        "clientConfig": {"service": {"namespace": SERVICE_NAMESPACE, "name": SERVICE, "port": REFUSED_PORT}},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "objectSelector": {"matchLabels": {"probe": label}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {"apiVersion": _REGISTRATION, "kind": kind, "metadata": {"name": name}, "webhooks": [webhook]}


class Cluster:
    """A test's own part of it. ``namespace`` exists; its webhooks would see a namespace ``other`` too, once it does.

    ``policies`` is the path of the gateways' policies, ``hooks`` that of their hooks, if they have any. ``service`` and
    ``ca_file`` are what is registered.
    """

    def __init__(self, client, name, folder, *, ca_file, workers, serve):
        self.client = client
        self.namespace, self.other = name, f"{name}-other"
        self.policies = folder / "policies.yaml"
        self.hooks = None
        self.service, self.ca_file = SERVICE, ca_file
        self._workers, self._serve = workers, serve
        self._registered = []
        self._gateways = []

    async def open(self):
        """Make the namespace."""
        assert (await self.client.create(namespace(self.namespace))).code == 201

    async def close(self):
        """Take the webhooks away, and all gateways at once. The namespace stays: ending it is a controller's work."""
        for gateway in self._gateways:
            if gateway.process.poll() is None:
                gateway.terminate()
        for obj in self._registered:
            await self.client.delete(obj)
        errors = [line for gateway in self._gateways for line in gateway.internal_errors()]
        assert errors == [], errors

    async def enforce(self, *flags, **policies):
        """Serve these policies, and register them: one gateway, which is returned."""
        self.write(**policies)
        gateway = await self.start(*flags)
        await self.register(gateway.port)
        return gateway

    def write(self, *, workers=None, documents=(), **policies):
        """The policies of all gateways that start from now on: see ``source``; ``documents`` besides."""
        text = source(workers=self._workers | (workers or {}), **policies)
        self.policies.write_text("---\n".join([text, *(json.dumps(each) + "\n" for each in documents)]))

    async def start(self, *flags, **options):
        """One more gateway. At its end it does not wait for kube-apiserver, which keeps idle connections for 90 s."""
        gateway = self._serve("--policies", self.policies, *self._hooks(), "--drain", 0, *flags, **options)
        self._gateways.append(gateway)
        return await asyncio.to_thread(gateway.ready)

    async def register(self, port, *others, flags=()):
        """Register the policies at this port, for other namespaces too, and wait until that is in force.

        ``flags`` are those of ``render``.
        """
        for obj in await asyncio.to_thread(self._render, port, *flags):
            await self.apply_webhooks(obj, self.namespace, self.other, *others)
        await self.webhooks_in_force()

    async def webhooks_in_force(self):
        """Wait until all webhooks that are registered by now are in force."""
        self._registered += await _in_force(self.client, f"{self.namespace}-{len(self._registered)}")

    async def register_everywhere(self, port, *flags):
        """Register the policies at this port as `render` prints them, for all namespaces: only for a test's time."""
        for obj in await asyncio.to_thread(self._render, port, *flags):
            reply = await self.client.apply(obj)
            assert reply.code in {200, 201}, reply
            self._registered.append(obj)
        self._registered += await _in_force(self.client, f"{self.namespace}-everywhere")

    async def unregister(self):
        """Take the webhooks away, and wait until that is in force."""
        removed, self._registered = self._registered, []
        for obj in removed:
            await self.client.delete(obj)
        self._registered += await _in_force(self.client, f"{self.namespace}-removed")

    async def apply_webhooks(self, obj, *namespaces):
        """Register webhooks for these namespaces; see ``webhooks_in_force``."""
        selected = {"key": _NAME_LABEL, "operator": "In", "values": list(namespaces)}
        for webhook in obj["webhooks"]:
            webhook.setdefault("namespaceSelector", {}).setdefault("matchExpressions", []).append(selected)
        reply = await self.client.apply(obj)
        assert reply.code in {200, 201}, reply
        self._registered.append(obj)

    def _hooks(self):
        return ["--hooks-dir", self.hooks] if self.hooks else []

    def _render(self, port, *flags):
        command = [
            COMMAND,
            "render",
            self.policies,
            *self._hooks(),
            "--name",
            self.namespace,
            "--output",
            "json",
            *flags,
        ]
        place = ["--service", f"{SERVICE_NAMESPACE}/{self.service}:{port}", "--ca-bundle", self.ca_file]
        done = subprocess.run([*command, *place], capture_output=True, check=True)
        printed = json.loads(done.stdout)
        return printed["items"] if printed["kind"] == "List" else [printed]

    async def create(self, obj, **options):
        """Create it in the namespace."""
        return await self.client.create(self.own(obj), **options)

    async def send(self, method, obj, body=None, *, sub="", **options):
        """A request about an object in the namespace, or a subresource of it."""
        return await self.client.send(method, path(self.own(obj)) + sub, body, **options)

    async def get(self, obj):
        """What is stored of it."""
        reply = await self.client.get(self.own(obj))
        assert reply.code == 200, reply
        return reply.body

    def own(self, obj):
        """The object in the namespace."""
        return obj | {"metadata": {"namespace": self.namespace} | obj["metadata"]}

    def audited(self, reply):
        """The audit annotations of a request that are about webhooks."""
        found = self.client.server.audited(reply.audit_id)
        return {key: value for key, value in found.items() if not key.startswith(_NOT_OF_WEBHOOKS)}


async def define_things(client):
    """Make the kind of ``thing``, unless it is there, and wait until it is served."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    spec = {"group": "e2e.example.com", "names": {"kind": "Thing", "plural": "things"}, "scope": "Namespaced"}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    definition |= {"metadata": {"name": "things.e2e.example.com"}, "spec": spec | {"versions": [version]}}
    await client.create(definition)

    async def served():
        probe = thing("probe", {}, namespace=UNTOUCHED)
        return (await client.create(probe, dryRun="All")).code == 201

    await eventually(served)
