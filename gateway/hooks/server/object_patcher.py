"""Makes the changes to objects that hooks request, as shell-operator's ObjectPatcher does.

All operations of a run are tried, one after another, whatever becomes of those before. "Not found" is no error of a
deletion, and of a patch if it says so. An update that conflicts is tried again with the object's new version.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Any, Final

import msgspec

from gateway.cluster.client import JSON, MERGE_PATCH, KubernetesClient
from gateway.cluster.errors import ApiError
from gateway.cluster.resource_types import ResourceType, ResourceTypes
from gateway.hooks.execution.jq import JqError, apply_filter
from gateway.hooks.protocol.operations import CREATES, Operation, OperationKind
from gateway.transports.limits import TransportLimits

_JSON_PATCH: Final = "application/json-patch+json"

_CONFLICT_PAUSES: Final = (0.01, 0.05, 0.25)
"""Seconds between the attempts of an update: client-go's retry.DefaultBackoff."""

_DELETION_SECONDS: Final = 20.0
_DELETION_POLL_SECONDS: Final = 1.0
"""How long a deletion in the foreground is waited for, and how often it is looked for: shell-operator's."""

_PROPAGATION: Final = {
    OperationKind.DELETE: "Foreground",
    OperationKind.DELETE_IN_BACKGROUND: "Background",
    OperationKind.DELETE_NON_CASCADING: "Orphan",
}


class PatchError(Exception):
    """Operations have failed. ``str(error)`` says which, and why."""


class ObjectPatcher:
    """Does operations.

    Args:
        client: connected before ``apply``.
        types: finds the resources of kinds.
        limits: of a run of jq.
    """

    def __init__(self, client: KubernetesClient, types: ResourceTypes, limits: TransportLimits) -> None:
        self._client = client
        self._types = types
        self._limits = limits

    async def apply(self, operations: Sequence[Operation]) -> None:
        """Do the operations, in their order.

        Raises:
            PatchError: some have failed; the others are done.
        """
        errors = []
        for each in operations:
            try:
                await self._apply(each)
            except (ApiError, JqError) as error:
                errors.append(f"{each}: {error}")
        if errors:
            raise PatchError("; ".join(errors))

    async def _apply(self, operation: Operation) -> None:
        resource = await self._types.find(operation.api_version, operation.object_kind)
        path = resource.object(operation.name, operation.namespace)
        if operation.kind in CREATES:
            await self._create(operation, resource, path)
        elif operation.kind in _PROPAGATION:
            await self._delete(operation, path)
        else:
            try:
                await self._patch(operation, path)
            except ApiError as error:
                if not (operation.ignore_missing and error.reason == "NotFound"):
                    raise

    async def _create(self, operation: Operation, resource: ResourceType, path: str) -> None:
        try:
            await self._client.send("POST", resource.collection(operation.namespace), operation.body)
        except ApiError as error:
            if error.reason != "AlreadyExists" or operation.kind is OperationKind.CREATE:
                raise
        else:
            return
        if operation.kind is OperationKind.CREATE_OR_UPDATE:

            async def update() -> None:
                stored = await self._client.get(path)
                version = {"resourceVersion": stored["metadata"]["resourceVersion"]}
                body = operation.body | {"metadata": operation.body["metadata"] | version}
                await self._client.send("PUT", path, body)

            await _retried(update)

    async def _patch(self, operation: Operation, path: str) -> None:
        target = f"{path}/{operation.subresource.removeprefix('/')}" if operation.subresource else path
        if operation.kind is OperationKind.JQ_PATCH:
            await _retried(lambda: self._filter(operation, path, target))
        else:
            media = MERGE_PATCH if operation.kind is OperationKind.MERGE_PATCH else _JSON_PATCH
            await self._client.send("PATCH", target, operation.body, content_type=media)

    async def _filter(self, operation: Operation, path: str, target: str) -> None:
        stored = await self._client.get(path)
        (result,) = await apply_filter(
            operation.body,
            [msgspec.json.encode(stored)],
            self._limits.hook_config_seconds,
            self._limits.hook_response_bytes,
        )
        if result.error:
            raise JqError(f"jq cannot apply its jqFilter: {result.error}")
        if len(result.values) != 1 or not isinstance(result.values[0], dict):
            raise JqError("its jqFilter must give one object")
        if result.values[0] != stored:
            await self._client.send("PUT", target, result.values[0])

    async def _delete(self, operation: Operation, path: str) -> None:
        if not await self._exists("DELETE", path, {"propagationPolicy": _PROPAGATION[operation.kind]}):
            return
        if operation.kind is not OperationKind.DELETE:
            return
        end = monotonic() + _DELETION_SECONDS
        while await self._exists("GET", path):
            if monotonic() > end:
                raise ApiError(
                    f"GET {path}", 0, "Timeout", f"it still exists {_DELETION_SECONDS:g} s after its deletion"
                )
            await asyncio.sleep(_DELETION_POLL_SECONDS)

    async def _exists(self, method: str, path: str, body: Any = None) -> bool:
        """Send a request; whether it found the object."""
        try:
            await self._client.send(method, path, body, content_type=JSON)
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            return False
        return True


async def _retried(update: Callable[[], Awaitable[None]]) -> None:
    """Try again after a conflict."""
    for pause in _CONFLICT_PAUSES:
        try:
            return await update()
        except ApiError as error:
            if error.reason != "Conflict":
                raise
        await asyncio.sleep(pause)
    return await update()
