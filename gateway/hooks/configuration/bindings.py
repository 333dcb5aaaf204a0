"""The bindings of a hook: ``kubernetes``, which select the objects of snapshots, and ``kubernetesValidating`` and
``kubernetesMutating``, which become policies.

Members that matter only to hooks that run at events (watchEvent, executeHookOnEvent, queue, …) are accepted and
ignored.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gateway.hooks.configuration.model import AdmissionBinding, FieldRequirement, HookConfiguration, ObjectBinding
from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.decoding.nodes import Broken, Node
from gateway.policies.fields.rules import read_rules
from gateway.policies.fields.selectors import read_selector
from gateway.policies.fields.webhook import MAX_TIMEOUT
from gateway.policies.model import Phase, Selector
from gateway.policies.names import fully_qualified

KEYS: Final = {Phase.VALIDATING: "kubernetesValidating", Phase.MUTATING: "kubernetesMutating"}
"""The lists of admission bindings."""

_DEFAULT_NAME: Final = "kubernetes"
"""shell-operator's name of a ``kubernetes`` binding without a name."""

_EQUALS: Final = frozenset({"=", "==", "Equals"})
_API_VERSION = re.compile(r"[^/]+(/[^/]+)?")
_NAMESPACE: Final = ("v1", "Namespace")
_DEFAULTS: Final[Mapping[str, Any]] = {"failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 10}
_INT32: Final = 2**31


def snapshot_kinds(configuration: HookConfiguration) -> tuple[tuple[str, str], ...]:
    """The kinds (apiVersion, "" for any, and kind) of the objects in the snapshots of the admission bindings.

    Namespaces are among them where a binding selects namespaces by labels.
    """
    included = {
        name
        for binding in (*configuration.mutating, *configuration.validating)
        for name in binding.snapshots_from or ()
    }
    kinds = set()
    for each in configuration.objects:
        if each.name in included:
            kinds.add((each.api_version, each.kind))
            if each.namespace_labels is not None:
                kinds.add(_NAMESPACE)
    return tuple(sorted(kinds))


# --------------------------------------------------------------------------------------------------- kubernetes


def read_object_bindings(items: Field) -> tuple[ObjectBinding, ...]:
    """The bindings of a list that conforms to its schema; errors in selectors are reported."""
    return tuple(_object_binding(item) for item in items.items() or ())


def _object_binding(item: Field) -> ObjectBinding:
    api_version = item.get("apiVersion").raw_text or ""
    if api_version and not _API_VERSION.fullmatch(api_version):
        item.get("apiVersion").refuse(field_errors.invalid(api_version, "must be VERSION or GROUP/VERSION"))
    names = _names(item.get("nameSelector"))
    fields = _field_requirements(item.get("fieldSelector").get("matchExpressions"))
    if names and any(field.field == "metadata.name" for field in fields):
        detail = "fieldSelector 'metadata.name' and nameSelector.matchNames are mutually exclusive"
        item.get("fieldSelector").refuse(field_errors.forbidden(detail))
    namespace = item.get("namespace")
    keeps = item.get("keepFullObjectsInMemory")
    return ObjectBinding(
        name=item.get("name").raw_text or _DEFAULT_NAME,
        kind=item.get("kind").raw_text or "",
        api_version=api_version,
        names=names,
        labels=_label_selector(item.get("labelSelector")),
        fields=fields,
        namespaces=_names(namespace.get("nameSelector")),
        namespace_labels=_label_selector(namespace.get("labelSelector")),
        jq_filter=item.get("jqFilter").raw_text or "",
        group=item.get("group").raw_text or "",
        keeps_objects=keeps.flag() is not False,
    )


def _names(selector: Field) -> tuple[str, ...]:
    return tuple(text for _, text in selector.get("matchNames").texts() or ())


def _label_selector(field: Field) -> Selector | None:
    return None if field.absent else read_selector(field)


def _field_requirements(expressions: Field) -> tuple[FieldRequirement, ...]:
    return tuple(
        FieldRequirement(
            field=item.get("field").raw_text or "",
            value=item.get("value").raw_text or "",
            equals=item.get("operator").raw_text in _EQUALS,
        )
        for item in expressions.items() or ()
    )


# ---------------------------------------------------------------------------------------------------- admission


def read_admission_bindings(
    items: Field, phase: Phase, names: list[str], groups: Mapping[str, list[str]]
) -> Iterator[AdmissionBinding]:
    """The bindings of a list that conforms to its schema; what else shell-operator rejects is reported.

    Args:
        items: the list.
        phase: the phase of its bindings.
        names: of the ``kubernetes`` bindings.
        groups: the names of the ``kubernetes`` bindings of each group.
    """
    for item in items.items() or ():
        check_snapshots(item, names)
        read_selector(item.get("labelSelector"))
        read_selector(item.get("namespace").get("labelSelector"))
        _check_seconds(item.get("timeoutSeconds"), phase)
        if phase is Phase.VALIDATING:
            item.get("name").refuse_each(
                item.get("name").raw_text or "", fully_qualified(item.get("name").raw_text or "")
            )
            read_rules(item.get("rules"), [])
        group = item.get("group").raw_text or ""
        yield AdmissionBinding(
            name=item.get("name").raw_text or "",
            phase=phase,
            webhook=_webhook(item),
            group=group,
            snapshots_from=_snapshots_from(item.get("includeSnapshotsFrom"), groups.get(group)),
        )


def check_snapshots(item: Field, names: list[str]) -> None:
    """Report each name in ``includeSnapshotsFrom`` that does not stand for exactly one of these bindings."""
    for field, name in item.get("includeSnapshotsFrom").texts() or ():
        count = names.count(name)
        if count == 0:
            field.refuse(field_errors.not_found(name) + ": no binding of kubernetes has this name")
        elif count > 1:
            field.refuse(field_errors.invalid(name, f"there are {count} bindings of kubernetes with this name"))


def check_int32(field: Field) -> None:
    """Report a number that is no int32."""
    number = field.number()
    if number is not None and not -_INT32 <= number < _INT32:
        field.refuse(field_errors.invalid(int(number), "must be an integer of 32 bits"))


def _check_seconds(field: Field, phase: Phase) -> None:
    seconds = field.number()
    if seconds is None:
        return
    if phase is Phase.VALIDATING and not 1 <= seconds <= MAX_TIMEOUT:
        field.refuse(
            field_errors.invalid(int(seconds), f"the timeout value must be between 1 and {MAX_TIMEOUT} seconds")
        )
    else:
        check_int32(field)


def _webhook(item: Field) -> Mapping[str, Any]:
    """The webhook that shell-operator makes of a binding, without what it adds on registration."""
    members = {name: plain_value(node) for name, node in item.named_members()}
    selectors = {
        "namespaceSelector": _without_empty(members.get("namespace", {}).get("labelSelector")),
        "objectSelector": _without_empty(members.get("labelSelector")),
    }
    conditions = [
        {key: condition[key] for key in ("name", "expression")} for condition in members.get("matchConditions", ())
    ]
    return {
        "name": members["name"],
        **({"rules": members["rules"]} if "rules" in members else {}),
        **{name: selector for name, selector in selectors.items() if selector is not None},
        **({"matchConditions": conditions} if conditions else {}),
        **{name: members.get(name, default) for name, default in _DEFAULTS.items()},
    }


def _without_empty(selector: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A selector without empty members, as Go encodes it."""
    if selector is None:
        return None
    expressions = [
        {name: value for name, value in each.items() if value != []} for each in selector.get("matchExpressions", ())
    ]
    parts = {"matchLabels": selector.get("matchLabels"), "matchExpressions": expressions}
    return {name: part for name, part in parts.items() if part}


def _snapshots_from(included: Field, of_group: list[str] | None) -> tuple[str, ...] | None:
    """The included names in their order, then the others of the group."""
    names = [text for _, text in included.texts() or ()]
    if of_group is None:
        return tuple(names) or None
    return (*names, *(name for name in dict.fromkeys(of_group) if name not in names))


def plain_value(node: Node) -> Any:
    """A node as a JSON value (dict, list, str, int, float, bool, None); a float without a fraction becomes an int.

    A broken node becomes None. The recursion is limited by nodes.MAX_DEPTH.
    """
    value = node.value
    if isinstance(value, Broken):
        return None
    if isinstance(value, dict):
        return {name: plain_value(child) for name, child in value.items()}
    if isinstance(value, list):
        return [plain_value(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
