"""Watches what one ``kubernetes`` binding selects in the cluster, as shell-operator's monitors do.

=============================  ============================================================================
the binding has                what is watched
=============================  ============================================================================
``namespace.labelSelector``    the namespaces that it selects, and the objects of each; matchNames is ignored
``namespace.nameSelector``     the objects of each of these namespaces
neither                        the objects of all namespaces
``nameSelector``               there, each of these objects by itself (``metadata.name=NAME``)
=============================  ============================================================================

In an outage of the API server the last known objects stay. A kind that does not exist, a list that fails, a missing
permission are tried again; until they succeed there is no snapshot. When the objects exceed the limit of bytes, or jq
cannot run the filter, all objects are dropped, and after a pause listed again.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec
import structlog

from gateway.cluster.client import KubernetesClient, collection_path
from gateway.cluster.errors import ApiError
from gateway.cluster.reflector import BackOff, Reflector, key_of
from gateway.cluster.resource_types import ResourceType, ResourceTypes
from gateway.cluster.selectors import field_selector, label_selector
from gateway.hooks.configuration.model import ObjectBinding
from gateway.hooks.execution.snapshots import SnapshotError
from gateway.hooks.server.snapshot_store import SnapshotStore
from gateway.transports.limits import TransportLimits

_LOG: Final = structlog.get_logger(__name__)

LIST_SECONDS: Final = 2.0
"""How long a call waits for the first list of what is watched: 10,000 objects are listed in a second or two."""

_NAMESPACES: Final = collection_path("", "v1", "namespaces")
_FORBIDDEN: Final = 403


class SnapshotWatch:
    """The snapshot of one binding.

    Args:
        client: connected.
        types: finds the binding's resource.
        binding: what is watched.
        limits: see SnapshotStore.
    """

    def __init__(
        self, client: KubernetesClient, types: ResourceTypes, binding: ObjectBinding, limits: TransportLimits
    ) -> None:
        self.synced = asyncio.Event()
        """Set once the snapshot has been complete."""
        self._client = client
        self._types = types
        self._binding = binding
        self._limits = limits
        self._begin()

    def _begin(self) -> None:
        self._store = SnapshotStore(self._binding, self._limits)
        self._problem = "its objects are not listed yet"
        self._namespaces: Reflector[bytes] | None = None
        self._watched: dict[str, list[Reflector[bytes]]] = {}
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Watch until cancelled."""
        back_off = BackOff()
        while True:
            try:
                await self._run()
            except* (ApiError, SnapshotError) as errors:
                self._fail(str(errors.exceptions[0]))
            except* Exception as errors:  # noqa: BLE001 - whatever the API server answered: it is tried again
                self._fail(f"the Kubernetes API answered what cannot be read: {errors.exceptions[0]!r}")
            await back_off.pause()

    def _fail(self, problem: str) -> None:
        """Drop all objects, and say why."""
        self._begin()
        self._problem = problem
        _LOG.warning("a snapshot cannot be kept; it is tried again", why=problem)

    @property
    def objects(self) -> int:
        """The number of objects."""
        return self._store.objects

    @property
    def size(self) -> int:
        """Their bytes."""
        return self._store.size

    @property
    def is_complete(self) -> bool:
        """Whether calls can use it: all lists were read, and the permission to watch is there."""
        found = self._reflectors()
        return bool(found) and all(each.synced.is_set() and not _is_forbidden(each) for each in found)

    @property
    def is_watched(self) -> bool:
        """Whether all watches are open: it is up to date."""
        found = self._reflectors()
        return bool(found) and all(each.problem is None for each in found)

    async def text(self) -> bytes:
        """The snapshot, a JSON array: what the API server has, or had when it was last reached.

        Raises:
            SnapshotError: it is not complete, an object cannot be filtered, or a permission is missing.
        """
        if not self._reflectors():
            raise self._incomplete(self._problem)
        for each in self._reflectors():
            if each.error is None and not each.synced.is_set():  # such as of a namespace that is new
                with suppress(TimeoutError):
                    await asyncio.wait_for(each.synced.wait(), LIST_SECONDS)
            if not each.synced.is_set() or _is_forbidden(each):
                raise self._incomplete(each.problem)
        return await self._store.text()

    def _incomplete(self, why: str | None) -> SnapshotError:
        return SnapshotError(f"the snapshot {self._binding.name!r} is not complete: {why}")

    # -------------------------------------------------------------------------------------------------- watches

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._filter())
            resource = await self._types.find(self._binding.api_version, self._binding.kind)
            if self._binding.namespace_labels is None:
                for namespace in dict.fromkeys(self._binding.namespaces or ("",)):
                    self._watch(group, resource, namespace)
            else:
                selectors = {"labelSelector": label_selector(self._binding.namespace_labels)}

                def changed(name: str, found: bytes | None) -> None:
                    if found is None:
                        self._unwatch(name)
                    else:
                        self._watch(group, resource, name)

                self._namespaces = Reflector(
                    self._client, _NAMESPACES, lambda _: b"", changed, metadata_only=True, selectors=selectors
                )
                group.create_task(self._namespaces.run())
            group.create_task(self._sync())

    def _watch(self, group: asyncio.TaskGroup, resource: ResourceType, namespace: str) -> None:
        """Watch a namespace, or all of them."""

        def keep(obj: Any) -> bytes:
            # The elements of a list have neither; those of a watch do.
            typed = {"apiVersion": resource.api_version, "kind": resource.kind} | obj
            content = msgspec.json.encode(typed)
            self._store.put(key_of(obj), content)
            return str(obj["metadata"].get("resourceVersion")).encode()

        def changed(key: str, found: bytes | None) -> None:
            if found is None:
                self._store.remove(key)

        self._watched[namespace] = [
            Reflector(
                self._client,
                resource.collection(namespace),
                keep,
                changed,
                selectors=selectors,
                page_kept=self._store.filter,
            )
            for selectors in _selectors(self._binding)
        ]
        self._tasks[namespace] = [group.create_task(each.run()) for each in self._watched[namespace]]

    def _unwatch(self, namespace: str) -> None:
        """Drop a namespace."""
        for task in self._tasks.pop(namespace):
            task.cancel()
        for reflector in self._watched.pop(namespace):
            for key in reflector.items:
                self._store.remove(key)

    def _reflectors(self) -> list[Reflector[bytes]]:
        found = [each for of_namespace in self._watched.values() for each in of_namespace]
        return found if self._namespaces is None else [self._namespaces, *found]

    async def _sync(self) -> None:
        """Set ``synced``."""
        if self._namespaces is not None:
            await self._namespaces.synced.wait()
        for each in self._reflectors():
            await each.synced.wait()
        self.synced.set()

    async def _filter(self) -> None:
        """Filter objects soon after they have changed, so that they are not kept longer than that."""
        while True:
            await self._store.changed.wait()
            try:
                await self._store.filter()
            except SnapshotError as error:
                _LOG.warning("a snapshot cannot be filtered", why=str(error))


def _selectors(binding: ObjectBinding) -> Iterator[dict[str, str]]:
    """The selectors of each watch in one namespace."""
    fields = [(each.field, each.value, each.equals) for each in binding.fields]
    labels = "" if binding.labels is None else label_selector(binding.labels)
    for names in [[("metadata.name", name, True)] for name in dict.fromkeys(binding.names)] or [[]]:
        texts = {"labelSelector": labels, "fieldSelector": field_selector([*fields, *names])}
        yield {name: text for name, text in texts.items() if text}


def _is_forbidden(reflector: Reflector[bytes]) -> bool:
    """Whether the permission to watch is missing: what was listed would never change again."""
    return reflector.problem is not None and reflector.error is not None and reflector.error.code == _FORBIDDEN
