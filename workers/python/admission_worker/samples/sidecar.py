"""``sidecar``: adds a container to each Pod, once.

A container with ``restartPolicy: Always`` is Kubernetes' kind of sidecar, and is added at the end of the init
containers; any other at the end of the containers. The policy adds it only when a Pod is created, because later its
containers are immutable. It does not add it

* if a container has that name, so a second run changes nothing (names are unique over all of a Pod's containers; if an
  init container that ends has the name, the policy warns the user);
* to mirror Pods, which the kubelet makes from files: the API server cannot change what they run;
* if the Pod's annotation is ``false``.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from admission_worker import Answer, Request, SettingsError, allow, patch
from admission_worker.json_text import quoted
from admission_worker.samples.pod_specs import spec_of, text
from admission_worker.samples.sample_worker import worker

MIRROR = "kubernetes.io/config.mirror"


class Sidecar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of sidecar.

    Attributes:
        container: a v1 Container; what it mounts must exist in the Pods.
        annotation: the key of a Pod's annotation which, with the value ``false``, keeps the sidecar out.
    """

    container: dict[str, Any]
    annotation: str = "sidecar.admission-gateway.dev/inject"


def validate(settings: Sidecar) -> Iterator[SettingsError]:
    """Reject a container without a name or an image."""
    for name in ("name", "image"):
        if not text(settings.container.get(name)):
            yield SettingsError(f"/container/{name}", "Required value: a text that is not empty")
    if settings.container.get("restartPolicy", "Always") != "Always":
        yield SettingsError(
            "/container/restartPolicy", "must be Always (a sidecar that init containers can use) or absent"
        )


@worker.mutating(
    "sidecar",
    settings=Sidecar,
    validate=validate,
    inputs=[
        "/object/metadata/annotations",
        "/object/spec/containers/*/name",
        "/object/spec/initContainers/*/name",
        "/object/spec/initContainers/*/restartPolicy",
    ],
    writes=["/spec/containers", "/spec/initContainers"],
)
def sidecar(request: Request, settings: Sidecar) -> Answer | None:
    """Adds a container to each Pod that is created."""
    if request.operation != "CREATE" or request.sub_resource or not _is_pod(request) or _is_kept_out(request, settings):
        return None
    spec = spec_of(request.object, ("spec",))
    name = settings.container["name"]
    if _named(spec, "containers", name):
        return None
    if same := _named(spec, "initContainers", name):
        if same.get("restartPolicy") == "Always":
            return None
        return allow(warnings=[f"sidecar {quoted(name)} is not added: an init container has its name"])
    place = "initContainers" if "restartPolicy" in settings.container else "containers"
    if isinstance(spec.get(place), list):
        return patch([{"op": "add", "path": f"/spec/{place}/-", "value": settings.container}])
    return patch([{"op": "add", "path": f"/spec/{place}", "value": [settings.container]}])


def _is_pod(request: Request) -> bool:
    return (
        request.object is not None
        and request.kind is not None
        and (request.kind.group, request.kind.kind) == ("", "Pod")
    )


def _is_kept_out(request: Request, settings: Sidecar) -> bool:
    annotations = spec_of(request.object, ("metadata", "annotations"))
    return MIRROR in annotations or annotations.get(settings.annotation) == "false"


def _named(spec: Any, place: str, name: str) -> dict[str, Any] | None:
    found = spec.get(place)
    for container in found if isinstance(found, list) else ():
        if isinstance(container, dict) and container.get("name") == name:
            return container
    return None
