"""The snapshots of a hook: lists of Kubernetes objects, as its ``kubernetes`` bindings select them.

They are made from the objects among the configuration's documents, again whenever these or the hook have changed. An
element is shell-operator's: ``object``, unless ``keepFullObjectsInMemory`` is false; and ``filterResult`` if there is a
``jqFilter``: the output of the jq program, null if it has none, an array if it has several values. A list is sorted by
namespace and name.

The labels of a namespace are those of its Namespace document. Without that document, no label selector selects it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.hooks.configuration.model import ObjectBinding
from gateway.hooks.execution.jq import JqError, apply_filter
from gateway.matching.selectors import object_labels, selects
from gateway.policies.workers.hook_target import is_named

_NAMESPACE: Final = ("v1", "Namespace")


class SnapshotError(Exception):
    """Snapshots cannot be made. ``str(error)`` says of which binding, why, and what to do."""


async def snapshot(
    binding: ObjectBinding, objects: Sequence[Mapping[str, Any]], *, seconds: float, output_bytes: int
) -> list[dict[str, Any]]:
    """The snapshot of one binding.

    Args:
        binding: selects the objects, and what is included of each.
        objects: of all kinds.
        seconds: the time limit of jq.
        output_bytes: its output limit.

    Raises:
        SnapshotError: jq fails.
    """
    found = sorted(selected(binding, objects), key=lambda each: (_text(each, "namespace"), _text(each, "name")))
    items: list[dict[str, Any]] = [{"object": each} if binding.keeps_objects else {} for each in found]
    if binding.jq_filter:
        results = await _filtered(binding, found, seconds, output_bytes)
        for item, result in zip(items, results, strict=True):
            item["filterResult"] = result
    return items


def selected(binding: ObjectBinding, objects: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The objects that a binding selects."""
    namespaces = {
        _text(each, "name"): object_labels(each) or {}
        for each in objects
        if (each.get("apiVersion"), each.get("kind")) == _NAMESPACE
    }
    return [each for each in objects if _is_kind(binding, each) and _is_selected(binding, each, namespaces)]


def _is_kind(binding: ObjectBinding, item: Mapping[str, Any]) -> bool:
    # "Case-insensitive name, kind or short name" (shell-operator). Only the cluster knows short names.
    return is_named(((binding.api_version, binding.kind),), str(item.get("apiVersion")), str(item.get("kind", "")))


def _is_selected(binding: ObjectBinding, item: Mapping[str, Any], namespaces: Mapping[str, Mapping[str, str]]) -> bool:
    namespace = _text(item, "namespace")
    labels = object_labels(item) or {}
    return (
        (not binding.names or _text(item, "name") in binding.names)
        and (not binding.namespaces or namespace in binding.namespaces)
        and (binding.labels is None or selects(binding.labels, labels))
        and (
            binding.namespace_labels is None
            or (namespace in namespaces and selects(binding.namespace_labels, namespaces[namespace]))
        )
        and all((_at(item, each.field) == each.value) is each.equals for each in binding.fields)
    )


def _text(item: Mapping[str, Any], name: str) -> str:
    metadata = item.get("metadata")
    value = metadata.get(name) if isinstance(metadata, Mapping) else None
    return value if isinstance(value, str) else ""


def _at(item: Any, path: str) -> str:
    """The value at a field selector's path; "" where there is none, as in the API server."""
    for step in path.split("."):
        item = item.get(step) if isinstance(item, Mapping) else None
    return item if isinstance(item, str) else "" if item is None else json.dumps(item)


async def _filtered(
    binding: ObjectBinding, objects: Sequence[Mapping[str, Any]], seconds: float, output_bytes: int
) -> list[Any]:
    """The filter's result for each object."""
    try:
        results = await apply_filter(
            binding.jq_filter, [json.dumps(each).encode() for each in objects], seconds, output_bytes
        )
    except JqError as error:
        raise SnapshotError(f"binding {binding.name!r}: {error}") from None
    for each in results:
        if each.error:
            raise SnapshotError(f"binding {binding.name!r}: jq cannot apply its jqFilter: {each.error}")
    return [each.filter_result for each in results]
