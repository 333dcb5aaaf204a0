"""What the gateway's service account may do, against what the flags of its Pod need: by SubjectAccessReviews.

=====================  ======================================================================================
flag                   needs
=====================  ======================================================================================
``--cluster``          get, list and watch Namespaces; create SubjectAccessReviews
``--cluster-policies`` list and watch the gateway's three kinds
``--register``         get, create, update and delete both webhook configurations; Leases in its namespace
=====================  ======================================================================================
"""

from typing import Any, Final

from gateway.cluster.client import KubernetesClient, collection_path

_WEBHOOKS: Final = "admissionregistration.k8s.io"
_OWN: Final = "admission-gateway.dev"
_READ: Final = ("get", "list", "watch")

_NEEDS: Final[dict[str, tuple[tuple[tuple[str, ...], str, str], ...]]] = {
    "--cluster": ((_READ, "", "namespaces"), (("create",), "authorization.k8s.io", "subjectaccessreviews")),
    "--cluster-policies": tuple(
        (("list", "watch"), _OWN, resource)
        for resource in ("workers", "mutatingpolicyconfigurations", "validatingpolicyconfigurations")
    ),
    "--register": (
        (("get", "create", "update"), _WEBHOOKS, "mutatingwebhookconfigurations"),
        (("get", "create", "update"), _WEBHOOKS, "validatingwebhookconfigurations"),
        (("get", "list", "create", "update"), "coordination.k8s.io", "leases"),
    ),
}
"""Flag: verbs, group, resource. Leases are those of the gateway's namespace."""


async def missing_permissions(client: KubernetesClient, pod: Any) -> list[str]:
    """What the Pod's service account may not do, a sentence each. Raises ApiError."""
    namespace = pod["metadata"]["namespace"]
    user = f"system:serviceaccount:{namespace}:{pod['spec'].get('serviceAccountName', 'default')}"
    flags = _flags(pod)
    missing = []
    for flag, needs in _NEEDS.items():
        for verbs, group, resource in needs if flag in flags else ():
            place = {"namespace": namespace} if resource == "leases" else {}
            denied = [verb for verb in verbs if not await _allowed(client, user, verb, group, resource, place)]
            if denied:
                named = f"{resource}.{group}" if group else resource
                missing.append(f"{user} may not {', '.join(denied)} {named}, which {flag} needs")
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


async def _allowed(
    client: KubernetesClient, user: str, verb: str, group: str, resource: str, place: dict[str, str]
) -> bool:
    about = {"verb": verb, "group": group, "resource": resource} | place
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": ["system:authenticated"], "resourceAttributes": about},
    }
    path = collection_path("authorization.k8s.io", "v1", "subjectaccessreviews")
    return bool((await client.send("POST", path, review))["status"]["allowed"])
