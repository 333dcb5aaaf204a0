"""matchPolicy Equivalent: a policy gets the requests, and the versions, that a webhook registered directly gets.

The API server knows which resources are equivalent, and converts. So the gateway reads nothing of that from it.
"""

import base64
import json
from collections import defaultdict

import pytest

from gateway.matching.equivalents import SHARED_STORAGE
from tests.e2e.client import MERGE, eventually, path
from tests.e2e.cluster import SERVICE, SERVICE_NAMESPACE, UNTOUCHED
from tests.e2e.generated import WebhookServer, register_three_ways
from tests.e2e.policies import judge, rules
from tests.webhooks.native import configuration, webhook

GROUP = "versions.example.com"
SCALERS = "horizontalpodautoscalers"

SERIAL = ("--no-prefetch", "--idempotency-sample-ratio", "0")
"""Without these, a mutating policy is called with the original object too, and with its own result."""

_SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(kind, *versions, unserved=()):
    """A CustomResourceDefinition. It stores v1, and its objects are the same in all versions."""
    made = [
        {
            "name": version,
            "served": version not in unserved,
            "storage": version == "v1",
            "schema": {"openAPIV3Schema": _ANYTHING},
            "subresources": {"status": {}, "scale": _SCALE},
        }
        for version in versions
    ]
    plural = f"{kind.lower()}s"
    names = {"kind": kind, "plural": plural}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": made},
    }


async def define(client, made):
    """Make or change the definition, and wait until its versions are served."""
    assert (await client.apply(made)).code in {200, 201}
    for version in made["spec"]["versions"]:
        probe = custom(made["spec"]["names"]["kind"], version["name"], UNTOUCHED)

        async def served(probe=probe):
            return (await client.create(probe, dryRun="All")).code == 201

        if version["served"]:
            await eventually(served)


def custom(kind, version, where):
    metadata = {"name": version, "namespace": where, "labels": {"app": "x"}}
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": metadata, "spec": {"replicas": 1}}


def scaler(version, where):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": version, "namespace": where},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3},
    }


def event(group, where):
    """An Event of the core group, or of events.k8s.io."""
    about = {"kind": "Pod", "namespace": where, "name": "p"}
    metadata = {"metadata": {"name": group or "core", "namespace": where}}
    base = {"kind": "Event", "reason": "R", "type": "Normal"} | metadata
    if not group:
        return base | {"apiVersion": "v1", "involvedObject": about}
    reporter = {"reportingController": "example.com/c", "reportingInstance": "c", "action": "A"}
    when = {"eventTime": "2026-01-01T00:00:00.000000Z"}
    return base | reporter | when | {"apiVersion": f"{group}/v1", "regarding": about}


def customs(*versions, kind="gadgets", group=GROUP, sub=""):
    """A rule for each of these versions, in this order."""
    return [rule for version in versions for rule in rules(kind + sub, group=group, version=version)]


def when(expression):
    return [{"name": "when", "expression": expression}]


