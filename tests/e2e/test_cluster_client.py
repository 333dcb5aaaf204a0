"""The gateway's own client of the Kubernetes API, against a real one."""

import asyncio
import contextlib

import pytest

from gateway.cluster.client import KubernetesClient, collection_path, object_path
from gateway.cluster.errors import ApiError, KubeconfigError
from gateway.cluster.reflector import Reflector
from gateway.cluster.resource_types import NO_MATCH, ResourceTypes
from tests.e2e.api_server import JANE
from tests.e2e.objects import config_map
from tests.integration.running import until

pytestmark = pytest.mark.e2e


@pytest.fixture
async def client(api_server, tmp_path):
    connected = KubernetesClient(api_server.kubeconfig(tmp_path))
    await connected.connect()
    yield connected
    await connected.close()


@contextlib.asynccontextmanager
async def running(reflector):
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def config_maps(cluster):
    return collection_path("", "v1", "configmaps", cluster.namespace)


def data(obj):
    return obj.get("data")


async def test_an_error_says_what_was_sent_and_why(client):
    """The API server's own message, with its code and reason."""
    with pytest.raises(ApiError, match='GET /api/v1/namespaces/nope: namespaces "nope" not found') as raised:
        await client.get(object_path("", "v1", "namespaces", "nope"))
    assert (raised.value.code, raised.value.reason) == (404, "NotFound")


async def test_a_missing_permission_names_verb_and_resource(api_server, tmp_path):
    """RBAC's message reaches the operator."""
    client = KubernetesClient(api_server.kubeconfig(tmp_path, JANE))
    await client.connect()
    with pytest.raises(ApiError, match='cannot list resource "namespaces"') as raised:
        await client.list_all(collection_path("", "v1", "namespaces"))
    assert raised.value.code == 403
    await client.close()


async def test_a_server_that_is_away_is_an_error(api_server, tmp_path):
    """Not an exception of the HTTP library."""
    file = api_server.kubeconfig(tmp_path)
    file.write_text(file.read_text().replace(api_server.url, "https://127.0.0.1:1"))
    client = KubernetesClient(file)
    await client.connect()
    with pytest.raises(ApiError) as raised:
        await client.get("/api/v1/namespaces/default")
    assert raised.value.code == 0
    await client.close()


async def test_without_credentials_the_error_says_what_to_do(tmp_path, monkeypatch):
    """Neither a pod nor a kubeconfig file."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(KubeconfigError, match="set --kubeconfig outside of a cluster"):
        await KubernetesClient().connect()
    (tmp_path / "config").write_text("{}")
    with pytest.raises(KubeconfigError, match="check that kubectl can use it"):
        await KubernetesClient(tmp_path / "config").connect()


async def test_a_replaced_token_is_read_again(api_server, tmp_path):
    """A request that is refused with 401 is sent again with the token that the file has now."""
    file = api_server.kubeconfig(tmp_path)
    content = file.read_text()
    file.write_text(content.replace('"token": "admin"', '"token": "expired"'))
    client = KubernetesClient(file)
    await client.connect()
    with pytest.raises(ApiError, match="Unauthorized"):
        await client.get("/api/v1/namespaces/default")
    file.write_text(content)
    assert (await client.get("/api/v1/namespaces/default"))["kind"] == "Namespace"
    await client.close()


async def test_a_list_has_all_pages(client, cluster, monkeypatch):
    """However small the pages are."""
    monkeypatch.setattr("gateway.cluster.client.PAGE", 2)
    for index in range(5):
        await cluster.create(config_map(f"c{index}"))
    items, _ = await client.list_all(config_maps(cluster))
    assert [each["metadata"]["name"] for each in items] == [f"c{index}" for index in range(5)]


async def test_a_reflector_has_what_the_api_server_has(client, cluster):
    """What was there, and every change, each reported once."""
    changes = []
    await cluster.create(config_map("before", data={"a": "1"}))
    reflector = Reflector(client, config_maps(cluster), data, lambda key, value: changes.append((key, value)))
    async with running(reflector):
        await until(reflector.synced.is_set)
        await cluster.create(config_map("after", data={"a": "2"}))
        await until(lambda: len(changes) == 2)
        await cluster.send("PUT", config_map("after"), config_map("after", data={"a": "3"}))
        await until(lambda: len(changes) == 3)
        await cluster.send("DELETE", config_map("before"))
        await until(lambda: len(changes) == 4)
    key = cluster.namespace + "/"
    assert changes == [
        (key + "before", {"a": "1"}),
        (key + "after", {"a": "2"}),
        (key + "after", {"a": "3"}),
        (key + "before", None),
    ]
    assert reflector.items == {key + "after": {"a": "3"}}


async def test_a_reflector_lists_again_when_its_version_is_too_old(client, cluster):
    """410 Gone: what happened meanwhile is not lost."""
    await cluster.create(config_map("one", data={"a": "1"}))
    reflector = Reflector(client, config_maps(cluster), data)
    reflector._version = "1"  # compacted long ago, or not known to the watch cache
    async with running(reflector):
        await until(lambda: len(reflector.items) == 1)
    assert reflector.problem is None


async def test_a_reflector_goes_on_after_an_outage(api_server, client, cluster):
    """While it fails, what is known stays, and ``problem`` has the reason."""
    await cluster.create(config_map("one", data={"a": "1"}))
    reflector = Reflector(client, config_maps(cluster), data)
    async with running(reflector):
        await until(reflector.synced.is_set)
    good, client._api.configuration.host = client._api.configuration.host, "https://127.0.0.1:1"
    async with running(reflector):
        await until(lambda: reflector.problem is not None)
        assert len(reflector.items) == 1
        client._api.configuration.host = good
        await cluster.create(config_map("two", data={"a": "2"}))
        await until(lambda: len(reflector.items) == 2)
    assert reflector.problem is None


@pytest.mark.parametrize(
    ("api_version", "kind", "found"),
    [
        ("v1", "ConfigMap", "/api/v1/namespaces/a/configmaps"),
        ("v1", "PODS", "/api/v1/namespaces/a/pods"),
        ("v1", "cm", "/api/v1/namespaces/a/configmaps"),
        ("apps/v1", "deployment", "/apis/apps/v1/namespaces/a/deployments"),
        ("", "deploy", "/apis/apps/v1/namespaces/a/deployments"),
        ("", "pod", "/api/v1/namespaces/a/pods"),
    ],
)
async def test_a_kind_is_found_by_any_of_its_names(client, api_version, kind, found):
    """In any letter case; without an apiVersion, in the core group first."""
    assert (await ResourceTypes(client).find(api_version, kind)).collection("a") == found


@pytest.mark.parametrize(("api_version", "kind"), [("v1", "Scale"), ("apps/v1", "Pod"), ("x/v1", "Pod"), ("", "None")])
async def test_a_kind_that_is_not_served_is_an_error(client, api_version, kind):
    """With a reason of its own, since an object that is not there is another error."""
    with pytest.raises(ApiError, match=f"has no kind '{kind}'") as raised:
        await ResourceTypes(client).find(api_version, kind)
    assert raised.value.reason == NO_MATCH
