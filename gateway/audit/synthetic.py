"""The AdmissionReview of an existing object: the one that kube-apiserver would send if it were created or changed now.

=================  ===================================================================================================
member             value
=================  ===================================================================================================
uid                a new one
operation          CREATE, or UPDATE for policies whose rules have no CREATE
object             as it is stored, with status and managedFields; for a CREATE without its resourceVersion
oldObject          for an UPDATE the same object: nothing changes. Of an unjudged UPDATE no log has the old one, and a
                   policy that sees it is not called (``lost_inputs``)
dryRun, options    true; CreateOptions or UpdateOptions with ``dryRun: [All]``. So a worker has no side effects
userInfo           ``USER``, in the group of all authenticated users; of an unjudged admission, the user of its log
                   line. Conditions about the user are decided for that one
kind, resource     of the version that was listed; requestKind and requestResource are the same
=================  ===================================================================================================
"""

from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

import msgspec

from gateway.audit.targets import UPDATE, ServedResource
from gateway.matching.rules import is_namespace
from gateway.review.request import Request, decode

USER: Final = "admission-gateway-audit"
"""The user of a review that no user has sent."""

_AUDITOR: Final = {"username": USER, "groups": ["system:authenticated"]}


def synthetic_review(
    obj: dict[str, Any], served: ServedResource, operation: str, user: Mapping[str, Any] | None = None
) -> Request:
    """The request about an object.

    Args:
        obj: as the API server lists it.
        served: its resource.
        operation: CREATE or UPDATE.
        user: a UserInfo; None: ``USER``.

    Raises:
        ReviewError: the object cannot be reviewed: it nests too deeply, or a member has the wrong type.
    """
    is_update = operation == UPDATE
    # Items of a list have neither.
    whole = {"apiVersion": served.api_version, "kind": served.kind, **obj}
    metadata = obj["metadata"]
    stored = whole if is_update else {**whole, "metadata": _without_version(metadata)}
    kind = {"group": served.group, "version": served.version, "kind": served.kind}
    resource = {"group": served.group, "version": served.version, "resource": served.name}
    # "namespace" of a Namespace is its own name.
    namespace = metadata["name"] if is_namespace(served.resource) else metadata.get("namespace")
    request: dict[str, Any] = {
        "uid": str(uuid4()),
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": metadata["name"],
        **({"namespace": namespace} if namespace else {}),
        "operation": operation,
        "userInfo": user or _AUDITOR,
        "object": stored,
        "oldObject": whole if is_update else None,
        "dryRun": True,
        "options": {
            "kind": "UpdateOptions" if is_update else "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "dryRun": ["All"],
        },
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return decode(msgspec.json.encode(review))


def _without_version(metadata: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name != "resourceVersion"}