HOOKS = {
    "v1": {"rules": customs("v1")},
    "v1beta1": {"rules": customs("v1beta1")},
    "v1alpha1": {"rules": customs("v1alpha1")},
    "v9": {"rules": customs("v9")},
    "any-version": {"rules": customs("*")},
    "any-group": {"rules": customs("v1", group="*")},
    "any-group-v1beta1": {"rules": customs("v1beta1", group="*")},
    "two": {"rules": customs("v1beta1", "v1")},
    "exact": {"rules": customs("v1"), "matchPolicy": "Exact"},
    "exact-v1beta1": {"rules": customs("v1beta1"), "matchPolicy": "Exact"},
    "status": {"rules": customs("v1", sub="/status")},
    "scale": {"rules": customs("v1", sub="/scale")},
    "subresources": {"rules": customs("v1", sub="/*")},
    "everything": {"rules": rules("*/*", group=GROUP)},
    "kind": {"rules": customs("v1"), "matchConditions": when("request.kind.version == 'v1'")},
    "resource": {"rules": customs("v1"), "matchConditions": when("request.resource.version == 'v1beta1'")},
    "object": {"rules": customs("v1"), "matchConditions": when("object != null && object.apiVersion.endsWith('/v1')")},
    "selected": {"rules": customs("v1"), "objectSelector": {"matchLabels": {"app": "x"}}},
    "unselected": {"rules": customs("v1"), "objectSelector": {"matchLabels": {"app": "y"}}},
    "scalers-v1": {"rules": rules(SCALERS, group="autoscaling")},
    "scalers-v2": {"rules": rules(SCALERS, group="autoscaling", version="v2")},
    "scalers-v2beta9": {"rules": rules(SCALERS, group="autoscaling", version="v2beta9")},
    "scalers-exact": {"rules": rules(SCALERS, group="autoscaling"), "matchPolicy": "Exact"},
    "events-core": {"rules": rules("events")},
    "events-new": {"rules": rules("events", group="events.k8s.io")},
    "events-any": {"rules": rules("events", group="*")},
    "events-exact": {"rules": rules("events"), "matchPolicy": "Exact"},
    "core": {"rules": rules("*")},
}
"""The fields of webhooks, by the resources that their rules name."""


class Recorder(WebhookServer):
    """A server that allows all requests. ``calls``: what it got, by namespace and path."""

    def __init__(self, pair):
        super().__init__(pair)
        self.calls = defaultdict(list)

    def respond(self, path, called):
        """Allow, and if it is mutating, note the version of the object; or convert objects."""
        if path == "convert":
            return converted(called)
        self.calls[called["namespace"], path].append(shown(called))
        allowed = {"allowed": True}
        obj = called["object"]
        if not path.startswith("m-") or obj is None or "subResource" in called:
            return allowed
        notes = obj["metadata"].get("annotations") or {}
        value = notes | {path: f"{obj['apiVersion']} with {sorted(notes)}"}
        patch = json.dumps([{"op": "add", "path": "/metadata/annotations", "value": value}]).encode()
        return allowed | {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}

    def versions(self, where, path):
        """The versions of the calls: as requested, as delivered."""
        calls = self.calls[where, path]
        return {(named(each["requestResource"]), named(each["resource"])) for each in calls}


def converted(called):
    """The response of a conversion webhook that labels objects with their version."""
    api = called["desiredAPIVersion"]
    labels = {"labels": {"version": api.rpartition("/")[2]}}
    objects = [each | {"apiVersion": api, "metadata": each["metadata"] | labels} for each in called["objects"]]
    return {"convertedObjects": objects, "result": {"status": "Success"}}


def shown(called):
    """What of a request depends on versions."""
    members = ("kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource", "operation")
    found = {name: called.get(name) for name in members}
    return found | {name: (called[name] or {}).get("apiVersion") for name in ("object", "oldObject")}


def named(resource):
    return f"{resource['group']}/{resource['version']}"


def by_service(path, port):
    return {"service": {"namespace": SERVICE_NAMESPACE, "name": SERVICE, "path": path, "port": port}}


def native(cluster, authority, server, hooks):
    """The webhooks of both phases."""

    def made(kind, prefix):
        webhooks = []
        for key, fields in hooks.items():
            client = by_service(f"/{prefix}-{key}", server.port)
            webhooks.append(webhook(f"{prefix}-{key}.{GROUP}", client, authority, **fields))
        return configuration(kind, f"{cluster.namespace}-versions", *webhooks)

    return [made("Mutating", "m"), made("Validating", "v")]


@pytest.fixture
async def server(ca_file):
    async with Recorder((ca_file.with_name("tls.crt"), ca_file.with_name("tls.key"))) as started:
        yield started


