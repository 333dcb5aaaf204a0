"""What one gateway does with the Kubernetes API: its client, and the tasks that use it for as long as it serves."""

import asyncio
from pathlib import Path
from typing import Final

from gateway.cluster.client import KubernetesClient
from gateway.cluster.facts import ClusterFacts
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import CLUSTER, CLUSTER_WATCH_OPEN

_FIRST_LIST_SECONDS: Final = 3.0
"""How long a start waits for the list of namespaces: 10,000 take one second. Without it, a review looks up its own."""


class Cluster:
    """The cluster that the gateway serves.

    Args:
        kubeconfig: a kubeconfig file; None: the pod's service account.
        metrics: the gateway's.
    """

    def __init__(self, kubeconfig: Path | None, metrics: Metrics) -> None:
        metrics.use(CLUSTER)
        self._metrics = metrics
        self.client = KubernetesClient(kubeconfig)
        self.facts = ClusterFacts(self.client, metrics)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Connect, and begin to watch. An API server that is away delays the start, and does not prevent it.

        Raises:
            KubeconfigError: there are no credentials.
        """
        await self.client.connect()
        self._tasks.append(asyncio.create_task(self.facts.run()))
        await self.facts.synced(_FIRST_LIST_SECONDS)

    async def stop(self) -> None:
        """End the tasks, and close the connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.client.close()

    @property
    def note(self) -> str | None:
        """Why what is known of the cluster may be out of date, for /readyz; None if it is not."""
        problem = self.facts.note
        return None if problem is None else f"what is known of the cluster may be out of date: {problem}"

    def observe(self) -> None:
        """Set the gauges."""
        self._metrics.set(CLUSTER_WATCH_OPEN, float(self.facts.note is None))
