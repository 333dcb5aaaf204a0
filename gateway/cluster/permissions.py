"""What the gateway's service account may do, against what the flags of its Pod need: by SubjectAccessReviews.

=====================  ======================================================================================
flag                   needs
=====================  ======================================================================================
``--cluster``          get, list and watch Namespaces; create SubjectAccessReviews; list and watch both webhook
                       configurations of the registration's name
``--cluster-policies`` list and watch the gateway's three kinds
``--register``         create and list both webhook configurations, get and update those of its name; Leases in
                       its namespace
=====================  ======================================================================================
"""

from typing import Any, Final, NamedTuple

from gateway.cluster.client import KubernetesClient, collection_path
from gateway.cluster.webhook_objects import RESOURCES

_WEBHOOKS: Final = "admissionregistration.k8s.io"
_OWN: Final = "admission-gateway.dev"
_READ: Final = ("get", "list", "watch")


class _Need(NamedTuple):
    verbs: tuple[str, ...]
    group: str
    resource: str
    named: bool = False


_NEEDS: Final[dict[str, tuple[_Need, ...]]] = {
    "--cluster": (
        _Need(_READ, "", "namespaces"),
        _Need(("create",), "authorization.k8s.io", "subjectaccessreviews"),
        *(_Need(("list", "watch"), _WEBHOOKS, resource, named=True) for resource in RESOURCES.values()),
    ),
    "--cluster-policies": tuple(
        _Need(("list", "watch"), _OWN, resource)
        for resource in ("workers", "mutatingpolicyconfigurations", "validatingpolicyconfigurations")
    ),
    "--register": (
        *(_Need(("create", "list"), _WEBHOOKS, resource) for resource in RESOURCES.values()),
        *(_Need(("get", "update"), _WEBHOOKS, resource, named=True) for resource in RESOURCES.values()),
        _Need(("get", "list", "create", "update", "patch", "delete"), "coordination.k8s.io", "leases"),
    ),
}
"""By flag. ``named``: of the registration's name only. Leases are those of the gateway's namespace."""


async def missing_permissions(client: KubernetesClient, pod: Any, registration: str) -> list[str]:
    """What the Pod's service account may not do, a sentence each; ``registration``: its name. Raises ApiError."""
    namespace = pod["metadata"]["namespace"]
    user = f"system:serviceaccount:{namespace}:{pod['spec'].get('serviceAccountName', 'default')}"
    flags = _flags(pod)
    missing = []
    for flag, needs in _NEEDS.items():
        for need in needs if flag in flags else ():
            place = {"namespace": namespace} if need.resource == "leases" else {}
            place |= {"name": registration} if need.named else {}
            denied = [verb for verb in need.verbs if not await _allowed(client, user, verb, need, place)]
            if denied:
                resource = f"{need.resource}.{need.group}" if need.group else need.resource
                missing.append(f"{user} may not {', '.join(denied)} {resource}, which {flag} needs")
    return missing


def _flags(pod: Any) -> set[str]:
    """The flags that a container is given, by its arguments or its environment."""
    found = set()
    for container in pod["spec"]["containers"]:
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        names = {each["name"] for each in container.get("env") or ()}
        for flag in _NEEDS:
            variable = "ADMISSION_GATEWAY_" + flag.removeprefix("--").upper().replace("-", "_")
            if flag in words or variable in names:
                found.add(flag)
    return found


async def _allowed(client: KubernetesClient, user: str, verb: str, need: _Need, place: dict[str, str]) -> bool:
    about = {"verb": verb, "group": need.group, "resource": need.resource} | place
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": ["system:authenticated"], "resourceAttributes": about},
    }
    path = collection_path("authorization.k8s.io", "v1", "subjectaccessreviews")
    return bool((await client.send("POST", path, review))["status"]["allowed"])
