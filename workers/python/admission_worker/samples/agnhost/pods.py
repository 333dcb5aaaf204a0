"""``/pods``, ``/pods/attach``, ``/mutating-pods`` and ``/mutating-pods-sidecar``."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from admission_worker import Answer, Request, patch
from admission_worker.samples.agnhost.agnhost_worker import (
    KEY,
    PODS,
    UNWANTED,
    denial,
    expect,
    members,
    unknown_kind,
    worker,
    written,
)

TO_BE_ATTACHED: Final = "to-be-attached-pod"
TO_BE_MUTATED: Final = "webhook-to-be-mutated"
INIT_CONTAINER: Final = "webhook-added-init-container"
SIDECAR: Final = "webhook-added-sidecar"

_NAMES: Final = ("/object/apiVersion", "/object/kind", "/object/metadata/name")


@worker.validating("pods", inputs=[*_NAMES, "/object/metadata/labels", "/object/spec/containers/*/name"])
async def pods(request: Request) -> Answer | None:
    """Denies pods with an unwanted label, or with a container of an unwanted name. Never answers for one label."""
    if request.resource != PODS:
        return denial(f"expect resource to be {written(PODS)}")
    if refused := unknown_kind(request.object, "Pod"):
        return refused
    found = []
    label = members(request.object, "metadata", "labels").get(KEY)
    if label == UNWANTED:
        found.append("the pod contains unwanted label;")
    if label == "wait-forever":
        await asyncio.get_running_loop().create_future()
    unwanted = [name for name in _names(request.object, "containers") if UNWANTED in name]
    found += ["the pod contains unwanted container name;"] * len(unwanted)
    return denial(" ".join(found)) if found else None


@worker.validating(
    "pods-attach",
    inputs=["/name", "/object/apiVersion", "/object/kind", "/object/stdin", "/object/container"],
)
def pods_attach(request: Request) -> Answer | None:
    """Denies to attach to one container of one pod."""
    if request.name != TO_BE_ATTACHED:
        return None
    if request.resource != PODS:
        return denial(f"expect resource to be {written(PODS)}, got {written(request.resource)}")
    if request.sub_resource != "attach":
        return denial(f"expect subresource to be attach, got {request.sub_resource or ''}")
    if refused := unknown_kind(request.object, "PodAttachOptions"):
        return refused
    options = request.object or {}
    if options.get("stdin") is not True or options.get("container") != "container1":
        return None
    return denial(f"attaching to pod '{TO_BE_ATTACHED}' is not allowed")


@worker.mutating(
    "mutating-pods",
    inputs=[*_NAMES, "/object/spec/initContainers"],
    writes=["/spec/initContainers"],
)
def mutating_pods(request: Request) -> Answer | None:
    """Gives one pod an init container, in place of those that it has."""
    expect(request, PODS)
    if refused := unknown_kind(request.object, "Pod"):
        return refused
    if members(request.object, "metadata").get("name") != TO_BE_MUTATED:
        return None
    if INIT_CONTAINER in _names(request.object, "initContainers"):
        return None
    added = {"image": "webhook-added-image", "name": INIT_CONTAINER, "resources": {}}
    return patch([{"op": "add", "path": "/spec/initContainers", "value": [added]}])


class Sidecar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of mutating-pods-sidecar.

    Attributes:
        image: the sidecar's; ``""``: every request is denied.
    """

    image: str = ""


@worker.mutating(
    "mutating-pods-sidecar",
    settings=Sidecar,
    inputs=[*_NAMES, "/object/spec/containers/*/name"],
    writes=["/spec/containers"],
)
def mutating_pods_sidecar(request: Request, settings: Sidecar) -> Answer | None:
    """Gives each pod a container more."""
    if not settings.image:
        return denial("No image specified by the sidecar-image parameter", code=500)
    expect(request, PODS)
    if refused := unknown_kind(request.object, "Pod"):
        return refused
    if SIDECAR in _names(request.object, "containers"):
        return None
    added = {"image": settings.image, "name": SIDECAR, "resources": {}}
    return patch([{"op": "add", "path": "/spec/containers/-", "value": added}])


def _names(pod: Any, place: str) -> Iterator[str]:
    """The names of a pod's containers."""
    found = members(pod, "spec").get(place)
    for container in found if isinstance(found, list) else ():
        name = members(container).get("name")
        if isinstance(name, str):
            yield name
