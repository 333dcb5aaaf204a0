"""Every kind of request that kube-apiserver calls webhooks for arrives, is judged, and the verdict holds."""

import json

import pytest

from tests.e2e.api_server import JANE
from tests.e2e.client import JSON_PATCH, MERGE, collection
from tests.e2e.cluster import UNTOUCHED, define_things
from tests.e2e.objects import config_map, deployment, namespace, pod, thing
from tests.e2e.policies import CONFIG_MAPS, ENTRY, THINGS, default_labels, denies, judge, note, rules

MEGABYTE = 1 << 20

EPHEMERAL = [{"name": "debug", "image": "busybox", "terminationMessagePolicy": "File"}]
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
BINDING = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}

REQUESTS = {
    "pods/status": ("PATCH", pod(), {"status": {"message": "x"}}, "UPDATE", "Pod"),
    "pods/ephemeralcontainers": ("PATCH", pod(), {"spec": {"ephemeralContainers": EPHEMERAL}}, "UPDATE", "Pod"),
    "pods/eviction": ("POST", pod(), EVICTION, "CREATE", "Eviction"),
    "pods/binding": ("POST", pod(), BINDING, "CREATE", "Binding"),
    "pods/exec": ("POST", pod(), None, "CONNECT", "PodExecOptions"),
    "pods/portforward": ("POST", pod(), None, "CONNECT", "PodPortForwardOptions"),
    "deployments/scale": ("PATCH", deployment(), {"spec": {"replicas": 3}}, "UPDATE", "Scale"),
    "deployments/status": ("PATCH", deployment(), {"status": {"replicas": 3}}, "UPDATE", "Deployment"),
}
"""By resource and subresource: method, object, body; the operation and the kind that a policy sees."""


def annotated(cluster, reply):
    """The members of the request that the policy "judge" saw."""
    prefix = f"{ENTRY}/judge.test.example.com_"
    found = cluster.audited(reply)
    return {key.removeprefix(prefix): json.loads(text) for key, text in found.items() if key.startswith(prefix)}


@pytest.mark.parametrize("resource", REQUESTS)
async def test_a_subresource_is_judged(cluster, resource):
    """A policy sees operation, kind and name of a request for a subresource, and its denial holds."""
    method, obj, body, operation, kind = REQUESTS[resource]
    group = "apps" if "deployments" in resource else ""
    annotate = ["operation", "kind", "subResource", "name"]
    await cluster.enforce(validating=[denies("not you", annotate=annotate, rules=rules(resource, group=group))])
    assert (await cluster.create(obj)).code == 201
    sub = resource.partition("/")[2]
    media = MERGE if method == "PATCH" else "application/json"
    options = {"command": "id"} if sub == "exec" else {}
    reply = await cluster.send(method, obj, body, sub=f"/{sub}", media=media, **options)
    assert (reply.code, reply.message) == (403, f'admission webhook "{ENTRY}" denied the request: not you')
    seen = annotated(cluster, reply)
    assert seen.pop("kind")["kind"] == kind
    assert seen == {"operation": operation, "subResource": sub, "name": obj["metadata"]["name"]}


async def test_a_deletion_is_judged_by_the_old_object(cluster):
    """A DELETE brings no object: selector and policy see what was there, of each object of a collection."""
    selector = {"matchLabels": {"keep": "yes"}}
    deletions = rules("configmaps", operations=["DELETE"])
    await cluster.enforce(validating=[denies("kept", annotate=["object"], rules=deletions, objectSelector=selector)])
    kept, other = config_map("kept", labels={"keep": "yes"}), config_map("other")
    for obj in (kept, other):
        assert (await cluster.create(obj)).code == 201
    reply = await cluster.send("DELETE", kept)
    assert (reply.code, annotated(cluster, reply)) == (403, {"object": None})
    assert (await cluster.send("DELETE", other)).code == 200
    everything = await cluster.client.send("DELETE", collection(cluster.own(kept)))
    assert (everything.code, everything.message) == (403, f'admission webhook "{ENTRY}" denied the request: kept')


