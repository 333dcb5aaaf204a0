"""While all gateways are away, what `doctor` promises can be done, and what it says is blocked cannot."""

import asyncio
import base64
import json
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gateway.cluster.client import collection_path, object_path
from gateway.lockout.catalogue import Workload, workload_probes
from gateway.lockout.cluster_probes import cluster_probes
from gateway.lockout.registration import DNS, NETWORK
from tests.e2e.api_server import JANE, RELEASE
from tests.e2e.client import JSON_PATCH, eventually
from tests.e2e.cluster import SERVICE, SERVICE_NAMESPACE
from tests.e2e.objects import pod
from tests.e2e.policies import denies, judge, rules
from tests.integration.process import COMMAND

EXCLUDED = ("--exclude-namespace", "kube-node-lease", "--exclude-namespace", "kube-system")
EVERYTHING = rules("*/*", group="*", version="*")
OWN = Workload(what="gateway", because="", namespace=SERVICE_NAMESPACE, name=SERVICE, own=True)
PROBES = [*cluster_probes(), *(probe for each in (DNS, NETWORK, OWN) for probe in workload_probes(each))]
NO_CRD = "the gateway's own kinds"
"""Only what has its CRDs can try them."""


def key(probe):
    """What identifies a request in the report."""
    about = probe.operation, probe.resource.resource, probe.resource.group, probe.sub_resource, probe.what, probe.name
    return (*about, "" if probe.resource.resource == "namespaces" else probe.namespace)


def reported(request):
    about = request["operation"], request["resource"], request["group"], request["subResource"], request["about"]
    return (*about, request["name"], request["namespace"])


def report(cluster, port, *flags):
    """What `doctor` says of the policies as `render` registers them: promised and blocked requests."""
    command = [COMMAND, "doctor", "--policies", cluster.policies, "--service", f"{SERVICE_NAMESPACE}/{SERVICE}:{port}"]
    done = subprocess.run([*command, *flags, "-o", "json"], capture_output=True, check=False)
    found = json.loads(done.stdout)
    assert done.returncode == (1 if found["refused"] else 0), done.stderr
    return found


def sent(probe):
    """The object that is sent: what the API server requires besides, where a test has to make it."""
    if probe.resource.resource != "certificatesigningrequests":
        return dict(probe.object)
    private = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes")]
    names += [x509.NameAttribute(NameOID.COMMON_NAME, "system:node:node-1")]
    asked = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    alternative = x509.SubjectAlternativeName([x509.DNSName("node-1")])
    signed = asked.add_extension(alternative, critical=False).sign(private, hashes.SHA256())
    pem = base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()
    spec = probe.object["spec"] | {"request": pem, "usages": ["digital signature", "server auth"]}
    return probe.object | {"spec": spec}


def places(probe):
    """The paths of the collection and of the object."""
    resource = probe.resource
    namespace = "" if resource.resource == "namespaces" else probe.namespace
    about = resource.group, resource.version, resource.resource
    return collection_path(*about, namespace), object_path(*about, probe.name, namespace)


