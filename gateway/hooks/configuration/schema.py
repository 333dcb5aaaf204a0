"""The form of ``--config``: shell-operator's schemas v1 and v0, and what does not fit them.

The schemas are in OpenAPI's words, as far as shell-operator uses them: ``type``, ``enum``, ``required``, ``properties``
(which are all that there may be, unless ``open``), ``items``, and how many of them there must be. null is of no type:
it fits nowhere. A number without a fraction is an integer, however it is written.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.policies import wording
from gateway.policies.fields import Field
from gateway.policies.nodes import Broken, Node, Value, type_name

Schema = Mapping[str, Any]


def _object(properties: Mapping[str, Schema], *required: str, least: int = 0, is_open: bool = False) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "least": least, "open": is_open}


def _list(items: Schema, least: int = 0) -> Schema:
    return {"type": "array", "items": items, "least": least}


def _word(*words: str) -> Schema:
    return {"type": "string", "enum": words}


_TEXT: Final[Schema] = {"type": "string"}
_FLAG: Final[Schema] = {"type": "boolean"}
_WHOLE: Final[Schema] = {"type": "integer"}
_TEXTS: Final = _list(_TEXT)
_SOME_TEXTS: Final = _list(_TEXT, least=1)
_MAP: Final[Schema] = {"type": "object", "properties": {}, "values": _TEXT, "required": (), "least": 0}

_NAMES: Final = _object({"matchNames": _TEXTS}, "matchNames")
_EXPRESSION: Final = _object(
    {"key": _TEXT, "operator": _word("In", "NotIn", "Exists", "DoesNotExist"), "values": _TEXTS}, "key", "operator"
)
_LABELS: Final = _object({"matchLabels": _MAP, "matchExpressions": _list(_EXPRESSION)}, least=1)
_FIELD: Final = _object(
    {"field": _TEXT, "operator": _word("=", "==", "Equals", "!=", "NotEquals"), "value": _TEXT},
    "field",
    "operator",
    "value",
)

_EVENTS: Final = _list(_word("Added", "Modified", "Deleted"))
_KUBERNETES: Final = _object(
    {
        "name": _TEXT,
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "watchEvent": _EVENTS,
        "executeHookOnEvent": _EVENTS,
        "includeSnapshotsFrom": _SOME_TEXTS,
        "queue": _TEXT,
        "jqFilter": _TEXT,
        "keepFullObjectsInMemory": _FLAG,
        "allowFailure": _FLAG,
        "executeHookOnSynchronization": _FLAG,
        "waitForSynchronization": _FLAG,
        "resynchronizationPeriod": _TEXT,
        "nameSelector": _NAMES,
        "labelSelector": _LABELS,
        "fieldSelector": _object({"matchExpressions": _list(_FIELD)}, "matchExpressions"),
        "group": _TEXT,
        "namespace": _object({"nameSelector": _NAMES, "labelSelector": _LABELS}, least=1),
    },
    "kind",
)

_RULE: Final = _object(
    {
        "apiVersions": _SOME_TEXTS,
        "apiGroups": _SOME_TEXTS,
        "resources": _SOME_TEXTS,
        "operations": _list(_word("CREATE", "UPDATE", "DELETE", "CONNECT", "*"), least=1),
        "scope": _word("Cluster", "Namespaced", "*"),
    },
    "apiVersions",
    "apiGroups",
    "resources",
    "operations",
)
_ADMISSION: Final = _object(
    {
        "name": _TEXT,
        "group": _TEXT,
        "includeSnapshotsFrom": _SOME_TEXTS,
        "failurePolicy": _word("Ignore", "Fail"),
        "sideEffects": _word("None", "NoneOnDryRun"),
        "timeoutSeconds": _WHOLE,
        "matchConditions": _list(
            _object({"expression": _TEXT, "name": _TEXT}, "expression", "name", is_open=True)  # others are ignored
        ),
        "labelSelector": _LABELS,
        "namespace": _object({"labelSelector": _LABELS}, "labelSelector"),
        "rules": _list(_RULE, least=1),
    },
    "name",
)

_SCHEDULE: Final = _object(
    {
        "name": _TEXT,
        "crontab": _TEXT,
        "allowFailure": _FLAG,
        "includeSnapshotsFrom": _SOME_TEXTS,
        "queue": _TEXT,
        "group": _TEXT,
    },
    "crontab",
)
_CONVERSION: Final = _object(
    {
        "name": _TEXT,
        "group": _TEXT,
        "includeSnapshotsFrom": _SOME_TEXTS,
        "crdName": _TEXT,
        "conversions": _list(_object({"fromVersion": _TEXT, "toVersion": _TEXT}, "fromVersion", "toVersion"), least=1),
    },
    "name",
    "crdName",
    "conversions",
)

_ANY_OBJECT: Final[Schema] = {"type": "object", "properties": {}, "required": (), "least": 0, "open": True}

FORMS: Final[Mapping[str, Schema]] = {
    "v1": _object(
        {
            "configVersion": _word("v1"),
            "settings": _object({"executionMinInterval": _TEXT, "executionBurst": _WHOLE}),
            "onStartup": _WHOLE,
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
        {"onStartup": _WHOLE, "schedule": _list(_ANY_OBJECT), "onKubernetesEvent": _list(_ANY_OBJECT)}, least=1
    ),
}
"""What a configuration of each version looks like; v0 is one without ``configVersion``."""

_TYPES: Final[Mapping[str, type]] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


def fits(field: Field, schema: Schema) -> bool:
    """Whether the value is of this form; all that is not is reported."""
    before = len(field.findings)
    if field.node is not None:
        _judge(field, field.node, schema, [])
    return len(field.findings) == before


def _judge(root: Field, node: Node, schema: Schema, trail: list[str | int]) -> None:
    value = _whole(node.value) if schema["type"] == "integer" else node.value
    place = root.at(trail, node)
    if isinstance(value, Broken):
        place.refuse_broken(value)
    elif not isinstance(value, _TYPES[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean"):
        place.refuse(wording.wrong_type(type_name(value), schema["type"]))
    elif isinstance(value, dict):
        _judge_members(root, place, value, schema, trail)
        _judge_size(place, len(value), schema["least"], "member")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _judge(root, item, schema["items"], [*trail, index])
        _judge_size(place, len(value), schema["least"], "item")
    elif "enum" in schema and value not in schema["enum"]:
        place.refuse(wording.unsupported(str(value), schema["enum"]))


def _judge_members(
    root: Field, place: Field, members: Mapping[str, Node], schema: Schema, trail: list[str | int]
) -> None:
    for name, node in members.items():
        known = schema["properties"].get(name, schema.get("values"))
        if known is not None:
            _judge(root, node, known, [*trail, name])
        elif isinstance(node.value, Broken):
            place.get(name).refuse_broken(node.value)
        elif not schema.get("open"):
            place.get(name).refuse(wording.forbidden("there is no such property here"))
    for name in schema["required"]:
        if name not in members:
            place.get(name).refuse(wording.required())


def _judge_size(place: Field, count: int, least: int, what: str) -> None:
    if count < least:
        plural = "s" if least != 1 else ""
        place.refuse(
            f"Invalid value: has {count} {what}{'s' if count != 1 else ''}, must have at least {least} {what}{plural}"
        )


def _whole(value: Value) -> Value:
    """A number without a fraction is an integer, however it is written."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