async def send_all(client, where):
    """Requests about all kinds in all versions. Returns what is stored after each."""
    replies = []
    for version in ("v1", "v1beta1"):
        obj = custom("Gadget", version, where)
        replies += [
            await client.create(obj),
            await client.send("PATCH", path(obj), {"spec": {"replicas": 2}}, media=MERGE),
            await client.send("PATCH", f"{path(obj)}/status", {"status": {"replicas": 2}}, media=MERGE),
            await client.send("PATCH", f"{path(obj)}/scale", {"spec": {"replicas": 3}}, media=MERGE),
            await client.delete(obj),
        ]
    objects = [scaler(version, where) for version in ("v1", "v2")]
    objects += [event(group, where) for group in SHARED_STORAGE["events"]]
    for obj in objects:
        replies += [await client.create(obj), await client.delete(obj)]
    assert {reply.code for reply in replies} <= {200, 201}, replies
    return [reply.body["metadata"].get("annotations") for reply in replies if "metadata" in reply.body]


def assert_same_calls(server, where, hooks):
    """In all namespaces. The API server repeats the calls of a write that found its cache behind."""
    for name in [f"{prefix}-{key}" for prefix in "mv" for key in hooks]:
        directly, *behind = [set(map(json.dumps, server.calls[each, name])) for each in where]
        assert behind == [directly, directly], name


async def test_a_policy_gets_what_a_webhook_registered_directly_gets(cluster, authority, server):
    """Isolated and grouped: the same requests in the same version, and the same object stored.

    An Event of the other group is converted too, and a version is converted to even if it is not served.
    """
    await define(cluster.client, definition("Gadget", "v1beta1", "v1alpha1", "v1", unserved=["v1alpha1"]))
    where = await register_three_ways(cluster, server, native(cluster, authority, server, HOOKS), *SERIAL)
    directly, *behind = [await send_all(cluster.client, each) for each in where]
    assert behind == [directly, directly]
    assert_same_calls(server, where, HOOKS)
    served = [f"{GROUP}/v1", f"{GROUP}/v1beta1"]
    assert server.versions(where[2], "v-v1") == {(each, served[0]) for each in served}
    assert server.versions(where[2], "v-v1alpha1") == {(each, f"{GROUP}/v1alpha1") for each in served}
    assert server.versions(where[2], "v-any-version") == {(each, each) for each in served}
    assert server.versions(where[2], "v-v9") == set()
    assert server.versions(where[2], "v-events-core") == {("/v1", "/v1"), ("events.k8s.io/v1", "/v1")}
    both = {("autoscaling/v1", "autoscaling/v1"), ("autoscaling/v2", "autoscaling/v1")}
    assert server.versions(where[2], "v-scalers-v1") == both


async def test_a_definition_and_a_version_may_come_after_the_start(cluster, authority, server):
    """The API server uses them at once; the registration need not change."""
    hooks = {version: {"rules": customs(version, kind="widgets")} for version in ("v1", "v2", "*")}
    hooks["any"] = hooks.pop("*")
    where = await register_three_ways(cluster, server, native(cluster, authority, server, hooks), *SERIAL)
    for served in (["v1"], ["v1", "v2"]):
        await define(cluster.client, definition("Widget", *served))
        for obj in [custom("Widget", version, each) for version in served for each in where]:
            assert (await cluster.client.create(obj)).code == 201
            assert (await cluster.client.delete(obj)).code == 200
        assert_same_calls(server, where, hooks)
        assert server.versions(where[2], "v-v1") == {(f"{GROUP}/{each}", f"{GROUP}/v1") for each in served}
        expected = {(f"{GROUP}/{each}", f"{GROUP}/v2") for each in served} if "v2" in served else set()
        assert server.versions(where[2], "v-v2") == expected


