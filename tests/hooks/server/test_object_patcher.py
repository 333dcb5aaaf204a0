"""Operations against an API server that changes meanwhile. The real one: tests/e2e/test_hook_worker.py."""

import pytest

from gateway.cluster.errors import ApiError
from gateway.cluster.resource_types import ResourceType
from gateway.hooks.protocol.operations import Operation, OperationKind
from gateway.hooks.server.object_patcher import ObjectPatcher, PatchError
from tests.cluster.fake_api import FakeApi, FakeClient
from tests.hooks.scripts import limits, needs_jq

PATH = "/api/v1/namespaces/ns/configmaps/a"
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"}, "data": {"a": "mine"}}


class Types:
    """All kinds are ConfigMap."""

    async def find(self, api_version, kind):
        return ResourceType(api_version="v1", kind="ConfigMap", name="configmaps")


class Contended(FakeClient):
    """Another client writes after each of the first reads: so many of them."""

    def __init__(self, api, writes):
        super().__init__(api, lambda: (0.0, None, 0.0))
        self._api, self._left = api, writes

    async def get(self, path):
        found = await self.send("GET", path)
        if self._left:
            self._left -= 1
            self._api.apply("PUT", path, OBJECT | {"data": {"other": str(self._left)}}, None)
        return found


def patcher(writes):
    """It, and the API with one ConfigMap."""
    api = FakeApi()
    api.apply("POST", PATH.rpartition("/")[0], OBJECT | {"data": {}}, None)
    return ObjectPatcher(Contended(api, writes), Types(), limits()), api


def operation(kind, body=None):
    kind = OperationKind(kind)
    return Operation(kind=kind, api_version="v1", object_kind="ConfigMap", namespace="ns", name="a", body=body)


async def test_an_update_that_conflicts_is_tried_again():
    """With the object's new version, three times more."""
    made, api = patcher(writes=3)
    await made.apply([operation("CreateOrUpdate", OBJECT)])
    assert api.objects[PATH]["data"] == {"a": "mine"}
    made, api = patcher(writes=4)
    with pytest.raises(PatchError, match=r"CreateOrUpdate v1/ConfigMap/ns/a: .*has been modified"):
        await made.apply([operation("CreateOrUpdate", OBJECT)])


@pytest.mark.integration
@needs_jq
async def test_a_filter_is_applied_to_the_new_version():
    """After a conflict."""
    made, api = patcher(writes=1)
    await made.apply([operation("JQPatch", '.data.jq = "x"')])
    assert api.objects[PATH]["data"] == {"other": "0", "jq": "x"}


@pytest.mark.integration
@needs_jq
@pytest.mark.parametrize("jq_filter", ["error", ".data.x.y.z | keys", ".[", "empty", "1", "., ."])
async def test_a_filter_without_one_object_is_an_error(jq_filter):
    """Nothing is written."""
    made, api = patcher(writes=0)
    with pytest.raises(PatchError, match=r"JQPatch v1/ConfigMap/ns/a: .*jqFilter"):
        await made.apply([operation("JQPatch", jq_filter)])
    assert api.writes == 1


async def test_all_errors_are_reported():
    """Each with its operation."""
    made, api = patcher(writes=0)
    api.refused = lambda method, path, obj: ApiError(method, 403, "Forbidden", f"cannot {method}")
    with pytest.raises(PatchError, match=r"Create .* already exists; MergePatch v1/ConfigMap/ns/a: .*cannot PATCH"):
        await made.apply([operation("Create", OBJECT), operation("MergePatch", {"metadata": {"labels": {}}})])


class Lingering(FakeClient):
    """A deleted object is there for some reads more."""

    def __init__(self, api, reads):
        super().__init__(api, lambda: (0.0, None, 0.0))
        self._reads = reads

    async def send(self, method, path, body=None, **options):
        if method == "GET" and self._reads:
            self._reads -= 1
            return OBJECT
        return await super().send(method, path, body, **options)


@pytest.mark.parametrize(("kind", "reads"), [("Delete", 2), ("DeleteInBackground", 0), ("DeleteNonCascading", 0)])
async def test_only_delete_waits_until_the_object_is_gone(monkeypatch, kind, reads):
    """As with propagationPolicy Foreground, which keeps the object until its dependents are gone."""
    monkeypatch.setattr("gateway.hooks.server.object_patcher._DELETION_POLL_SECONDS", 0)
    _, api = patcher(writes=0)
    client = Lingering(api, reads)
    await ObjectPatcher(client, Types(), limits()).apply([operation(kind)])
    assert PATH not in api.objects
    assert client._reads == 0


async def test_an_object_that_stays_is_an_error(monkeypatch):
    """After its time."""
    monkeypatch.setattr("gateway.hooks.server.object_patcher._DELETION_POLL_SECONDS", 0)
    monkeypatch.setattr("gateway.hooks.server.object_patcher._DELETION_SECONDS", 0)
    _, api = patcher(writes=0)
    with pytest.raises(PatchError, match="it still exists"):
        await ObjectPatcher(Lingering(api, 1000), Types(), limits()).apply([operation("Delete")])
