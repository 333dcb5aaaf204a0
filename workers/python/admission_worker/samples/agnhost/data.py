"""``/configmaps`` and ``/custom-resource``, and the two that change their data in two stages."""

from typing import Any, Final

from admission_worker import Answer, Request, patch
from admission_worker.samples.agnhost.agnhost_worker import (
    CONFIGMAPS,
    KEY,
    UNWANTED,
    denial,
    expect,
    members,
    unknown_kind,
    worker,
)

NOT_DELETABLE: Final = "webhook-nondeletable"

_BOTH: Final = [f"/{whole}/{member}" for whole in ("object", "oldObject") for member in ("apiVersion", "kind", "data")]
_OBJECT: Final = ["/object/apiVersion", "/object/kind", "/object/data"]


@worker.validating("configmaps", inputs=_BOTH)
def configmaps(request: Request) -> Answer | None:
    """Denies configmaps with unwanted data, and to delete those that must stay."""
    expect(request, CONFIGMAPS)
    whole = _judged(request)
    return unknown_kind(whole, "ConfigMap") or _judge(
        request.operation,
        members(whole, "data"),
        unwanted="the configmap contains unwanted key and value",
        not_deletable="the configmap cannot be deleted because it contains unwanted key and value",
    )


@worker.validating("custom-resource", inputs=_BOTH)
def custom_resource(request: Request) -> Answer | None:
    """Denies custom resources with unwanted data, and to delete those that must stay."""
    whole = _judged(request)
    return _unreadable(whole) or _judge(
        request.operation,
        members(whole, "data"),
        unwanted="the custom resource contains unwanted data",
        not_deletable="the custom resource cannot be deleted because it contains unwanted key and value",
    )


@worker.mutating("mutating-configmaps", inputs=_OBJECT, writes=["/data"])
def mutating_configmaps(request: Request) -> Answer | None:
    """Adds a datum to a configmap that is begun, and another one to it after that."""
    expect(request, CONFIGMAPS)
    return unknown_kind(request.object, "ConfigMap") or _next_stage(members(request.object, "data"))


@worker.mutating("mutating-custom-resource", inputs=_OBJECT, writes=["/data"])
def mutating_custom_resource(request: Request) -> Answer | None:
    """As mutating-configmaps, of any object with data."""
    return _unreadable(request.object) or _next_stage(members(request.object, "data"))


def _judged(request: Request) -> dict[str, Any] | None:
    return request.old_object if request.operation == "DELETE" else request.object


def _judge(operation: str | None, data: dict[str, Any], *, unwanted: str, not_deletable: str) -> Answer | None:
    """The sentences are reasons, and there is no message, as in agnhost."""
    if data.get(KEY) == UNWANTED and operation in {"CREATE", "UPDATE"}:
        return denial(reason=unwanted)
    if data.get(KEY) == NOT_DELETABLE and operation == "DELETE":
        return denial(reason=not_deletable)
    return None


def _next_stage(data: dict[str, Any]) -> Answer | None:
    for there, added in (("mutation-stage-1", "mutation-stage-2"), ("mutation-start", "mutation-stage-1")):
        if data.get(there) == "yes":
            return patch([{"op": "add", "path": f"/data/{added}", "value": "yes"}])
    return None


def _unreadable(whole: dict[str, Any] | None) -> Answer | None:
    """The error of Go's encoding/json for an object whose data is not a map of strings."""
    if whole is None:
        return denial("unexpected end of JSON input")
    data = whole.get("data")
    if data is None:
        return None
    if not isinstance(data, dict):
        return denial(f"json: cannot unmarshal {_json_kind(data)} into Go struct field .Data of type map[string]string")
    for value in data.values():
        if value is not None and not isinstance(value, str):
            return denial(f"json: cannot unmarshal {_json_kind(value)} into Go struct field .Data of type string")
    return None


def _json_kind(value: Any) -> str:
    """The value's type in Go's words."""
    kinds = {bool: "bool", str: "string", dict: "object", list: "array"}
    return kinds.get(type(value), "number")
