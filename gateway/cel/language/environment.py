"""What a matchCondition can name (k8s.io/apiserver/pkg/admission/plugin/cel/compile.go).

``object`` and ``oldObject`` are dyn; ``request`` is an AdmissionRequest without uid, object and oldObject: "The 'uid'
field is omitted since it is not needed for in-process admission review." ``namespaceObject`` is declared, and null
for webhooks. ``params`` and ``variables`` are not declared.
"""

from collections.abc import Mapping
from typing import Final

from gateway.cel.language.messages import WELL_KNOWN
from gateway.cel.values import types
from gateway.cel.values.types import Type, message, type_of_type, written

VARIABLES: Final[Mapping[str, Type]] = {
    "object": types.DYN,
    "oldObject": types.DYN,
    "namespaceObject": message("kubernetes.Namespace"),
    "request": message("kubernetes.AdmissionRequest"),
    "authorizer": message("kubernetes.authorization.Authorizer"),
    "authorizer.requestResource": message("kubernetes.authorization.ResourceCheck"),
}

_MEMBERS: Final[Mapping[str, Mapping[str, str]]] = {
    "kubernetes.GroupVersionKind": {"group": "string", "version": "string", "kind": "string"},
    "kubernetes.GroupVersionResource": {"group": "string", "version": "string", "resource": "string"},
    "kubernetes.UserInfo": {
        "username": "string",
        "uid": "string",
        "groups": "list(string)",
        "extra": "map(string, list(string))",
    },
    "kubernetes.AdmissionRequest": {
        "kind": "kubernetes.GroupVersionKind",
        "resource": "kubernetes.GroupVersionResource",
        "subResource": "string",
        "requestKind": "kubernetes.GroupVersionKind",
        "requestResource": "kubernetes.GroupVersionResource",
        "requestSubResource": "string",
        "name": "string",
        "namespace": "string",
        "operation": "string",
        "userInfo": "kubernetes.UserInfo",
        "dryRun": "bool",
        "options": "dyn",
    },
    "kubernetes.NamespaceSpec": {"finalizers": "list(string)"},
    "kubernetes.NamespaceCondition": {
        "status": "string",
        "type": "string",
        "lastTransitionTime": "timestamp",
        "message": "string",
        "reason": "string",
    },
    "kubernetes.NamespaceStatus": {"conditions": "list(kubernetes.NamespaceCondition)", "phase": "string"},
    "kubernetes.NamespaceMetadata": {
        "name": "string",
        "generateName": "string",
        "namespace": "string",
        "labels": "map(string, string)",
        "annotations": "map(string, string)",
        "UID": "string",
        "creationTimestamp": "timestamp",
        "deletionGracePeriodSeconds": "int",
        "deletionTimestamp": "timestamp",
        "generation": "int",
        "resourceVersion": "string",
        "finalizers": "list(string)",
    },
    "kubernetes.Namespace": {
        "metadata": "kubernetes.NamespaceMetadata",
        "spec": "kubernetes.NamespaceSpec",
        "status": "kubernetes.NamespaceStatus",
    },
}

_OWN: Final[Mapping[str, Mapping[str, Type]]] = {
    name: {member: written(kind) for member, kind in members.items()} for name, members in _MEMBERS.items()
}

MEMBERS: Final[Mapping[str, Mapping[str, Type]]] = {
    **_OWN,
    **{name: found.members for name, found in WELL_KNOWN.items()},
}
"""Types of the members of messages. Types that are not here have no members, and their names cannot be used."""

_NAMED: Final = (
    types.BOOL,
    types.BYTES,
    types.DOUBLE,
    types.DURATION,
    types.INT,
    written("list(A)"),
    written("map(A, B)"),
    types.NULL,
    types.STRING,
    types.TIMESTAMP,
    types.TYPE,
    types.UINT,
    written("net.IP"),
    written("net.CIDR"),
    written("optional_type"),
)

TYPE_NAMES: Final[Mapping[str, Type]] = {
    **{name: type_of_type(found.type) for name, found in WELL_KNOWN.items()},
    **{kind.name: type_of_type(kind) for kind in _NAMED},
    **{name: type_of_type(message(name)) for name in _OWN},
}
"""Names that stand for types: ``type(x) == int``."""