async def test_of_several_versions_in_its_rules_a_grouped_policy_may_get_another(cluster, authority, server):
    """A webhook gets the one that its rules name first; policies that share an entry get the same one."""
    hooks = {"first": {"rules": customs("v1", "v1alpha1")}, "last": {"rules": customs("v1alpha1", "v1")}}
    await define(cluster.client, definition("Gadget", "v1beta1", "v1alpha1", "v1", unserved=["v1alpha1"]))
    where = await register_three_ways(cluster, server, native(cluster, authority, server, hooks), *SERIAL)
    for each in where:
        assert (await cluster.client.create(custom("Gadget", "v1beta1", each))).code == 201
    delivered = [[server.calls[each, f"v-{name}"][0]["resource"]["version"] for name in hooks] for each in where]
    assert delivered == [["v1", "v1alpha1"], ["v1", "v1alpha1"], ["v1alpha1", "v1alpha1"]]


@pytest.mark.parametrize(
    ("selected", "directly", "grouped"),
    [(["v1", "v1beta1"], ["v1beta1"], ["v1"]), (["v1beta1"], ["v1beta1"], [])],
    ids=["selectors that differ", "the same selector"],
)
async def test_a_grouped_policy_selects_by_the_labels_of_the_converted_object(
    cluster, authority, server, selected, directly, grouped
):
    """A webhook by those that the client sent. They differ only if a conversion webhook changes them.

    The selector that all policies of an entry have is registered too: they are selected by both.
    """
    hooks = {
        version: {"rules": customs("v1", kind="tags"), "objectSelector": {"matchLabels": {"version": version}}}
        for version in selected
    }
    made = definition("Tag", "v1beta1", "v1")
    bundle = {"caBundle": base64.b64encode(authority.pem).decode()}
    conversion = {"clientConfig": by_service("/convert", server.port) | bundle, "conversionReviewVersions": ["v1"]}
    made["spec"]["conversion"] = {"strategy": "Webhook", "webhook": conversion}
    await define(cluster.client, made)
    where = await register_three_ways(cluster, server, native(cluster, authority, server, hooks), *SERIAL)
    for each in where:
        obj = custom("Tag", "v1beta1", each)
        obj["metadata"]["labels"] = {"version": "v1beta1"}
        assert (await cluster.client.create(obj)).code == 201
    called = [[version for version in hooks if server.calls[each, f"v-{version}"]] for each in where]
    assert called == [directly, directly, grouped]


async def test_no_registration_is_a_way_around_a_policy(cluster, authority):
    """One that names every group and version delivers what the policies do not name: refused, never "not matched"."""
    await define(cluster.client, definition("Gadget", "v1beta1", "v1"))
    cluster.write(validating=[judge(rules=customs("v1")), judge("events", rules=rules("events"))])
    gateway = await cluster.start()
    matched = rules("gadgets", "events", group="*", version="*")
    hook = webhook("all.example.com", by_service("/validate", gateway.port), authority, rules=matched)
    await cluster.apply_webhooks(configuration("Validating", f"{cluster.namespace}-all", hook), cluster.namespace)
    await cluster.webhooks_in_force()
    for obj in (custom("Gadget", "v1", cluster.namespace), event("", cluster.namespace)):
        assert (await cluster.client.create(obj)).code == 201
    for obj in (custom("Gadget", "v1beta1", cluster.namespace), event("events.k8s.io", cluster.namespace)):
        reply = await cluster.client.create(obj)
        assert reply.code == 500, reply
        assert "WRONG_VERSION" in reply.message


async def test_what_is_stored_together_is_known(cluster):
    """In discovery, resources that are stored as the same kind have the same hash: those of one group, and events."""
    found = defaultdict(set)
    listed = (await cluster.client.send("GET", "/apis")).body["groups"]
    versions = [version["groupVersion"] for group in listed for version in group["versions"]]
    for path_of in ["/api/v1", *(f"/apis/{each}" for each in versions)]:
        discovered = (await cluster.client.send("GET", path_of)).body
        group = discovered["groupVersion"].rpartition("/")[0]
        for each in discovered["resources"]:
            if "storageVersionHash" in each:
                found[each["storageVersionHash"]].add((group, each["name"]))
    shared = [resources for resources in found.values() if len({group for group, _ in resources}) > 1]
    assert shared == [{(group, "events") for group in SHARED_STORAGE["events"]}]
