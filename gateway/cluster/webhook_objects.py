"""The webhook configurations of the gateway as the API server has them, and what a change of them would be.

An object is replaced as a whole (PUT): what somebody adds to its webhooks goes, which server-side apply would keep.
What others put on it beside the webhooks stays: labels, annotations, finalizers, and the caBundle, if the gateway has
none to register (cert-manager's cainjector puts it there).
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from gateway.cluster.client import JSON, METADATA, KubernetesClient, collection_path, object_path
from gateway.cluster.errors import ApiError
from gateway.registration.registered_entries import (
    ANNOTATION,
    MAX_ANNOTATION_BYTES,
    RegisteredEntries,
    decode,
    encode,
    with_kept,
)

RESOURCES: Final = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
"""The two kinds of a registration, and their resources."""

OWNER: Final = "admission-gateway.dev/owner"
"""Annotation of a webhook configuration: the Service of the gateway that keeps it, as NAMESPACE/NAME."""

_GROUP: Final = ("admissionregistration.k8s.io", "v1")
_NOT_FOUND: Final = 404


class ForeignObjectError(Exception):
    """The object belongs to another gateway, or to something else."""


class ObjectChange(Struct, frozen=True, kw_only=True):
    """A change of one object. ``live`` is as the API server has it, None: it has none; ``body`` is what is sent."""

    kind: str
    name: str
    live: dict[str, Any] | None
    body: dict[str, Any]

    @property
    def different_paths(self) -> frozenset[str]:
        """The gateway's paths that are to be registered, or to go."""
        return _paths(self.body) ^ (frozenset() if self.live is None else _paths(self.live))

    async def send(self, client: KubernetesClient, *, dry_run: bool) -> Any:
        """Create or replace it, and return what the API server makes of it.

        Raises:
            ApiError: also if the object is not ``live`` any more (404, 409).
        """
        query: dict[str, str | int] = {"fieldManager": "admission-gateway"}
        if dry_run:
            query["dryRun"] = "All"
        if self.live is None:
            return await client.send("POST", webhooks_collection(self.kind), self.body, query=query)
        return await client.send("PUT", webhooks_path(self.kind, self.name), self.body, query=query)

    def alters(self, result: Any) -> bool:
        """Whether the result of the dry run differs from what is there."""
        if self.live is None:
            return True
        keys = ("labels", "annotations")
        return _webhooks(result) != _webhooks(self.live) or any(
            (result["metadata"].get(key) or {}) != (self.live["metadata"].get(key) or {}) for key in keys
        )


def webhooks_collection(kind: str) -> str:
    """The path of all webhook configurations of a kind."""
    return collection_path(*_GROUP, RESOURCES[kind])


def webhooks_path(kind: str, name: str) -> str:
    """The path of a webhook configuration."""
    return object_path(*_GROUP, RESOURCES[kind], name)


async def metadata(client: KubernetesClient, kind: str, name: str) -> Any:
    """The metadata of a webhook configuration; None: there is none. Raises ApiError."""
    return await _get(client, kind, name, accept=METADATA.format(""))


async def other_webhooks(client: KubernetesClient, own: str) -> tuple[Mapping[str, Any], ...]:
    """The webhook configurations that do not have this name, of both kinds. Raises ApiError."""
    found: list[Mapping[str, Any]] = []
    for kind in RESOURCES:
        items, _ = await client.list_all(webhooks_collection(kind))
        api = {"apiVersion": "/".join(_GROUP), "kind": kind}
        found += [each | api for each in items if each["metadata"]["name"] != own]
    return tuple(found)