async def prepare(client):
    """What is changed or deleted, and whose subresources are written, has to exist."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    for namespace in ("kube-system", SERVICE_NAMESPACE):
        await client.send("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    for probe in PROBES:
        is_pod = probe.kind.kind == "Pod" and not probe.sub_resource
        if is_pod or probe.kind.kind == "CertificateSigningRequest" or probe.operation == "UPDATE":
            await client.send("POST", places(probe)[0], sent(probe))


async def attempt(client, probe):
    """The request as a dry run, for which kube-apiserver calls the same webhooks."""
    collection, own = places(probe)
    sub = f"/{probe.sub_resource}" if probe.sub_resource else ""
    if probe.operation == "DELETE":
        return await client.send("DELETE", own, dryRun="All", gracePeriodSeconds=0)
    if probe.operation == "CREATE":
        return await client.send("POST", own + sub if sub else collection, sent(probe), dryRun="All")
    current = await client.send("GET", own)
    assert current.code == 200, (probe, current)
    return await client.send("PUT", own + sub, current.body, dryRun="All")


@pytest.mark.parametrize(
    ("flags", "fields"),
    [
        (EXCLUDED, {"rules": EVERYTHING}),
        ((), {"rules": rules("pods", "leases", "events", "nodes", group="*"), "matchPolicy": "Equivalent"}),
    ],
    ids=["everything", "some kinds"],
)
async def test_what_is_promised_is_possible_while_all_gateways_are_away(cluster, flags, fields):
    """And what is blocked is refused, because the gateway cannot be called."""
    await prepare(cluster.client)
    cluster.write(validating=[denies("no", **fields)])
    gateway = await cluster.start()
    found = await asyncio.to_thread(report, cluster, gateway.port, *flags)
    promised, blocked = ({reported(each) for each in found[name]} for name in ("promised", "blocked"))
    try:
        await cluster.register_everywhere(gateway.port, *flags)
        gateway.stop()
        tried = [probe for probe in PROBES if probe.what != NO_CRD]
        replies = {key(probe): await attempt(cluster.client, probe) for probe in tried}
    finally:
        await cluster.unregister()
    # What exists already is refused after admission.
    wrong = {each: reply for each, reply in replies.items() if each in promised and reply.code not in {200, 201, 409}}
    assert wrong == {}
    passed = {each for each, reply in replies.items() if each in blocked and "failed calling webhook" not in str(reply)}
    assert passed == set()
    assert len(replies) == len([each for each in replies if each in promised | blocked]) > 40
    assert {each[4] for each in replies if each in blocked} >= {"nodes", "events"}


@pytest.fixture
def examine(cluster, api_server, tmp_path):
    """`doctor` with the cluster, about a Service and a CA."""

    def examined(*flags, service, ca=None, user="admin", code=0):
        command = [COMMAND, "doctor", "--policies", cluster.policies, "--service", service, "-o", "json"]
        command += ["--kube-version", str(RELEASE)]
        command += ["--kubeconfig", api_server.kubeconfig(tmp_path, user), *(("--ca-bundle", ca) if ca else ()), *flags]
        done = subprocess.run(command, capture_output=True, check=False, text=True)
        assert done.returncode == code, done.stderr + done.stdout
        return json.loads(done.stdout)

    return examined


def codes(found):
    return [(each["severity"], each["code"]) for each in found["findings"]]


async def test_the_path_of_kube_apiserver_is_tried(cluster, examine, ca_file, tmp_path):
    """The Service, and the certificate there by the caBundle: what keeps kube-apiserver from calling refuses."""
    cluster.write(validating=[denies("no")])
    gateway = await cluster.start()
    service = f"{SERVICE_NAMESPACE}/{SERVICE}:{gateway.port}"
    narrow = ("--exclude-namespace", "kube-system")
    cases = [
        ({"service": service, "ca": ca_file}, []),
        ({"service": service, "code": 1}, [("refuse", "certificate")]),
        ({"service": f"{SERVICE_NAMESPACE}/nowhere", "ca": ca_file, "code": 1}, [("refuse", "service")]),
    ]
    for arguments, expected in cases:
        found = await asyncio.to_thread(examine, *narrow, **arguments)
        assert codes(found) == expected
    gateway.stop()
    found = await asyncio.to_thread(examine, *narrow, service=service, ca=ca_file)
    assert "not reached from here" in found["notChecked"][0]


async def test_a_service_without_endpoints_and_permissions(cluster, examine, ca_file):
    """A Service that selects no ready Pod; a service account that may not do what the flags of its Pod need."""
    cluster.write(validating=[denies("no")])
    ports = [{"port": 443}]
    spec = {"selector": {"app": "gw"}, "ports": ports}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "gw"}, "spec": spec}
    assert (await cluster.create(service)).code == 201
    container = {"name": "gateway", "image": "gw", "args": ["serve", "--cluster", "--register"]}
    gateway = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gw", "labels": {"app": "gw"}}}
    assert (await cluster.create(gateway | {"spec": {"containers": [container]}})).code == 201
    about = {"service": f"{cluster.namespace}/gw", "ca": ca_file, "code": 1}
    found = await asyncio.to_thread(examine, "--exclude-namespace", "kube-system", **about)
    assert codes(found)[0] == ("refuse", "service")
    messages = [each["message"] for each in found["findings"] if each["code"] == "permission"]
    account = f"system:serviceaccount:{cluster.namespace}:default"
    assert f"{account} may not get, list, watch namespaces, which --cluster needs" in messages
    assert any("leases.coordination.k8s.io, which --register needs" in each for each in messages)


async def test_what_may_not_be_read_is_said(cluster, examine, ca_file):
    """A user without permissions learns what was not checked; the rest is reported."""
    cluster.write(validating=[denies("no")])
    about = {"service": f"{SERVICE_NAMESPACE}/{SERVICE}:1", "ca": ca_file, "user": JANE, "code": 1}
    found = await asyncio.to_thread(examine, **about)
    assert ("refuse", "lockout") in codes(found)
    assert [each for each in found["notChecked"] if each.startswith("webhooks of others: Kubernetes API: GET ")]


async def test_the_labels_of_namespaces_are_read(cluster, examine, ca_file):
    """A selector for a label that kube-system does not have needs no guess."""
    selected = {"matchLabels": {"only": "here"}}
    cluster.write(validating=[denies("no", namespaceSelector=selected)])
    about = {"service": f"{SERVICE_NAMESPACE}/{SERVICE}:1", "ca": ca_file}
    found = await asyncio.to_thread(examine, **about)
    assert codes(found) == []


def shown_patch(what):
    """The JSON Patch that docs/break-glass.md has behind this comment."""
    page = (Path(__file__).parents[2] / "docs/break-glass.md").read_text()
    _, block = page.split(f"<!-- patch: {what} -->\n", 1)
    return json.loads(block.split("-p '", 1)[1].split("'\n```", 1)[0])


@pytest.mark.parametrize("what", ["namespace", "failurePolicy"])
async def test_the_ways_out_of_the_runbook_lead_out(cluster, what):
    """With the gateway killed, what a policy under Fail blocks is possible after the patch of docs/break-glass.md."""
    gateway = await cluster.enforce(validating=[judge()])
    gateway.stop()
    assert (await cluster.create(pod(), dryRun="All")).code == 500
    changes = json.loads(json.dumps(shown_patch(what)).replace("team-a", cluster.namespace))
    configuration = f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{cluster.namespace}"
    assert (await cluster.client.send("PATCH", configuration, changes, media=JSON_PATCH)).code == 200

    async def possible():
        return (await cluster.create(pod(), dryRun="All")).code == 201

    await eventually(possible)
