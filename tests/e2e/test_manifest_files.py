"""An API server that loads webhooks from files, before anything can be registered (KEP-5793)."""

import asyncio
import subprocess

import pytest

from tests.e2e.api_server import ApiServer, since
from tests.e2e.client import Client, eventually
from tests.e2e.objects import config_map
from tests.e2e.policies import denies, rules
from tests.e2e.test_rollout import labels
from tests.integration.process import COMMAND

pytestmark = since(36, "webhooks from manifest files")

PROBES = {"objectSelector": {"matchLabels": {"probe": "yes"}}}
CONFIGURATIONS = rules("validatingwebhookconfigurations", group="admissionregistration.k8s.io", operations=["CREATE"])


def webhooks(kind):
    registration = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "webhooks": []}
    return registration | {"metadata": {"name": "some", "labels": {"probe": "yes"}}}


@pytest.fixture
async def behind_manifests(cluster, authority, ca_file, tmp_path):
    """A client of an API server of its own, whose webhooks are a gateway's manifests."""
    cluster.write(
        mutating=[labels()],
        validating=[
            denies("keep out", rules=CONFIGURATIONS, name="configurations"),
            denies("no probes", rules=rules("*", group="*", version="*"), name="everything", isolate=True, **PROBES),
        ],
    )
    certificate, key = authority.issue("localhost").write(tmp_path)
    gateway = await cluster.start(tls=("--tls-cert", certificate, "--tls-key", key))
    place = ["--url", f"https://localhost:{gateway.port}", "--ca-bundle", ca_file, "--manifest", tmp_path / "manifests"]
    await asyncio.to_thread(subprocess.run, [COMMAND, "render", cluster.policies, *place], check=True)
    directory = tmp_path / "server"
    directory.mkdir()
    server = ApiServer(
        directory,
        "--feature-gates=ManifestBasedAdmissionControlConfig=true",
        webhooks={
            f"{plugin}AdmissionWebhook": {"staticManifestsDir": str(tmp_path / "manifests" / plugin.lower())}
            for plugin in ("Mutating", "Validating")
        },
    )
    try:
        async with Client(await asyncio.to_thread(server.ready)) as client:
            yield client
    finally:
        server.stop()


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
