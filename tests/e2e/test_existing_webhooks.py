"""An existing webhook, Kubernetes' own agnhost, does the same registered directly and behind the gateway.

Its native configurations are registered as they are for one namespace; for another, the gateway has them as policies.
The requests are those of Kubernetes' conformance tests (test/e2e/apimachinery/webhook.go).
"""

import pytest

from tests.e2e.client import MERGE, path
from tests.e2e.cluster import HOST, SERVICE, SERVICE_NAMESPACE, define_things
from tests.e2e.objects import config_map, lasting, namespace, pod, thing
from tests.e2e.policies import THINGS, rules
from tests.webhooks.native import configuration, text, webhook

UNWANTED = {"webhook-e2e-test": "webhook-disallow"}
KEPT = {"webhook-e2e-test": "webhook-nondeletable"}
WANTED = {"webhook-e2e-test": "webhook-allow"}
START = {"mutation-start": "yes"}
STAGES = START | {"mutation-stage-1": "yes", "mutation-stage-2": "yes"}

CHANGES = ["CREATE", "UPDATE", "DELETE"]

VALIDATING = {
    "/pods": rules("pods", operations=["CREATE"]),
    "/pods/attach": rules("pods/attach", operations=["CONNECT"]),
    "/configmaps": rules("configmaps", operations=CHANGES),
    "/custom-resource": [THINGS[0] | {"operations": CHANGES}],
}
MUTATING = {
    "/mutating-pods": rules("pods", operations=["CREATE"]),
    "/mutating-configmaps": rules("configmaps", operations=["CREATE"]),
    "/mutating-custom-resource": [THINGS[0] | {"operations": ["CREATE", "UPDATE"]}],
}
"""Rules, by agnhost's routes. Each route is two webhooks: the mutating ones work in two stages."""


def create(obj):
    return lambda client, where: client.create(placed(obj, where))


def change(obj, data):
    return lambda client, where: client.send("PATCH", path(placed(obj, where)), {"data": data}, media=MERGE)


def delete(obj):
    return lambda client, where: client.delete(placed(obj, where))


def attach(obj):
    parameters = {"stdin": "true", "container": "container1"}
    return lambda client, where: client.send("POST", path(placed(obj, where)) + "/attach", **parameters)


def placed(obj, where):
    return obj | {"metadata": obj["metadata"] | {"namespace": where}}


def unwanted_pod():
    made = pod("unwanted", labels=UNWANTED)
    return made | {"spec": {"containers": [{"name": "webhook-disallow", "image": "pause"}]}}


def of_data(make):
    """What is done to objects with ``data``: the request, the code of the reply, and the data that are stored then."""
    return [
        (create(make("unwanted", UNWANTED)), 400, None),
        (create(make("kept", KEPT)), 201, KEPT),
        (change(make("kept", {}), UNWANTED), 400, None),
        (delete(make("kept", {})), 400, None),
        (change(make("kept", {}), WANTED), 200, WANTED),
        (delete(make("kept", {})), 200, None),
        (create(make("staged", START)), 201, STAGES),
    ]


REQUESTS = {
    "pods": [(create(unwanted_pod()), 400, None), (create(pod("mutated")), 201, None)],
    "attach": [(create(pod("to-be-attached-pod")), 201, None), (attach(pod("to-be-attached-pod")), 400, None)],
    "config maps": of_data(lambda name, data: config_map(name, data=data)),
    "custom resources": of_data(lambda name, data: thing(name, {}) | {"data": data}),
}


def native(authority, port, name):
    """agnhost's configurations."""

    def made(kind, routes):
        hooks = []
        for route, matched in routes.items():
            service = {"namespace": SERVICE_NAMESPACE, "name": SERVICE, "path": route, "port": port}
            stages = ("one", "two") if kind == "Mutating" else ("one",)
            named = [f"{stage}.{route.strip('/').replace('/', '-')}.example.com" for stage in stages]
            hooks += [webhook(each, {"service": service}, authority, rules=matched) for each in named]
        return configuration(kind, name, *hooks)

    return [made("Mutating", MUTATING), made("Validating", VALIDATING)]


@pytest.fixture
async def namespaces(cluster, agnhost, authority):
    """The namespace whose webhooks are agnhost, and the one whose webhook is the gateway."""
    await define_things(cluster.client)
    assert (await cluster.client.create(namespace(cluster.other))).code == 201
    for obj in native(authority, agnhost.port, f"{cluster.namespace}-agnhost"):
        await cluster.apply_webhooks(obj, cluster.other)
    cluster.policies.write_text(text(*native(authority, agnhost.port, "agnhost")))
    address = f"{HOST}:{agnhost.port}=127.0.0.1:{agnhost.port}"
    await cluster.register((await cluster.start("--resolve", address)).port)
    return cluster.other, cluster.namespace


@pytest.mark.parametrize("steps", REQUESTS.values(), ids=REQUESTS)
async def test_the_replies_are_the_same(cluster, namespaces, steps):
    """Code, reason, message, details, warnings, and the object."""
    for request, code, data in steps:
        directly, behind = [await request(cluster.client, where) for where in namespaces]
        assert directly.code == code, directly
        assert data is None or directly.body["data"] == data
        assert (behind.code, behind.warnings) == (directly.code, directly.warnings)
        assert without_uid(behind.body) == without_uid(directly.body)


def without_uid(body):
    """An object, or a Status, which has the uid in its details."""
    details = {name: value for name, value in body.get("details", {}).items() if name != "uid"}
    return lasting(body) | {"details": details}
