"""The probes that there are: what it takes to start Pods, to keep nodes and controllers alive, and to repair a cluster.

Objects have what the API server requires of them, and the labels that they have in every cluster.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from gateway.gotypes.meta import group_version
from gateway.lockout.api_kinds import (
    ACCESS_REVIEW,
    API_SERVICE,
    APPROVAL,
    BINDING,
    CONFIG_MAP,
    CRD,
    CSI_NODE,
    DAEMON_SET,
    DEPLOYMENT,
    EVENT,
    FINALIZE,
    FLOW_SCHEMA,
    KINDS,
    LEASE,
    NAMESPACE,
    NEW_EVENT,
    NODE,
    NODE_STATUS,
    POD,
    POD_STATUS,
    REPLICA_SET,
    ROLE,
    SECRET,
    SERVICE_ACCOUNT,
    SIGNING,
    SLICE,
    TOKEN,
    TOKEN_REVIEW,
    WORKER,
)
from gateway.lockout.probes import (
    ADMINISTRATOR,
    API_SERVER,
    CONTROLLER_MANAGER,
    ELECTION_SECONDS,
    KUBELET,
    NODE_NAME,
    NODE_SECONDS,
    REQUEST_SECONDS,
    SCHEDULER,
    Probe,
    controller,
)
from gateway.policies.metadata import NAME_LABEL
from gateway.review.request import GroupVersionResource, UserInfo

KUBE_SYSTEM: Final = "kube-system"
NODE_LEASES: Final = "kube-node-lease"
_ANYWHERE: Final = "default"


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


def cluster_probes() -> tuple[Probe, ...]:
    """What every cluster needs, whatever runs in it."""
    return tuple(_of_cluster())


class _Group(Struct, frozen=True, kw_only=True):
    """What probes have in common."""

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
    make = _Group(
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


def _of_cluster() -> Iterator[Probe]:
    make = _Group(
        what="leader election",
        because="the controller manager and the scheduler stop",
        essential=True,
        namespace=KUBE_SYSTEM,
        seconds=ELECTION_SECONDS,
    ).probe
    yield make("UPDATE", LEASE, CONTROLLER_MANAGER, "kube-controller-manager")
    yield make("UPDATE", LEASE, SCHEDULER, "kube-scheduler")

    because = "nodes count as lost, and their Pods are evicted"
    make = _Group(
        what="node heartbeats", because=because, essential=True, namespace=NODE_LEASES, seconds=NODE_SECONDS
    ).probe
    for operation in ("CREATE", "UPDATE"):
        yield make(operation, LEASE, KUBELET, NODE_NAME)
    make = _Group(what="nodes", because=because, essential=True, seconds=NODE_SECONDS).probe
    yield make("CREATE", NODE, KUBELET, NODE_NAME)
    yield make("UPDATE", NODE_STATUS, KUBELET, NODE_NAME)
    yield make("UPDATE", NODE, controller("node-controller"), NODE_NAME)

    make = _Group(what="authentication and authorization", because="all users are locked out", essential=True).probe
    yield make("CREATE", TOKEN_REVIEW, KUBELET, "", {"spec": {"token": "t"}})
    access = {"spec": {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}}
    yield make("CREATE", ACCESS_REVIEW, KUBELET, "", access)

    make = _Group(what="the gateway's own kinds", because="a wrong policy could not be removed", essential=True).probe
    worker = {"spec": {"grpc": {"target": "dns:///labels.policies.svc:50051"}}}
    for operation in ("CREATE", "UPDATE", "DELETE"):
        yield make(operation, WORKER, ADMINISTRATOR, "labels", worker)

    make = _Group(what="node certificates and volumes", because="new nodes do not join").probe
    yield make("CREATE", CSI_NODE, KUBELET, NODE_NAME, {"spec": {"drivers": []}})
    signing = {"spec": {"signerName": "kubernetes.io/kubelet-serving", "usages": ["server auth"], "request": ""}}
    yield make("CREATE", SIGNING, KUBELET, "csr-1", signing)
    yield make("UPDATE", APPROVAL, controller("certificate-controller"), "csr-1", signing)

    make = _Group(what="events", because="without them a start fails unseen", namespace=_ANYWHERE, anywhere=True).probe
    about = {"name": "p", "namespace": _ANYWHERE, "kind": "Pod"}
    yield make("CREATE", EVENT, KUBELET, "p.1", {"involvedObject": about, "reason": "Started", "type": "Normal"})
    yield make(
        "CREATE",
        NEW_EVENT,
        SCHEDULER,
        "p.2",
        {
            "regarding": about,
            "reason": "Scheduled",
            "type": "Normal",
            "action": "Binding",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "scheduler",
            "reportingInstance": "scheduler-1",
            "note": "scheduled",
        },
    )

    make = _Group(what="namespaces", because="no namespace can be made, and a deleted one is never gone").probe
    name = "new-namespace"
    yield make("CREATE", NAMESPACE, ADMINISTRATOR, name, labels={NAME_LABEL: name})
    yield make("UPDATE", FINALIZE, controller("namespace-controller"), name, {"spec": {}}, labels={NAME_LABEL: name})
    make = _Group(
        what="a new namespace", because="no Pod starts in a new namespace", namespace=_ANYWHERE, anywhere=True
    ).probe
    yield make("CREATE", SERVICE_ACCOUNT, controller("service-account-controller"), "new")
    yield make("CREATE", CONFIG_MAP, controller("root-ca-cert-publisher"), "kube-root-ca.crt")

    make = _Group(what="the API server's own objects", because="its settings and new APIs do not take effect").probe
    served = {"spec": {"group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15}}
    yield make("UPDATE", API_SERVICE, API_SERVER, "v1.apps", served)
    flow = {"spec": {"priorityLevelConfiguration": {"name": "global-default"}, "matchingPrecedence": 9000}}
    yield make("CREATE", FLOW_SCHEMA, API_SERVER, "doctor", flow)

    make = _Group(what="repairs", because="an administrator cannot repair access or upgrade the gateway").probe
    yield make("CREATE", ROLE, ADMINISTRATOR, "doctor", {"rules": []})
    yield make("CREATE", CRD, ADMINISTRATOR, "doctors.admission-gateway.dev", {"spec": _CRD_SPEC})
    make = _Group(what="repairs", because="no node can join by a bootstrap token", namespace=KUBE_SYSTEM).probe
    yield make("CREATE", SECRET, ADMINISTRATOR, "bootstrap-token-abcdef")


_CRD_SPEC: Final = {
    "group": "admission-gateway.dev",
    "scope": "Cluster",
    "names": {"kind": "Doctor", "plural": "doctors", "singular": "doctor", "listKind": "DoctorList"},
    "versions": [
        {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    ],
}
