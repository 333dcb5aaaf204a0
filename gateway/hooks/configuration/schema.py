"""shell-operator's schemas v1 and v0 of ``--config``, and the check whether a value conforms to one.

A schema has the OpenAPI keywords that shell-operator uses: ``type``, ``enum``, ``required``, ``properties`` (others are
forbidden, unless ``open``), ``items``, and the least number of items or members. null has no type, so it conforms to no
schema. A number without a fraction is an integer, however it is written.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.decoding.nodes import Broken, Node, Value, type_name

Schema = Mapping[str, Any]


def _object(properties: Mapping[str, Schema], *required: str, least: int = 0, is_open: bool = False) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "least": least, "open": is_open}


def _list(items: Schema, least: int = 0) -> Schema:
    return {"type": "array", "items": items, "least": least}


def _enum(*values: str) -> Schema:
    return {"type": "string", "enum": values}


_STRING: Final[Schema] = {"type": "string"}
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_INTEGER: Final[Schema] = {"type": "integer"}
_STRINGS: Final = _list(_STRING)
_SOME_STRINGS: Final = _list(_STRING, least=1)
_MAP: Final[Schema] = {"type": "object", "properties": {}, "values": _STRING, "required": (), "least": 0}

_NAMES: Final = _object({"matchNames": _STRINGS}, "matchNames")
_EXPRESSION: Final = _object(
    {"key": _STRING, "operator": _enum("In", "NotIn", "Exists", "DoesNotExist"), "values": _STRINGS}, "key", "operator"
)
_LABELS: Final = _object({"matchLabels": _MAP, "matchExpressions": _list(_EXPRESSION)}, least=1)
_FIELD: Final = _object(
    {"field": _STRING, "operator": _enum("=", "==", "Equals", "!=", "NotEquals"), "value": _STRING},
    "field",
    "operator",
    "value",
)

_EVENTS: Final = _list(_enum("Added", "Modified", "Deleted"))
_KUBERNETES: Final = _object(
    {
        "name": _STRING,
        "apiVersion": _STRING,
        "kind": _STRING,
        "watchEvent": _EVENTS,
        "executeHookOnEvent": _EVENTS,
        "includeSnapshotsFrom": _SOME_STRINGS,
        "queue": _STRING,
        "jqFilter": _STRING,
        "keepFullObjectsInMemory": _BOOLEAN,
        "allowFailure": _BOOLEAN,
        "executeHookOnSynchronization": _BOOLEAN,
        "waitForSynchronization": _BOOLEAN,
        "resynchronizationPeriod": _STRING,
        "nameSelector": _NAMES,
        "labelSelector": _LABELS,
        "fieldSelector": _object({"matchExpressions": _list(_FIELD)}, "matchExpressions"),
        "group": _STRING,
        "namespace": _object({"nameSelector": _NAMES, "labelSelector": _LABELS}, least=1),
    },
    "kind",
)

_RULE: Final = _object(
    {
        "apiVersions": _SOME_STRINGS,
        "apiGroups": _SOME_STRINGS,
        "resources": _SOME_STRINGS,
        "operations": _list(_enum("CREATE", "UPDATE", "DELETE", "CONNECT", "*"), least=1),
        "scope": _enum("Cluster", "Namespaced", "*"),
    },
    "apiVersions",
    "apiGroups",
    "resources",
    "operations",
)
_ADMISSION: Final = _object(
    {
        "name": _STRING,
        "group": _STRING,
        "includeSnapshotsFrom": _SOME_STRINGS,
        "failurePolicy": _enum("Ignore", "Fail"),
        "sideEffects": _enum("None", "NoneOnDryRun"),
        "timeoutSeconds": _INTEGER,
        "matchConditions": _list(
            _object({"expression": _STRING, "name": _STRING}, "expression", "name", is_open=True)  # others are ignored
        ),
        "labelSelector": _LABELS,
        "namespace": _object({"labelSelector": _LABELS}, "labelSelector"),
        "rules": _list(_RULE, least=1),
    },
    "name",
)

_SCHEDULE: Final = _object(
    {
        "name": _STRING,
        "crontab": _STRING,
        "allowFailure": _BOOLEAN,
        "includeSnapshotsFrom": _SOME_STRINGS,
        "queue": _STRING,
        "group": _STRING,
    },
    "crontab",
)
_CONVERSION: Final = _object(
    {
        "name": _STRING,
        "group": _STRING,
        "includeSnapshotsFrom": _SOME_STRINGS,
        "crdName": _STRING,
        "conversions": _list(
            _object({"fromVersion": _STRING, "toVersion": _STRING}, "fromVersion", "toVersion"), least=1
        ),
    },
    "name",
    "crdName",
    "conversions",
)

_ANY_OBJECT: Final[Schema] = {"type": "object", "properties": {}, "required": (), "least": 0, "open": True}

SCHEMAS: Final[Mapping[str, Schema]] = {
    "v1": _object(
        {
            "configVersion": _enum("v1"),
            "settings": _object({"executionMinInterval": _STRING, "executionBurst": _INTEGER}),
            "onStartup": _INTEGER,
            "schedule": _list(_SCHEDULE, least=1),
            "kubernetes": _list(_KUBERNETES, least=1),
            "kubernetesMutating": _list(_ADMISSION, least=1),
            "kubernetesValidating": _list(_ADMISSION, least=1),
            "kubernetesCustomResourceConversion": _list(_CONVERSION, least=1),
        },
        "configVersion",
        least=2,
    ),
    "v0": _object(
        {"onStartup": _INTEGER, "schedule": _list(_ANY_OBJECT), "onKubernetesEvent": _list(_ANY_OBJECT)}, least=1
    ),
}
"""Of each version; v0 is a configuration without ``configVersion``."""

_TYPES: Final[Mapping[str, type]] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


def conforms(field: Field, schema: Schema) -> bool:
    """Whether the value conforms to the schema; each violation is reported."""
    before = len(field.findings)
    if field.node is not None:
        _check(field, field.node, schema, [])
    return len(field.findings) == before


def _check(root: Field, node: Node, schema: Schema, path: list[str | int]) -> None:
    value = _integer(node.value) if schema["type"] == "integer" else node.value
    place = root.at(path, node)
    if isinstance(value, Broken):
        place.refuse_broken(value)
    elif not isinstance(value, _TYPES[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean"):
        place.refuse(field_errors.wrong_type(type_name(value), schema["type"]))
    elif isinstance(value, dict):
        _check_members(root, place, value, schema, path)
        _check_size(place, len(value), schema["least"], "member")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(root, item, schema["items"], [*path, index])
        _check_size(place, len(value), schema["least"], "item")
    elif "enum" in schema and value not in schema["enum"]:
        place.refuse(field_errors.unsupported(str(value), schema["enum"]))


def _check_members(
    root: Field, place: Field, members: Mapping[str, Node], schema: Schema, path: list[str | int]
) -> None:
    for name, node in members.items():
        known = schema["properties"].get(name, schema.get("values"))
        if known is not None:
            _check(root, node, known, [*path, name])
        elif isinstance(node.value, Broken):
            place.get(name).refuse_broken(node.value)
        elif not schema.get("open"):
            place.get(name).refuse(field_errors.forbidden("there is no such property here"))
    for name in schema["required"]:
        if name not in members:
            place.get(name).refuse(field_errors.required())


def _check_size(place: Field, count: int, least: int, what: str) -> None:
    if count < least:
        plural = "s" if least != 1 else ""
        place.refuse(
            f"Invalid value: has {count} {what}{'s' if count != 1 else ''}, must have at least {least} {what}{plural}"
        )


def _integer(value: Value) -> Value:
    """A number without a fraction is an integer, however it is written."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
