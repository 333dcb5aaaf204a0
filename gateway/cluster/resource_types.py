"""The resource of a kind, by discovery: the path of its collections.

A kind is named as in shell-operator: by its kind, plural, singular or short name, in any letter case. Without an
apiVersion, the core group's resources come first, then each other group's preferred version in the API server's order.
"""

from collections.abc import AsyncIterator
from typing import Any

from msgspec import Struct

from gateway.cluster.client import KubernetesClient, collection_path, object_path
from gateway.cluster.errors import ApiError

NO_MATCH = "NoKindMatch"
"""The reason of the ApiError for a kind that the API server does not serve."""


class ResourceType(Struct, frozen=True, kw_only=True):
    """A resource: ``api_version`` and ``kind`` of its objects, and its plural ``name``."""

    api_version: str
    kind: str
    name: str

    def collection(self, namespace: str = "") -> str:
        """The path of its objects, in a namespace or in all."""
        return collection_path(*self._group_version, self.name, namespace)

    def object(self, name: str, namespace: str = "") -> str:
        """The path of one of its objects."""
        return object_path(*self._group_version, self.name, name, namespace)

    @property
    def _group_version(self) -> tuple[str, str]:
        group, _, version = self.api_version.rpartition("/")
        return group, version


class ResourceTypes:
    """Finds resources, and keeps what was found.

    Args:
        client: connected.
    """

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client
        self._known: dict[tuple[str, str], ResourceType] = {}

    async def find(self, api_version: str, kind: str) -> ResourceType:
        """The resource of a kind; ``api_version`` may be "" (any).

        Raises:
            ApiError: the API server cannot be asked, or (reason ``NoKindMatch``) does not serve the kind.
        """
        key = (api_version, kind.lower())
        if key not in self._known:
            self._known[key] = await self._find(*key, kind)
        return self._known[key]

    async def _find(self, api_version: str, name: str, kind: str) -> ResourceType:
        async for each in self._versions(api_version):
            for resource in await self._resources(each):
                names = (resource["name"], resource["kind"], resource.get("singularName"))
                if name in {str(found).lower() for found in (*names, *(resource.get("shortNames") or ()))}:
                    return ResourceType(api_version=each, kind=resource["kind"], name=resource["name"])
        where = f"in {api_version}" if api_version else "in any group"
        message = f"the API server has no kind {kind!r} {where}; check apiVersion and kind, or create its CRD"
        raise ApiError("discovery", 404, NO_MATCH, message)

    async def _versions(self, api_version: str) -> AsyncIterator[str]:
        """The apiVersions to look at."""
        if api_version:
            yield api_version
            return
        yield "v1"
        for group in (await self._client.get("/apis"))["groups"]:
            yield group["preferredVersion"]["groupVersion"]

    async def _resources(self, api_version: str) -> list[Any]:
        """The resources of a version, without subresources."""
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            found = await self._client.get(path)
        except ApiError as error:
            if error.code == 404:  # noqa: PLR2004 - Not Found
                return []
            raise
        return [each for each in found["resources"] if "/" not in each["name"]]