async def test_a_generated_name_is_known_to_validating_policies(cluster):
    """It is made between the phases: a mutating policy that reads it still finds the prefix alone."""
    prefix = note("prefix", pointer="/metadata/generateName")
    await cluster.enforce(mutating=[prefix], validating=[judge(annotate=["name"])])
    obj = pod()
    obj["metadata"] = {"generateName": "a-"}
    reply = await cluster.create(obj)
    made = reply.body["metadata"]
    assert (reply.code, made["annotations"]) == (201, {"prefix": '"a-"'})
    assert annotated(cluster, reply) == {"name": made["name"]}


async def test_server_side_apply_finds_nothing_to_change_the_second_time(cluster):
    """What a policy adds is not taken away by the next apply of the same."""
    await cluster.enforce(mutating=[default_labels({"team": "a"}, rules=CONFIG_MAPS)])
    applied = cluster.own(config_map(labels={"app": "x"}, data={"key": "value"}))
    replies = [await cluster.client.apply(applied, manager="someone", user=JANE) for _ in range(3)]
    assert [reply.code for reply in replies] == [201, 200, 200]
    first, *others = [reply.body for reply in replies]
    assert first["metadata"]["labels"] == {"app": "x", "team": "a"}
    assert others == [first, first]


async def test_a_megabyte_of_what_json_escapes_is_judged(cluster):
    """Of 1 MiB of "<" an update makes a review of 12.6 MB, which is no more than what Kubernetes allows."""
    await cluster.enforce(
        mutating=[default_labels({"team": "a"}, rules=CONFIG_MAPS)], validating=[judge(rules=CONFIG_MAPS)]
    )
    large = config_map(data={"key": "<" * (MEGABYTE - 100)})
    assert (await cluster.create(large)).code == 201
    reply = await cluster.send("PATCH", large, [{"op": "remove", "path": "/metadata/labels"}], media=JSON_PATCH)
    assert (reply.code, reply.body["metadata"]["labels"]) == (200, {"team": "a"})


async def test_another_version_is_converted_for_the_policy(cluster):
    """Under matchPolicy Equivalent kube-apiserver sends the version that the rules name."""
    scalers = rules("horizontalpodautoscalers", group="autoscaling")
    await cluster.enforce(validating=[judge(annotate=["kind", "requestKind"], rules=scalers)])
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": spec,
    }
    reply = await cluster.create(scaler)
    assert reply.code == 201, reply
    assert {name: kind["version"] for name, kind in annotated(cluster, reply).items()} == {
        "kind": "v1",
        "requestKind": "v2",
    }


async def test_a_custom_resource_is_changed_and_nothing_else_of_it(cluster):
    """Numbers, nulls and unknown members are stored as without the gateway."""
    await cluster.enforce(mutating=[default_labels({"team": "a"}, rules=THINGS)])
    await define_things(cluster.client)
    spec = {"big": 9007199254740993, "float": 1.5, "exponent": 1e300, "none": None, "é/~": [[], {}, "<\u2028>"]}
    through = (await cluster.create(thing("t", spec))).body
    beside = (await cluster.create(thing("t", spec, namespace=UNTOUCHED))).body
    assert through["spec"] == beside["spec"]
    assert (through["metadata"]["labels"], beside["metadata"].get("labels")) == ({"team": "a"}, None)


async def test_a_namespace_is_judged_by_its_own_labels(cluster):
    """A request for a Namespace is selected by the labels that it would have, and judged before it exists."""
    selector = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    await cluster.enforce(validating=[denies("whose?", rules=rules("namespaces"), namespaceSelector=selector)])
    reply = await cluster.client.create(namespace(cluster.other))
    assert (reply.code, reply.message) == (403, f'admission webhook "{ENTRY}" denied the request: whose?')
    assert (await cluster.client.create(namespace(cluster.other, labels={"team": "a"}))).code == 201
