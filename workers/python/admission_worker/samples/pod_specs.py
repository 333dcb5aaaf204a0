"""The PodSpecs of Pods and of the Pod templates of workloads.

``Container.before`` shows whether an UPDATE changes a container.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from admission_worker import Request, pointer

POD_SPECS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = MappingProxyType(
    {
        ("", "Pod"): ("spec",),
        ("", "PodTemplate"): ("template", "spec"),
        ("", "ReplicationController"): ("spec", "template", "spec"),
        ("apps", "DaemonSet"): ("spec", "template", "spec"),
        ("apps", "Deployment"): ("spec", "template", "spec"),
        ("apps", "ReplicaSet"): ("spec", "template", "spec"),
        ("apps", "StatefulSet"): ("spec", "template", "spec"),
        ("batch", "Job"): ("spec", "template", "spec"),
        ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
    }
)
"""The path to the PodSpec in each built-in kind that has one, by group and kind. In the subresources of a
Pod that change containers (``ephemeralcontainers``, ``resize``) the object is the Pod."""

RUNNING: Final = ("initContainers", "containers")
ALL: Final = ("initContainers", "containers", "ephemeralContainers")


class Container(Struct, frozen=True, kw_only=True):
    """One container in an object.

    Args:
        path: its place in the object, as tokens: ``("spec", "containers", 0)``.
        value: the new container.
        before: the stored container with that name in the same list; None: there is none.
    """

    path: tuple[str | int, ...]
    value: Mapping[str, Any]
    before: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        """Its name; ``""`` without one."""
        return text(self.value.get("name"))

    @property
    def field(self) -> str:
        """Its place in Kubernetes' notation: ``spec.containers[0]``."""
        *parents, last, index = self.path
        return ".".join((*map(str, parents), f"{last}[{index}]"))

    def pointer(self, *below: str) -> str:
        """Its place, or one below, as a JSON Pointer over the object."""
        return pointer(*self.path, *below)


def path_of(request: Request) -> tuple[str, ...] | None:
    """The path of the PodSpec in the request's object; None: its kind has none."""
    kind = request.kind
    return POD_SPECS.get((kind.group, kind.kind)) if kind is not None else None


def spec_of(whole: Mapping[str, Any] | None, path: Sequence[str]) -> Mapping[str, Any]:
    """The PodSpec of an object; empty without one."""
    found: Any = whole
    for token in path:
        found = found.get(token) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def containers(request: Request, lists: Sequence[str]) -> Iterator[Container]:
    """The containers of the request's object.

    Args:
        request: a request for an object of any kind.
        lists: lists of the PodSpec, such as ``ALL``.
    """
    path = path_of(request)
    if path is None:
        return
    now, old = spec_of(request.object, path), spec_of(request.old_object, path)
    for name in lists:
        before = {text(container.get("name")): container for _, container in _listed(old, name)}
        for index, container in _listed(now, name):
            yield Container(path=(*path, name, index), value=container, before=before.get(text(container.get("name"))))


def claims(lists: Sequence[str], members: Sequence[str]) -> list[str]:
    """The ``inputs`` of a policy that reads these members of containers in the object and the old object."""
    return [
        pointer(whole, *path, name, "*", *member.split("/"))
        for whole in ("object", "oldObject")
        for path in sorted(set(POD_SPECS.values()))
        for name in lists
        for member in members
    ]


def places(lists: Sequence[str], members: Sequence[str]) -> list[str]:
    """The ``writes`` of a policy that changes these members of containers."""
    return [
        pointer(*path, name, "*", member)
        for path in sorted(set(POD_SPECS.values()))
        for name in lists
        for member in members
    ]


def text(value: Any) -> str:
    """The value if it is text, else ``""``."""
    return value if isinstance(value, str) else ""


def _listed(spec: Mapping[str, Any], name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    found = spec.get(name)
    for index, container in enumerate(found if isinstance(found, list) else ()):
        if isinstance(container, dict):
            yield index, container
