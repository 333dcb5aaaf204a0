"""The probes of a workload: what it takes to start its Pods, to repair it, and to reach them.

Objects have what the API server requires of them, and the labels that they have in every cluster.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from gateway.gotypes.meta import group_version
from gateway.lockout.api_kinds import (
    BINDING,
    CONFIG_MAP,
    DAEMON_SET,
    DEPLOYMENT,
    KINDS,
    LEASE,
    POD,
    POD_STATUS,
    REPLICA_SET,
    SECRET,
    SLICE,
    TOKEN,
)
from gateway.lockout.probes import (
    ADMINISTRATOR,
    KUBELET,
    NODE_NAME,
    REQUEST_SECONDS,
    SCHEDULER,
    Probe,
    controller,
)
from gateway.review.request import GroupVersionResource, UserInfo

KUBE_SYSTEM: Final = "kube-system"


class Workload(Struct, frozen=True, kw_only=True):
    """Pods that must start: of a Deployment or a DaemonSet. ``own``: the gateway's, with what it stores beside them."""

    what: str
    because: str
    namespace: str
    name: str
    essential: bool = True
    labels: Mapping[str, str] = {}
    daemon: bool = False
    own: bool = False


def workload_probes(workload: Workload) -> tuple[Probe, ...]:
    """What it takes to start its Pods, to repair it, and to reach them."""
    return tuple(_of_workload(workload))


class ProbeGroup(Struct, frozen=True, kw_only=True):
    """Makes probes that have this in common."""

    what: str
    because: str
    essential: bool = False
    namespace: str = ""
    seconds: float = REQUEST_SECONDS
    anywhere: bool = False

    def probe(
        self,
        operation: str,
        api: str,
        user: UserInfo,
        name: str,
        spec: Mapping[str, Any] | None = None,
        *,
        labels: Mapping[str, str] | None = None,
    ) -> Probe:
        """A probe; ``api`` is ``GROUP/VERSION/RESOURCE[/SUB]`` (no group: core), its kinds are in ``KINDS``."""
        group, version, resource, *sub = api.split("/")
        kind = KINDS[api]
        namespace = name if resource == "namespaces" else self.namespace
        metadata = {"name": name} | ({"namespace": self.namespace} if self.namespace else {})
        return Probe(
            what=self.what,
            because=self.because,
            essential=self.essential,
            operation=operation,
            resource=GroupVersionResource(group=group, version=version, resource=resource),
            kind=kind,
            sub_resource="".join(sub),
            namespace=namespace,
            name=name,
            user=user,
            object={
                "apiVersion": group_version(kind.group, kind.version),
                "kind": kind.kind,
                "metadata": metadata | ({"labels": dict(labels)} if labels else {}),
                **(spec or {}),
            },
            seconds=self.seconds,
            anywhere=self.anywhere,
        )


def _of_workload(workload: Workload) -> Iterator[Probe]:
    make = ProbeGroup(
        what=workload.what, because=workload.because, essential=workload.essential, namespace=workload.namespace
    ).probe
    name, labels = workload.name, workload.labels or {"app": workload.name}
    pods = {"containers": [{"name": "main", "image": "registry.example.com/main:1"}]}
    template = {
        "selector": {"matchLabels": dict(labels)},
        "template": {"metadata": {"labels": dict(labels)}, "spec": pods},
    }
    owner = controller("daemon-set-controller" if workload.daemon else "replicaset-controller")
    yield make("CREATE", POD, owner, f"{name}-0", {"spec": pods}, labels=labels)
    yield make("CREATE", BINDING, SCHEDULER, f"{name}-0", {"target": {"kind": "Node", "name": NODE_NAME}})
    yield make("UPDATE", POD_STATUS, KUBELET, f"{name}-0", {"spec": pods}, labels=labels)
    yield make("CREATE", TOKEN, KUBELET, "default", {"spec": {"audiences": []}})
    if workload.daemon:
        yield make("UPDATE", DAEMON_SET, ADMINISTRATOR, name, {"spec": template}, labels=labels)
    else:
        yield make(
            "CREATE", REPLICA_SET, controller("deployment-controller"), f"{name}-1", {"spec": template}, labels=labels
        )
        yield make("UPDATE", DEPLOYMENT, ADMINISTRATOR, name, {"spec": template}, labels=labels)
        slices = controller("endpointslice-controller")
        for operation in ("CREATE", "UPDATE"):
            yield make(operation, SLICE, slices, f"{name}-1", {"addressType": "IPv4", "endpoints": []})
    yield make("DELETE", POD, KUBELET, f"{name}-0", {"spec": pods}, labels=labels)
    if workload.own:
        for api in (SECRET, CONFIG_MAP, LEASE):
            for operation in ("CREATE", "UPDATE"):
                yield make(operation, api, ADMINISTRATOR, f"{name}-own")
