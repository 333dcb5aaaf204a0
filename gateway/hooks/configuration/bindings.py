"""The elements of ``kubernetes``: which objects the snapshots of a hook are made of.

What only matters for running a hook at events (watchEvent, executeHookOnEvent, queue, …) is accepted and ignored.
"""

import re
from typing import Final

from gateway.hooks.configuration.model import FieldRequirement, HookConfiguration, ObjectBinding
from gateway.policies import wording
from gateway.policies.fields import Field
from gateway.policies.model import Selector
from gateway.policies.selectors import read_selector

_DEFAULT_NAME: Final = "kubernetes"
"""What shell-operator calls a binding that has no name."""

_EQUALS: Final = frozenset({"=", "==", "Equals"})
_API_VERSION = re.compile(r"[^/]+(/[^/]+)?")
_NAMESPACE: Final = ("v1", "Namespace")


def read_object_bindings(items: Field) -> tuple[ObjectBinding, ...]:
    """The bindings of a list that fits its form; mistakes in selectors are reported."""
    return tuple(_binding(item) for item in items.items() or ())


def snapshot_kinds(configuration: HookConfiguration) -> tuple[tuple[str, str], ...]:
    """The kinds (apiVersion, "" for any, and kind) of the objects that the snapshots of its admission bindings need.

    Namespaces as well, where one chooses namespaces by their labels.
    """
    wanted = {
        name
        for binding in (*configuration.mutating, *configuration.validating)
        for name in binding.snapshots_from or ()
    }
    kinds = set()
    for each in configuration.objects:
        if each.name in wanted:
            kinds.add((each.api_version, each.kind))
            if each.namespace_labels is not None:
                kinds.add(_NAMESPACE)
    return tuple(sorted(kinds))


def _binding(item: Field) -> ObjectBinding:
    api_version = item.get("apiVersion").said or ""
    if api_version and not _API_VERSION.fullmatch(api_version):
        item.get("apiVersion").refuse(wording.invalid(api_version, "must be VERSION or GROUP/VERSION"))
    names = _names(item.get("nameSelector"))
    fields = _fields(item.get("fieldSelector").get("matchExpressions"))
    if names and any(field.field == "metadata.name" for field in fields):
        detail = "fieldSelector 'metadata.name' and nameSelector.matchNames are mutually exclusive"
        item.get("fieldSelector").refuse(wording.forbidden(detail))
    namespace = item.get("namespace")
    keeps = item.get("keepFullObjectsInMemory")
    return ObjectBinding(
        name=item.get("name").said or _DEFAULT_NAME,
        kind=item.get("kind").said or "",
        api_version=api_version,
        names=names,
        labels=_selector(item.get("labelSelector")),
        fields=fields,
        namespaces=_names(namespace.get("nameSelector")),
        namespace_labels=_selector(namespace.get("labelSelector")),
        jq_filter=item.get("jqFilter").said or "",
        group=item.get("group").said or "",
        keeps_objects=keeps.flag() is not False,
    )


def _names(selector: Field) -> tuple[str, ...]:
    return tuple(text for _, text in selector.get("matchNames").texts() or ())


def _selector(field: Field) -> Selector | None:
    return None if field.absent else read_selector(field)


def _fields(expressions: Field) -> tuple[FieldRequirement, ...]:
    return tuple(
        FieldRequirement(
            field=item.get("field").said or "",
            value=item.get("value").said or "",
            equals=item.get("operator").said in _EQUALS,
        )
        for item in expressions.items() or ()
    )
