"""What helm renders, as a real kube-apiserver sees it: each object by a dry run."""

import pytest
import yaml

from tests.deploy.chart import NAME, RENDERED
from tests.e2e.client import APPLY, Client, eventually
from tests.e2e.objects import namespace

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
