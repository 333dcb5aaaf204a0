"""The policies in the cluster, as one gateway uses them: watched, loaded, and what becomes of them reported."""

import asyncio
import socket
from collections.abc import Callable

from gateway.cluster.client import KubernetesClient
from gateway.cluster.policy_objects import PolicyObjects
from gateway.cluster.policy_status import ENFORCED, INVALID, UNAVAILABLE, Finding, Findings, StatusWriter
from gateway.policies.errors import summary
from gateway.serving.configuration_switch import ConfigurationSwitch
from gateway.serving.reload import Reload
from gateway.serving.settings import Address


class ClusterPolicies:
    """Loads the objects of the gateway's kinds, and writes their status.

    Args:
        client: connected before ``start``.
        reload: loads files and objects together.
        rollout: has the configuration in force.
        ready: called once all objects are known, loaded and in force.
        process: the number of this process, of several; 0: there are no others.
    """

    def __init__(
        self,
        client: KubernetesClient,
        reload: Reload,
        rollout: ConfigurationSwitch,
        ready: Callable[[], object],
        *,
        process: int = 0,
    ) -> None:
        self._client = client
        self._process = process
        self._objects = PolicyObjects(client, self._changed)
        self._reload = reload
        self._rollout = rollout
        self._ready = ready
        self._is_ready = False
        self._status: StatusWriter | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def not_ready(self) -> str | None:
        """Why nothing can be served yet; None: the objects have been loaded."""
        if self._is_ready:
            return None
        return f"the policies in the cluster are not known yet: {self._objects.problem or 'they are being loaded'}"

    @property
    def watch_problem(self) -> str | None:
        """Why the objects that are known may be out of date; None: all watches are open."""
        return self._objects.problem

    @property
    def note(self) -> str | None:
        """Why the policies in force, or the status, may not be those of the cluster; None: they are."""
        problem, refused = self._objects.problem, self._reload.refused
        if problem is not None:
            return f"the policies in the cluster may have changed: {problem}"
        if refused:
            text, why = next(iter(refused.items()))
            more = f" (and {len(refused) - 1} more objects, see their status)" if len(refused) > 1 else ""
            return f"{text.name} is not loaded as it is in the cluster: {why}{more}"
        if self._status is not None and self._status.problem is not None:
            return f"the status of the policies in the cluster may be out of date: {self._status.problem}"
        return None

    def start(self, listen: Address) -> None:
        """Begin to watch. The replica is named by its host, which is a pod's name, the port that it listens on, and the
        number of its process if it is one of several.
        """
        process = f"/{self._process}" if self._process else ""
        self._status = StatusWriter(
            self._client,
            replica=f"{socket.gethostname()[:63]}:{listen[1]}{process}",
            objects=lambda: self._objects.all().values(),
            findings=self._findings,
        )
        self._rollout.observers.append(self._status.changed)
        self._tasks = [
            asyncio.create_task(self._objects.run()),
            asyncio.create_task(self._reload.follow(self._objects, self._loaded)),
            asyncio.create_task(self._status.run()),
        ]

    async def stop(self) -> None:
        """End the tasks, and remove what this replica reports."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _changed(self) -> None:
        self._reload.objects_changed()
        if self._status is not None:
            self._status.changed()

    def _loaded(self) -> None:
        self._is_ready = True
        self._ready()

    def _findings(self) -> Findings:
        """What becomes of each object that has been loaded as it is now."""
        loaded, refused = self._rollout.current, self._reload.refused
        texts = frozenset(loaded.texts)
        errors = {error.place.file for error in loaded.configuration.errors}
        unavailable: dict[str, list[str]] = {}
        for each in loaded.unavailable():
            unavailable.setdefault(each.policy.place.file, []).append(f"policy {each.policy.name}: {each.message}")
        found: dict[str, Finding] = {}
        for name, obj in self._objects.all().items():
            if obj.text in refused:
                found[name] = Finding(reason=INVALID, message=refused[obj.text])
            elif obj.text not in texts:
                continue
            elif name in errors:
                own = [error for error in loaded.configuration.errors if error.place.file == name]
                found[name] = Finding(reason=INVALID, message=summary(own))
            elif name in unavailable:
                found[name] = Finding(reason=UNAVAILABLE, message="; ".join(unavailable[name]))
            else:
                found[name] = Finding(reason=ENFORCED)
        return found
