"""The policies in the cluster, as one gateway uses them: watched, loaded, and their state reported."""

import asyncio
from collections.abc import Callable

from gateway.cluster.client import KubernetesClient
from gateway.cluster.policy_objects import PolicyObjects
from gateway.serving.reload import Reload


class ClusterPolicies:
    """Loads the objects of the gateway's kinds.

    Args:
        client: connected before ``start``.
        reload: loads files and objects together.
        ready: called once all objects are known, loaded and in force.
    """

    def __init__(self, client: KubernetesClient, reload: Reload, ready: Callable[[], object]) -> None:
        self._objects = PolicyObjects(client, reload.objects_changed)
        self._reload = reload
        self._ready = ready
        self._is_ready = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def not_ready(self) -> str | None:
        """Why nothing can be served yet; None: the objects have been loaded."""
        if self._is_ready:
            return None
        return f"the policies in the cluster are not known yet: {self._objects.problem or 'they are being loaded'}"

    @property
    def note(self) -> str | None:
        """Why the policies in force may not be those of the cluster; None: they are."""
        problem, refused = self._objects.problem, self._reload.refused
        if problem is not None:
            return f"the policies in the cluster may have changed: {problem}"
        if refused:
            name, why = next(iter(refused.items()))
            more = f" (and {len(refused) - 1} more objects, see their status)" if len(refused) > 1 else ""
            return f"{name} is not loaded as it is in the cluster: {why}{more}"
        return None

    def start(self) -> None:
        """Begin to watch."""
        self._tasks = [
            asyncio.create_task(self._objects.run()),
            asyncio.create_task(self._reload.follow(self._objects, self._loaded)),
        ]

    async def stop(self) -> None:
        """End the tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _loaded(self) -> None:
        self._is_ready = True
        self._ready()