async def change(
    client: KubernetesClient, desired: Mapping[str, Any], owner: str, *, keep: bool = False
) -> ObjectChange:
    """What makes the API server's object equal to ``desired``, a webhook configuration.

    With ``keep``, webhooks that it has and that are not desired stay, each behind the one that it is behind now.

    Raises:
        ApiError: it cannot be read.
        ForeignObjectError: it is not this owner's.
    """
    kind, name = desired["kind"], desired["metadata"]["name"]
    live = await _get(client, kind, name)
    if live is None:
        annotations = {**_annotations(desired), OWNER: owner}
        body = {**desired, "metadata": {"name": name, "annotations": annotations}}
        return ObjectChange(kind=kind, name=name, live=None, body=body)
    _check_owner(live, owner)
    kept = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
    others = {key: value for key, value in _annotations(live).items() if key != ANNOTATION}
    own = _annotations(desired)
    wanted = _webhooks(desired)
    if keep:
        wanted = _with_kept(wanted, _webhooks(live))
        own = _with_kept_entries(own, _annotations(live), {each["name"] for each in wanted})
    annotations = {**others, **own, OWNER: owner}
    webhooks = _with_bundles(wanted, _webhooks(live))
    body = {**desired, "metadata": {**kept, "annotations": annotations}, "webhooks": webhooks}
    return ObjectChange(kind=kind, name=name, live=live, body=body)


async def _get(client: KubernetesClient, kind: str, name: str, accept: str = JSON) -> Any:
    try:
        return await client.send("GET", webhooks_path(kind, name), accept=accept)
    except ApiError as error:
        if error.code != _NOT_FOUND:
            raise
        return None


def _check_owner(live: Mapping[str, Any], owner: str) -> None:
    """One that `render` registered has no annotation: it is the gateway's if all of it leads to the gateway."""
    named = _annotations(live).get(OWNER)
    owners = {named} if named else {_service(each) for each in _webhooks(live)}
    if not owners <= {owner}:
        others = ", ".join(sorted(each or "a URL" for each in owners - {owner}))
        raise ForeignObjectError(
            f"{live['kind']} {live['metadata']['name']} leads to {others}, and this gateway is {owner}; set another "
            "--name, or delete the object"
        )


def _service(webhook: Mapping[str, Any]) -> str:
    service = webhook["clientConfig"].get("service")
    return f"{service['namespace']}/{service['name']}" if service else ""


def _with_kept(desired: list[Any], live: list[Any]) -> list[Any]:
    made = list(desired)
    before = None
    for webhook in live:
        names = [each["name"] for each in made]
        if webhook["name"] not in names:
            made.insert(names.index(before) + 1 if before is not None else 0, webhook)
        before = webhook["name"]
    return made


def _with_kept_entries(desired: Mapping[str, str], live: Mapping[str, str], names: set[str]) -> Mapping[str, str]:
    """The annotation with the entries of the webhooks that stay, as far as they are known and there is room."""
    if ANNOTATION not in live:
        return desired
    wanted = decode(desired[ANNOTATION]) if ANNOTATION in desired else RegisteredEntries()
    value = encode(with_kept(wanted, _decoded(live[ANNOTATION]), names))
    return {**desired, ANNOTATION: value} if len(value) <= MAX_ANNOTATION_BYTES else desired


def _decoded(value: str) -> RegisteredEntries:
    try:
        return decode(value)
    except ValueError:
        # An edit, which is undone.
        return RegisteredEntries()


def _with_bundles(desired: list[Any], live: list[Any]) -> list[Any]:
    """The webhooks with the live caBundle, where they have none: of the same name, or the only one that there is."""
    bundles = {each["name"]: each["clientConfig"].get("caBundle") for each in live}
    different = {bundle for bundle in bundles.values() if bundle}
    only = different.pop() if len(different) == 1 else None
    made = []
    for webhook in desired:
        bundle = bundles.get(webhook["name"]) or only
        if bundle and not webhook["clientConfig"].get("caBundle"):
            made.append({**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": bundle}})
        else:
            made.append(webhook)
    return made


def _annotations(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return obj["metadata"].get("annotations") or {}


def _webhooks(obj: Mapping[str, Any]) -> list[Any]:
    return obj.get("webhooks") or []


def _paths(obj: Mapping[str, Any]) -> frozenset[str]:
    services = (each["clientConfig"].get("service") or {} for each in _webhooks(obj))
    return frozenset(path for service in services if (path := service.get("path")))
