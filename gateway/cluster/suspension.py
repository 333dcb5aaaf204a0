"""Who may keep the registration: the gateway, unless somebody rescues the cluster from it.

What must outlive every replica is in annotations of the Lease of the election. So it holds for replicas that start
later, and can be read and changed while no gateway runs.

=============================================  ========================================================================
annotation of the Lease                        means
=============================================  ========================================================================
``admission-gateway.dev/registered``           the kinds that were registered: one that is missing now was deleted
``admission-gateway.dev/suspended``            why no replica touches the registration, until `resume`
=============================================  ========================================================================

``admission-gateway.dev/suspended`` on a webhook configuration has the same effect: the leader writes it to the Lease.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.cluster.client import MERGE_PATCH, KubernetesClient
from gateway.cluster.election import lease_object, lease_path, leases_path
from gateway.cluster.errors import ApiError
from gateway.cluster.webhook_objects import OWNER, RESOURCES, metadata, webhooks_path

REGISTERED: Final = "admission-gateway.dev/registered"
SUSPENDED: Final = "admission-gateway.dev/suspended"

_UNINSTALLED: Final = "admission-gateway uninstall"

_LOOK_AGAIN_SECONDS: Final = 1.0
"""A leader that had just read the Lease may register once more."""

_NOT_FOUND: Final = 404


def lease_name(registration: str) -> str:
    """The name of the election's Lease."""
    return f"{registration}-registration"


def registered_kinds(annotations: Mapping[str, str]) -> frozenset[str]:
    """The kinds that were registered, according to the Lease's annotations."""
    return frozenset(filter(None, annotations.get(REGISTERED, "").split(",")))


def rescue(name: str, live: Mapping[str, Any], annotations: Mapping[str, str]) -> str | None:
    """Why somebody rescues the cluster, in words; None: it does not look like that.

    Args:
        name: of the registration.
        live: by kind, the metadata of its objects; None: there is none.
        annotations: of the Lease.
    """
    registered = registered_kinds(annotations)
    for kind, obj in live.items():
        # One that finalizers keep is deleted, too.
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            if kind in registered:
                return f"{kind} {name} was deleted"
        elif SUSPENDED in (obj["metadata"].get("annotations") or {}):
            reason = obj["metadata"]["annotations"][SUSPENDED]
            return f"{kind} {name} is annotated as suspended" + (f": {reason}" if reason else "")
    return None


class NotUninstalledError(Exception):
    """Not all could be done. ``done``: what was, a line each."""

    def __init__(self, errors: Sequence[Exception | str], done: list[str]) -> None:
        super().__init__("; ".join(dict.fromkeys(map(str, errors))))
        self.done = done


async def uninstall(client: KubernetesClient, *, name: str, namespace: str) -> list[str]:
    """Suspend the registration, and delete its objects. Returns what was done, a line each.

    Raises:
        NotUninstalledError: something could not be done; the rest was. If an object belongs to a gateway in another
            namespace, nothing was.
    """
    errors: list[Exception | str] = []
    done = []
    for kind in RESOURCES:
        if (foreign := await _foreign(client, kind, name, namespace)) is not None:
            raise NotUninstalledError([foreign], [])
    try:
        await _suspend(client, name, namespace)
        done.append(f"Lease {lease_name(name)} in {namespace}: suspended; no gateway registers itself until `resume`")
    except ApiError as error:
        # Not in the way: a gateway that runs takes the deletion itself for a suspension.
        errors.append(error)
    found = dict.fromkeys(RESOURCES, "there is none")
    for again in (False, True):
        if again:
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        for kind in RESOURCES:
            try:
                if await _delete(client, kind, name):
                    found[kind] = "deleted"
            except ApiError as error:
                found[kind] = "not deleted"
                errors.append(error)
    done += [f"{kind} {name}: {what}" for kind, what in found.items()]
    if errors:
        raise NotUninstalledError(errors, done)
    return done


async def resume(client: KubernetesClient, *, name: str, namespace: str) -> list[str]:
    """Let the gateways register themselves again. Returns what was done, a line each. Raises ApiError."""
    done = []
    # The objects first: while one of them has the annotation, the leader would write it to the Lease again.
    for kind in RESOURCES:
        obj = await metadata(client, kind, name)
        if obj is not None and SUSPENDED in (obj["metadata"].get("annotations") or {}):
            await _annotate(client, webhooks_path(kind, name), {SUSPENDED: None})
            done.append(f"{kind} {name}: annotation {SUSPENDED} removed")
    path = lease_path(namespace, lease_name(name))
    try:
        annotations = (await client.send("GET", path))["metadata"].get("annotations") or {}
    except ApiError as error:
        if error.code != _NOT_FOUND:
            raise
        annotations = {}
    if SUSPENDED in annotations:
        await _annotate(client, path, {SUSPENDED: None, REGISTERED: None})
        done.append(f"resumed: Lease {namespace}/{lease_name(name)} (was suspended: {annotations[SUSPENDED]})")
    return done or [f"the registration {name} in namespace {namespace} is not suspended: nothing to do"]


async def _suspend(client: KubernetesClient, name: str, namespace: str) -> None:
    path, annotations = lease_path(namespace, lease_name(name)), {SUSPENDED: _UNINSTALLED}
    try:
        await _annotate(client, path, annotations)
    except ApiError as error:
        if error.code != _NOT_FOUND:
            raise
        made = lease_object(lease_name(name), {}, annotations=annotations)
        await client.send("POST", leases_path(namespace), made)


async def _annotate(client: KubernetesClient, path: str, annotations: Mapping[str, str | None]) -> None:
    patch = {"metadata": {"annotations": dict(annotations)}}
    await client.send("PATCH", path, patch, content_type=MERGE_PATCH)


async def _delete(client: KubernetesClient, kind: str, name: str) -> bool:
    """Whether there was one."""
    try:
        await client.send("DELETE", webhooks_path(kind, name))
    except ApiError as error:
        if error.code != _NOT_FOUND:
            raise
        return False
    return True


async def _foreign(client: KubernetesClient, kind: str, name: str, namespace: str) -> str | None:
    """Why the object is not to be deleted: it belongs to a gateway in another namespace."""
    try:
        obj = await metadata(client, kind, name)
    except ApiError:
        return None
    annotations = {} if obj is None else obj["metadata"].get("annotations") or {}
    owner = annotations.get(OWNER, "")
    if not owner or owner.partition("/")[0] == namespace:
        return None
    return (
        f"{kind} {name} belongs to the gateway {owner}, not to one in namespace {namespace}, so nothing was done; set "
        f"--namespace {owner.partition('/')[0]}, or --name"
    )
