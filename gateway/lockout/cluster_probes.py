"""The probes of every cluster: what it takes to keep nodes and controllers alive, and to repair it."""

from collections.abc import Iterator
from typing import Final

from gateway.lockout.api_kinds import (
    ACCESS_REVIEW,
    API_SERVICE,
    APPROVAL,
    CONFIG_MAP,
    CRD,
    CSI_NODE,
    EVENT,
    FINALIZE,
    FLOW_SCHEMA,
    LEASE,
    NAMESPACE,
    NEW_EVENT,
    NODE,
    NODE_STATUS,
    ROLE,
    SECRET,
    SERVICE_ACCOUNT,
    SIGNING,
    TOKEN_REVIEW,
    WORKER,
)
from gateway.lockout.catalogue import KUBE_SYSTEM, ProbeGroup
from gateway.lockout.probes import (
    ADMINISTRATOR,
    API_SERVER,
    CONTROLLER_MANAGER,
    ELECTION_SECONDS,
    KUBELET,
    NODE_NAME,
    NODE_SECONDS,
    SCHEDULER,
    Probe,
    controller,
)
from gateway.policies.metadata import NAME_LABEL

NODE_LEASES: Final = "kube-node-lease"
_ANYWHERE: Final = "default"


def cluster_probes() -> tuple[Probe, ...]:
    """What every cluster needs, whatever runs in it."""
    kinds = (
        _elections,
        _nodes,
        _access,
        _own_kinds,
        _joining_nodes,
        _events,
        _namespaces,
        _api_servers_own,
        _repairs,
    )
    return tuple(probe for probes in kinds for probe in probes())


def _elections() -> Iterator[Probe]:
    make = ProbeGroup(
        what="leader election",
        because="the controller manager and the scheduler stop",
        essential=True,
        namespace=KUBE_SYSTEM,
        seconds=ELECTION_SECONDS,
    ).probe
    yield make("UPDATE", LEASE, CONTROLLER_MANAGER, "kube-controller-manager")
    yield make("UPDATE", LEASE, SCHEDULER, "kube-scheduler")


def _nodes() -> Iterator[Probe]:
    because = "nodes count as lost, and their Pods are evicted"
    make = ProbeGroup(
        what="node heartbeats", because=because, essential=True, namespace=NODE_LEASES, seconds=NODE_SECONDS
    ).probe
    for operation in ("CREATE", "UPDATE"):
        yield make(operation, LEASE, KUBELET, NODE_NAME)
    make = ProbeGroup(what="nodes", because=because, essential=True, seconds=NODE_SECONDS).probe
    yield make("CREATE", NODE, KUBELET, NODE_NAME)
    yield make("UPDATE", NODE_STATUS, KUBELET, NODE_NAME)
    yield make("UPDATE", NODE, controller("node-controller"), NODE_NAME)


def _access() -> Iterator[Probe]:
    make = ProbeGroup(what="authentication and authorization", because="all users are locked out", essential=True).probe
    yield make("CREATE", TOKEN_REVIEW, KUBELET, "", {"spec": {"token": "t"}})
    access = {"spec": {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}}
    yield make("CREATE", ACCESS_REVIEW, KUBELET, "", access)


def _own_kinds() -> Iterator[Probe]:
    make = ProbeGroup(
        what="the gateway's own kinds", because="a wrong policy could not be removed", essential=True
    ).probe
    worker = {"spec": {"grpc": {"target": "dns:///labels.policies.svc:50051"}}}
    for operation in ("CREATE", "UPDATE", "DELETE"):
        yield make(operation, WORKER, ADMINISTRATOR, "labels", worker)


def _joining_nodes() -> Iterator[Probe]:
    make = ProbeGroup(what="node certificates and volumes", because="new nodes do not join").probe
    yield make("CREATE", CSI_NODE, KUBELET, NODE_NAME, {"spec": {"drivers": []}})
    signing = {"spec": {"signerName": "kubernetes.io/kubelet-serving", "usages": ["server auth"], "request": ""}}
    yield make("CREATE", SIGNING, KUBELET, "csr-1", signing)
    yield make("UPDATE", APPROVAL, controller("certificate-controller"), "csr-1", signing)


def _events() -> Iterator[Probe]:
    make = ProbeGroup(
        what="events", because="without them a start fails unseen", namespace=_ANYWHERE, anywhere=True
    ).probe
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


def _namespaces() -> Iterator[Probe]:
    make = ProbeGroup(what="namespaces", because="no namespace can be made, and a deleted one is never gone").probe
    name = "new-namespace"
    yield make("CREATE", NAMESPACE, ADMINISTRATOR, name, labels={NAME_LABEL: name})
    yield make("UPDATE", FINALIZE, controller("namespace-controller"), name, {"spec": {}}, labels={NAME_LABEL: name})
    make = ProbeGroup(
        what="a new namespace", because="no Pod starts in a new namespace", namespace=_ANYWHERE, anywhere=True
    ).probe
    yield make("CREATE", SERVICE_ACCOUNT, controller("service-account-controller"), "new")
    yield make("CREATE", CONFIG_MAP, controller("root-ca-cert-publisher"), "kube-root-ca.crt")


def _api_servers_own() -> Iterator[Probe]:
    make = ProbeGroup(what="the API server's own objects", because="its settings and new APIs do not take effect").probe
    served = {"spec": {"group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15}}
    yield make("UPDATE", API_SERVICE, API_SERVER, "v1.apps", served)
    flow = {"spec": {"priorityLevelConfiguration": {"name": "global-default"}, "matchingPrecedence": 9000}}
    yield make("CREATE", FLOW_SCHEMA, API_SERVER, "doctor", flow)


def _repairs() -> Iterator[Probe]:
    make = ProbeGroup(what="repairs", because="an administrator cannot repair access or upgrade the gateway").probe
    yield make("CREATE", ROLE, ADMINISTRATOR, "doctor", {"rules": []})
    yield make("CREATE", CRD, ADMINISTRATOR, "doctors.admission-gateway.dev", {"spec": _CRD_SPEC})
    make = ProbeGroup(what="repairs", because="no node can join by a bootstrap token", namespace=KUBE_SYSTEM).probe
    yield make("CREATE", SECRET, ADMINISTRATOR, "bootstrap-token-abcdef")


_CRD_SPEC: Final = {
    "group": "admission-gateway.dev",
    "scope": "Cluster",
    "names": {"kind": "Doctor", "plural": "doctors", "singular": "doctor", "listKind": "DoctorList"},
    "versions": [
        {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    ],
}
