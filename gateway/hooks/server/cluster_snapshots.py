"""The snapshots of all hooks of ``hook-worker``, from the cluster."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from gateway.cluster.client import KubernetesClient
from gateway.cluster.resource_types import ResourceTypes
from gateway.hooks.configuration.model import AdmissionBinding, ObjectBinding
from gateway.hooks.execution.snapshots import SnapshotError
from gateway.hooks.server.snapshot_watch import SnapshotWatch
from gateway.telemetry.events import Events
from gateway.telemetry.table import SNAPSHOT_BYTES, SNAPSHOT_COMPLETE, SNAPSHOT_OBJECTS, SNAPSHOT_WATCHED
from gateway.transports.limits import TransportLimits

_LOG: Final = structlog.get_logger(__name__)

SYNC_SECONDS: Final = 10.0
"""How long a start waits for all snapshots: 10,000 objects are listed in a second or two. After that, calls of hooks
whose snapshots are not complete fail."""


class ClusterSnapshots:
    """The snapshots by hook and ``kubernetes`` binding.

    Args:
        client: connected before ``start``.
        types: finds the resources of kinds.
        limits: see SnapshotStore.
    """

    def __init__(self, client: KubernetesClient, types: ResourceTypes, limits: TransportLimits) -> None:
        self._client = client
        self._types = types
        self._limits = limits
        self._watches: dict[tuple[Path, str], SnapshotWatch] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def add(self, hook: Path, bindings: Sequence[ObjectBinding], policies: Sequence[AdmissionBinding]) -> None:
        """Watch for those of a hook's bindings that its policies include. Before ``start``."""
        included = {name for each in policies for name in each.snapshots_from or ()}
        for binding in bindings:
            if binding.name in included:
                watch = SnapshotWatch(self._client, self._types, binding, self._limits)
                self._watches[hook, binding.name] = watch

    async def start(self) -> None:
        """Begin to watch, and wait until all snapshots are complete, or for so long."""
        self._tasks = [asyncio.create_task(each.run()) for each in self._watches.values()]
        try:
            async with asyncio.timeout(SYNC_SECONDS):
                for watch in self._watches.values():
                    await watch.synced.wait()
        except TimeoutError:
            _LOG.warning("some snapshots are not complete; calls of their hooks fail until they are")

    async def stop(self) -> None:
        """End all watches."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def incomplete(self) -> Iterator[str]:
        """The snapshots that no call can use, as ``HOOK: BINDING``."""
        for (hook, binding), watch in self._watches.items():
            if not watch.is_complete:
                yield f"{hook}: {binding}"

    def observe(self, events: Events) -> None:
        """Set the gauges of all snapshots."""
        for (hook, binding), watch in self._watches.items():
            labels = str(hook), binding
            events.set(SNAPSHOT_COMPLETE, watch.is_complete, *labels)
            events.set(SNAPSHOT_WATCHED, watch.is_watched, *labels)
            events.set(SNAPSHOT_OBJECTS, watch.objects, *labels)
            events.set(SNAPSHOT_BYTES, watch.size, *labels)

    async def text(self, hook: Path, binding: AdmissionBinding) -> bytes | None:
        """The snapshots that a binding includes, as a JSON object; None: it includes none.

        Raises:
            SnapshotError: one is not complete; see SnapshotWatch.
        """
        if binding.snapshots_from is None:
            return None
        members = []
        for name in binding.snapshots_from:
            try:
                members.append(b"%b:%b" % (msgspec.json.encode(name), await self._watches[hook, name].text()))
            except SnapshotError as error:
                raise SnapshotError(f"hook {hook}: {error}") from None
        return b"{%b}" % b",".join(members)
