"""``namespaceObject``: the Namespace of the object under review, with its name and its labels only.

As in ValidatingAdmissionPolicy: "The namespace object that the incoming object belongs to. The value is null for
cluster-scoped resources"; here it is absent for them. "Special case, the namespace object has the namespace of itself
(unhelpfully). Clear it in this case so there is no assumption it is already created": so it is absent for a Namespace
too. The labels are sorted, as the API server writes them; ``labels`` is absent if there are none.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.review.request import GroupVersionKind, Request

Labels = Mapping[str, str]
"""A namespace's labels."""

_NAMESPACE: Final = GroupVersionKind(group="", version="v1", kind="Namespace")


def namespace_of(request: Request) -> str:
    """The name of the namespace of this request's ``namespaceObject``; "" if there is none."""
    return "" if request.kind == _NAMESPACE else request.namespace


def namespace_object(name: str, labels: Labels) -> dict[str, Any]:
    """A v1 Namespace in its JSON shape."""
    metadata: dict[str, Any] = {"name": name}
    if labels:
        metadata["labels"] = dict(sorted(labels.items()))
    return {"apiVersion": _NAMESPACE.version, "kind": _NAMESPACE.kind, "metadata": metadata}
