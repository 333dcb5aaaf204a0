"""The resources of the probes as ``GROUP/VERSION/RESOURCE[/SUB]`` (no group: core), and the kinds of their objects."""

from typing import Final

from gateway.review.request import GroupVersionKind


def _kinds(*rows: str) -> dict[str, GroupVersionKind]:
    """``GROUP/VERSION/RESOURCE[/SUB] KIND [GROUP/VERSION]``: the kind's own group and version, if it is another one."""
    kinds = {}
    for api, kind, *own in map(str.split, rows):
        group, version = (own[0] if own else api).split("/")[:2]
        kinds[api] = GroupVersionKind(group=group, version=version, kind=kind)
    return kinds


POD: Final = "/v1/pods"
BINDING: Final = "/v1/pods/binding"
POD_STATUS: Final = "/v1/pods/status"
TOKEN: Final = "/v1/serviceaccounts/token"  # noqa: S105 - a resource
SECRET: Final = "/v1/secrets"  # noqa: S105 - a resource
CONFIG_MAP: Final = "/v1/configmaps"
SERVICE_ACCOUNT: Final = "/v1/serviceaccounts"
NODE: Final = "/v1/nodes"
NODE_STATUS: Final = "/v1/nodes/status"
NAMESPACE: Final = "/v1/namespaces"
FINALIZE: Final = "/v1/namespaces/finalize"
EVENT: Final = "/v1/events"
NEW_EVENT: Final = "events.k8s.io/v1/events"
DEPLOYMENT: Final = "apps/v1/deployments"
DAEMON_SET: Final = "apps/v1/daemonsets"
REPLICA_SET: Final = "apps/v1/replicasets"
SLICE: Final = "discovery.k8s.io/v1/endpointslices"
LEASE: Final = "coordination.k8s.io/v1/leases"
CSI_NODE: Final = "storage.k8s.io/v1/csinodes"
SIGNING: Final = "certificates.k8s.io/v1/certificatesigningrequests"
APPROVAL: Final = "certificates.k8s.io/v1/certificatesigningrequests/approval"
ROLE: Final = "rbac.authorization.k8s.io/v1/clusterroles"
CRD: Final = "apiextensions.k8s.io/v1/customresourcedefinitions"
API_SERVICE: Final = "apiregistration.k8s.io/v1/apiservices/status"
FLOW_SCHEMA: Final = "flowcontrol.apiserver.k8s.io/v1/flowschemas"
TOKEN_REVIEW: Final = "authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a resource
ACCESS_REVIEW: Final = "authorization.k8s.io/v1/subjectaccessreviews"
WORKER: Final = "admission-gateway.dev/v1alpha1/workers"

KINDS: Final = _kinds(
    f"{POD} Pod",
    f"{BINDING} Binding",
    f"{POD_STATUS} Pod",
    f"{TOKEN} TokenRequest authentication.k8s.io/v1",
    f"{SECRET} Secret",
    f"{CONFIG_MAP} ConfigMap",
    f"{SERVICE_ACCOUNT} ServiceAccount",
    f"{NODE} Node",
    f"{NODE_STATUS} Node",
    f"{NAMESPACE} Namespace",
    f"{FINALIZE} Namespace",
    f"{EVENT} Event",
    f"{NEW_EVENT} Event",
    f"{DEPLOYMENT} Deployment",
    f"{DAEMON_SET} DaemonSet",
    f"{REPLICA_SET} ReplicaSet",
    f"{SLICE} EndpointSlice",
    f"{LEASE} Lease",
    f"{CSI_NODE} CSINode",
    f"{SIGNING} CertificateSigningRequest",
    f"{APPROVAL} CertificateSigningRequest",
    f"{ROLE} ClusterRole",
    f"{CRD} CustomResourceDefinition",
    f"{API_SERVICE} APIService",
    f"{FLOW_SCHEMA} FlowSchema",
    f"{TOKEN_REVIEW} TokenReview",
    f"{ACCESS_REVIEW} SubjectAccessReview",
    f"{WORKER} Worker",
)
