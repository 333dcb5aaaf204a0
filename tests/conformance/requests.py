"""admission.Attributes of a case as the AdmissionRequest that the API server would send."""

import json
from collections.abc import Mapping
from typing import Any

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.review.request import GroupVersionKind, GroupVersionResource, Request, decode
from tests.conformance.cases import CaseError, member

MARKER = "_goType"
"""Which Go type an object of the case had: not part of the object."""


def to_request(
    attributes: Any, *, resource: GroupVersionResource | None = None, kind: GroupVersionKind | None = None
) -> Request:
    """The request; converted to ``resource`` and ``kind`` where they are given, as for a webhook that wants these."""
    client = complete({"kind": member(attributes, "kind", dict, {}), "resource": member(attributes, "resource", dict)})
    sub_resource = member(attributes, "subResource", str, "")
    body = {
        "uid": "7f0b2891-916f-4ed6-b7cd-27bff1815a8c",
        "kind": client["kind"] if kind is None else _named(kind, "kind"),
        "resource": client["resource"] if resource is None else _named(resource, "resource"),
        "subResource": sub_resource,
        "requestKind": client["kind"],
        "requestResource": client["resource"],
        "requestSubResource": sub_resource,
        "name": member(attributes, "name", str, ""),
        "namespace": member(attributes, "namespace", str, ""),
        "operation": member(attributes, "operation", str),
        "userInfo": member(attributes, "userInfo", dict, {}),
        "object": _converted(member(attributes, "object", dict, None), kind),
        "oldObject": _converted(member(attributes, "oldObject", dict, None), kind),
        "dryRun": member(attributes, "dryRun", bool, False),
        "options": _converted(member(attributes, "options", dict, None), None),
    }
    # "Absent, not empty or null, when empty."
    for name in ("subResource", "requestSubResource", "name", "namespace"):
        if not body[name]:
            del body[name]
    return review(body)


def complete(body: Mapping[str, Any]) -> dict[str, Any]:
    """An AdmissionRequest's body with what a case may leave out: Go's zero values, and an operation."""
    kind = {"group": "", "version": "", "kind": ""} | _said(member(body, "kind", dict, {}))
    resource = {"group": "", "version": "", "resource": ""} | _said(member(body, "resource", dict, {}))
    return {"operation": "CREATE", **_said(body), "kind": kind, "resource": resource}


def _said(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in value.items() if each is not None}


def review(body: Mapping[str, Any]) -> Request:
    """A request, by way of the AdmissionReview that carries it."""
    text = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body}
    return decode(json.dumps(text).encode())


def _named(value: GroupVersionKind | GroupVersionResource, last: str) -> dict[str, str]:
    return {"group": value.group, "version": value.version, last: getattr(value, last)}


def _converted(obj: dict[str, Any] | None, kind: GroupVersionKind | None) -> dict[str, Any] | None:
    """The oracle's conversion: "only apiVersion/kind of object and oldObject are replaced"."""
    if obj is None:
        return None
    obj = {name: value for name, value in obj.items() if name != MARKER}
    if kind is not None:
        obj["apiVersion"] = f"{kind.group}/{kind.version}" if kind.group else kind.version
        obj["kind"] = kind.kind
    return obj


def authorize(sentence: Any, check: AuthorizationCheck, user: str) -> Authorization:
    """What the authorizer that a case describes in words says to a check. Raises CaseError for unknown words."""
    if not isinstance(sentence, str):
        raise CaseError("authorizer: missing, and a condition uses it")
    for beginning, allows in AUTHORIZERS.items():
        if sentence.startswith(beginning):
            name = user if check.service_account is None else "system:serviceaccount:" + ":".join(check.service_account)
            return Authorization(allowed=allows(check, name))
    raise CaseError(f"authorizer: unknown: {sentence!r}")


AUTHORIZERS = {
    "allows every check when the user name is 'admin'": lambda _, user: user == "admin",
    "allows verb breakglass, and any verb on resource deployments in namespace prod": lambda check, _: (
        check.verb == "breakglass" or (check.resource == "deployments" and check.namespace == "prod")
    ),
}
