"""An API server that loads webhooks from files, before anything can be registered (KEP-5793)."""

import asyncio
import json
import subprocess

import pytest
import yaml

from tests.e2e.api_server import ApiServer, since
from tests.e2e.client import Client, eventually
from tests.e2e.objects import config_map
from tests.e2e.policies import CONFIG_MAPS, denies, note, rules
from tests.e2e.test_rollout import labels
from tests.integration.process import COMMAND

pytestmark = since(36, "webhooks from manifest files")

PROBES = {"objectSelector": {"matchLabels": {"probe": "yes"}}}
CONFIGURATIONS = rules("validatingwebhookconfigurations", group="admissionregistration.k8s.io", operations=["CREATE"])


def webhooks(kind):
    registration = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "webhooks": []}
    return registration | {"metadata": {"name": "some", "labels": {"probe": "yes"}}}


@pytest.fixture
def server(tmp_path):
    """An API server that starts with the manifests in this directory."""
    started = []

    def start(manifests):
        directory = tmp_path / "server"
        directory.mkdir()
        webhooks = {
            f"{plugin}AdmissionWebhook": {"staticManifestsDir": str(manifests / plugin.lower())}
            for plugin in ("Mutating", "Validating")
        }
        flag = "--feature-gates=ManifestBasedAdmissionControlConfig=true"
        started.append(ApiServer(directory, flag, webhooks=webhooks))
        return started[0]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def render(cluster, ca_file):
    """What `render` prints for the gateway at this port."""

    async def run(port, *flags):
        place = ["--url", f"https://localhost:{port}", "--ca-bundle", ca_file]
        command = [COMMAND, "render", cluster.policies, *place, *flags]
        return (await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)).stdout

    return run


@pytest.fixture
def pair(authority, tmp_path):
    """The flags that name certificate and key: of this machine, without a Service."""
    certificate, key = authority.issue("localhost").write(tmp_path)
    return ("--tls-cert", certificate, "--tls-key", key)


@pytest.fixture
async def behind_manifests(cluster, server, render, tmp_path):
    """A client of an API server of its own, whose webhooks are a gateway's manifests."""
    cluster.write(
        mutating=[labels()],
        validating=[
            denies("keep out", rules=CONFIGURATIONS, name="configurations"),
            denies("no probes", rules=rules("*", group="*", version="*"), name="everything", isolate=True, **PROBES),
        ],
    )
    gateway = await cluster.start()
    await render(gateway.port, "--manifest", tmp_path / "manifests")
    async with Client(await asyncio.to_thread(server(tmp_path / "manifests").ready)) as client:
        yield client


async def test_manifest_files_are_webhooks(behind_manifests):
    """They mutate and refuse; the kinds that configure webhooks come to who names them, and not to who says "*"."""
    client = behind_manifests

    async def created():
        reply = await client.create(config_map(namespace="default"))
        return reply if reply.code == 201 else None

    assert (await eventually(created)).body["metadata"]["labels"] == {"team": "a"}
    refused = await client.create(config_map("probe", namespace="default", labels={"probe": "yes"}))
    assert (refused.code, "no probes" in refused.message) == (403, True)
    refused = await client.create(webhooks("ValidatingWebhookConfiguration"))
    assert (refused.code, "keep out" in refused.message) == (403, True)
    assert (await client.create(webhooks("MutatingWebhookConfiguration"))).code == 201


async def test_manifest_files_come_before_what_is_registered(behind_manifests, cluster, render, tmp_path):
    """A registered webhook, whatever its name, sees what those of files have changed."""
    cluster.policies = tmp_path / "registered.yaml"
    cluster.write(mutating=[note("seen", pointer="/metadata", rules=CONFIG_MAPS)])
    gateway = await cluster.start()
    (registered, _) = json.loads(await render(gateway.port, "--name", "a", "--output", "json"))["items"]
    for webhook in registered["webhooks"]:
        webhook["reinvocationPolicy"] = "Never"
    assert (await behind_manifests.apply(registered)).code == 201

    async def seen():
        reply = await behind_manifests.create(config_map(namespace="default"), dryRun="All")
        return reply.body["metadata"].get("annotations", {}).get("seen")

    assert json.loads(await eventually(seen))["labels"] == {"team": "a"}


@pytest.mark.parametrize(
    ("place", "wrong", "why"),
    [
        ("metadata", {"name": "gateway"}, ".static.k8s.io"),
        (
            "clientConfig",
            {"url": None, "service": {"namespace": "gateways", "name": "gateway"}},
            "clientConfig.service",
        ),
        ("clientConfig", {"unknown": "x"}, "unknown field"),
    ],
    ids=["name", "service", "unknown"],
)
async def test_a_bad_file_stops_the_start(cluster, server, render, tmp_path, place, wrong, why):
    """A name without its suffix, a Service, or a field that does not exist: the API server ends, and says why."""
    cluster.write(mutating=[labels()])
    await render(8443, "--manifest", tmp_path / "manifests")
    (file,) = (tmp_path / "manifests/mutating").iterdir()
    manifest = yaml.safe_load(file.read_text())
    places = {"metadata": manifest["metadata"], "clientConfig": manifest["webhooks"][0]["clientConfig"]}
    places[place] |= wrong
    file.write_text(yaml.safe_dump(manifest))
    with pytest.raises(AssertionError, match="it ended with 1") as ended:
        await asyncio.to_thread(server(tmp_path / "manifests").ready)
    assert why in str(ended.value)
