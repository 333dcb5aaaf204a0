"""The types of an answered AdmissionReview, field by field, for both versions; names and Go types as in their sources.

k8s.io/api/admission/v1 and v1beta1 (the same fields), authentication/v1 UserInfo, metav1 Status.
"""

from typing import Final

from gateway.gotypes.meta import TYPE_META, UID
from gateway.gotypes.types import (
    ANYTHING,
    BOOL,
    INT32,
    INT64,
    STRING,
    STRING_MAP,
    STRINGS,
    Bytes,
    ListOf,
    MapOf,
    Struct,
    Text,
)
from gateway.review.request import API_VERSIONS

KIND: Final = "AdmissionReview"

_GROUP_VERSION_KIND: Final = Struct("v1.GroupVersionKind", {"group": STRING, "version": STRING, "kind": STRING})
_GROUP_VERSION_RESOURCE: Final = Struct(
    "v1.GroupVersionResource", {"group": STRING, "version": STRING, "resource": STRING}
)
_USER_INFO: Final = Struct(
    "v1.UserInfo",
    {
        "username": STRING,
        "uid": STRING,
        "groups": STRINGS,
        "extra": MapOf(ListOf(STRING, "v1.ExtraValue")),
    },
)
_LIST_META: Final = Struct(
    "v1.ListMeta",
    {
        "selfLink": STRING,
        "resourceVersion": STRING,
        "continue": STRING,
        "remainingItemCount": INT64,
        "shardInfo": Struct("v1.ShardInfo", {"selector": STRING}),
    },
)
_CAUSE: Final = Struct("v1.StatusCause", {"reason": Text("v1.CauseType"), "message": STRING, "field": STRING})
_DETAILS: Final = Struct(
    "v1.StatusDetails",
    {
        "name": STRING,
        "group": STRING,
        "kind": STRING,
        "uid": UID,
        "causes": ListOf(_CAUSE),
        "retryAfterSeconds": INT32,
    },
)
_STATUS: Final = Struct(
    "v1.Status",
    {
        "metadata": _LIST_META,
        "status": STRING,
        "message": STRING,
        "reason": Text("v1.StatusReason"),
        "details": _DETAILS,
        "code": INT32,
    },
    inner="TypeMeta",
    embedded=TYPE_META,
)


def _review(version: str) -> Struct:
    request = {
        "uid": UID,
        "kind": _GROUP_VERSION_KIND,
        "resource": _GROUP_VERSION_RESOURCE,
        "subResource": STRING,
        "requestKind": _GROUP_VERSION_KIND,
        "requestResource": _GROUP_VERSION_RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": Text(f"{version}.Operation"),
        "userInfo": _USER_INFO,
        "object": ANYTHING,
        "oldObject": ANYTHING,
        "dryRun": BOOL,
        "options": ANYTHING,
    }
    response = {
        "uid": UID,
        "allowed": BOOL,
        "status": _STATUS,
        "patch": Bytes(),
        "patchType": Text(f"{version}.PatchType"),
        "auditAnnotations": STRING_MAP,
        "warnings": STRINGS,
    }
    members = {
        "request": Struct(f"{version}.AdmissionRequest", request),
        "response": Struct(f"{version}.AdmissionResponse", response),
    }
    return Struct(f"{version}.{KIND}", members, inner="TypeMeta", embedded=TYPE_META)


REVIEWS: Final = {api_version: _review(api_version.rpartition("/")[2]) for api_version in API_VERSIONS}
"""By apiVersion."""

VERSION_AND_KIND: Final = Struct(
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }',
    TYPE_META,
    folded=True,
)
"""What is read first, to find the type; by encoding/json, so case-insensitive."""

OPTIONS: Final = frozenset(
    {"WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"}
)
"""The other types that metav1.AddToGroupVersion registers in each version."""

UNVERSIONED: Final = frozenset({"Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"})
"""Kinds that a scheme has in any version (metav1.Unversioned)."""
