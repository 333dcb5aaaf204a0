"""What ``hook-worker`` does in a cluster, with its own service account: it takes the snapshots of its hooks from it,
and makes the changes to objects that they request.
"""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from gateway.cluster.client import KubernetesClient
from gateway.cluster.resource_types import ResourceTypes
from gateway.hooks.execution.description import HookDescription
from gateway.hooks.server.cluster_snapshots import ClusterSnapshots
from gateway.hooks.server.object_patcher import ObjectPatcher
from gateway.transports.limits import TransportLimits


class HookCluster:
    """The cluster, inside an ``async with``.

    Args:
        client: not connected.
        limits: see ClusterSnapshots.
        hooks: by path.
    """

    def __init__(
        self, client: KubernetesClient, limits: TransportLimits, hooks: Mapping[Path, HookDescription]
    ) -> None:
        self._client = client
        types = ResourceTypes(client)
        self.snapshots = ClusterSnapshots(client, types, limits)
        self.patcher = ObjectPatcher(client, types, limits)
        for path, hook in hooks.items():
            self.snapshots.add(path, hook.objects, tuple(hook.policies.values()))

    async def __aenter__(self) -> Self:
        """Connect, and wait for the snapshots, a few seconds at most.

        Raises:
            KubeconfigError: there are no credentials.
        """
        await self._client.connect()
        await self.snapshots.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all watches, and close the connections."""
        await self.snapshots.stop()
        await self._client.close()
