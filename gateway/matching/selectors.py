"""Label selectors, with the semantics of metav1.LabelSelectorAsSelector.

NotIn and DoesNotExist match where the key is absent; In and Exists don't. An empty selector matches everything.
"""

from collections.abc import Mapping
from typing import Any

from gateway.policies.model import Requirement, Selector

Labels = Mapping[str, str]


def selects(selector: Selector, labels: Labels) -> bool:
    """Whether all of the selector's requirements hold for these labels."""
    for requirement in selector.requirements:  # noqa: SIM110 - a generator costs more than what it calls
        if not _holds(requirement, labels):
            return False
    return True


def _holds(requirement: Requirement, labels: Labels) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case operator:
            raise AssertionError(f"selector operator {operator!r} passed validation")


def object_labels(obj: Any) -> Labels | None:
    """The labels of a decoded object; None if it has no metadata, so that no selector but the empty one matches it.

    ("an object without metadata never matches": PodExecOptions and its like, and the absent object of a DELETE.)

    Labels of a wrong JSON type are read as Unstructured.GetLabels reads them: null is the empty string; if any other
    value is not a string, there are no labels.
    """
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict):
        return None
    labels = metadata.get("labels")
    if not isinstance(labels, dict):
        return {}
    if all(type(value) is str for value in labels.values()):
        return labels
    coerced = {key: "" if value is None else value for key, value in labels.items()}
    return coerced if all(isinstance(value, str) for value in coerced.values()) else {}


def object_selected(selector: Selector, obj: Any, old_object: Any) -> bool:
    """Whether the selector matches the current object or the old one."""
    if not selector.requirements:
        return True
    for candidate in (obj, old_object):
        labels = object_labels(candidate)
        if labels is not None and selects(selector, labels):
            return True
    return False
