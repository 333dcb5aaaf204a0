"""metav1.ObjectMeta of the gateway's own kinds: a name. What the API server adds is accepted and not looked at."""

from collections.abc import Callable
from typing import Final

from gateway.policies import wording
from gateway.policies.fields import Field
from gateway.policies.names import dns_subdomain

_FIELDS: Final = frozenset(
    {
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    }
)


def read_name(document: Field, syntax: Callable[[str], list[str]] = dns_subdomain) -> str | None:
    """The name of a cluster-scoped object, or None where there is no usable one, which is reported."""
    metadata = document.get("metadata")
    if not metadata.absent and not metadata.mapping(_FIELDS):
        return None
    if not metadata.get("namespace").absent:
        metadata.get("namespace").refuse(wording.forbidden("not allowed on this type"))
    return metadata.get("name").name(syntax)
