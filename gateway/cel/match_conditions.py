"""Compile matchConditions (k8s.io/apiserver/pkg/admission/plugin/cel/compile.go).

``object`` and ``oldObject`` are dyn; ``request`` is an AdmissionRequest without uid, object and oldObject: "The 'uid'
field is omitted since it is not needed for in-process admission review." ``namespaceObject`` is declared, and null
for webhooks. ``params`` and ``variables`` are not declared.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final

from gateway.cel.condition import Authorizations, Condition, Reader, Variables
from gateway.cel.environment import CompileError, Environment
from gateway.cel.libraries.authorizer import Authorizer, ResourceCheck, request_resource

MESSAGES: Final[Mapping[str, Mapping[str, str]]] = {
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
"""The messages that these variables are made of."""


def _object(variables: Variables, _authorizations: Authorizations) -> Any:
    return variables.object


def _old_object(variables: Variables, _authorizations: Authorizations) -> Any:
    return variables.old_object


def _namespace_object(_variables: Variables, _authorizations: Authorizations) -> None:
    return None


def _request(variables: Variables, _authorizations: Authorizations) -> dict[str, Any]:
    request = variables.request
    return request if isinstance(request, dict) else dict(request)


def _authorizer(_variables: Variables, authorizations: Authorizations) -> Authorizer:
    return Authorizer(authorizations)


def _request_resource(variables: Variables, authorizations: Authorizations) -> ResourceCheck:
    return request_resource(Authorizer(authorizations), variables.request)


_VARIABLES: Final[Mapping[str, tuple[str, Reader]]] = {
    "object": ("dyn", _object),
    "oldObject": ("dyn", _old_object),
    "namespaceObject": ("kubernetes.Namespace", _namespace_object),
    "request": ("kubernetes.AdmissionRequest", _request),
    "authorizer": ("kubernetes.authorization.Authorizer", _authorizer),
    "authorizer.requestResource": ("kubernetes.authorization.ResourceCheck", _request_resource),
}
"""The type of each variable, and what reads it."""


@cache
def environment() -> Environment:
    """The environment of matchConditions in the newest version of Kubernetes."""
    return Environment({name: kind for name, (kind, _) in _VARIABLES.items()}, messages=MESSAGES)


_MOST_KEPT: Final = 4096
"""Compiled conditions: 64 webhooks with 64 conditions each, a few kilobytes apiece."""


@lru_cache(maxsize=_MOST_KEPT)
def compile_condition(expression: str) -> Condition:
    """Compile a matchCondition; never raises: what is wrong with it stands in ``error``."""
    try:
        program = environment().compile(expression, result="bool")
    except CompileError as error:
        return Condition(expression=expression, error=str(error))
    readers = tuple(_VARIABLES[name][1] for name in program.variables)
    return Condition(expression=expression, _program=program, _readers=readers)
