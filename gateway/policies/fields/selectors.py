"""metav1.LabelSelector: read, with Kubernetes' validation.

A selector's requirements are ANDed, so one that cannot be read is left out: the rest selects more, never less.
"""

from typing import Final

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.model import Requirement, Selector
from gateway.policies.names import label_key, label_value

SELECTOR_FIELDS: Final = ("matchLabels", "matchExpressions")
REQUIREMENT_FIELDS: Final = ("key", "operator", "values")
WITH_VALUES: Final = ("In", "NotIn")
WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")


def read_selector(field: Field) -> Selector:
    """The selector that stands here; the empty one, which selects everything, if there is none."""
    field.mapping(SELECTOR_FIELDS)
    return Selector(requirements=(*_labels(field.get("matchLabels")), *_expressions(field.get("matchExpressions"))))


def read_labels(field: Field) -> dict[str, str]:
    """An object of labels, in order of their keys; those that are no labels are reported and left out.

    Kubernetes names the object, not the label, as the path of a label's bad syntax; the line is the label's.
    """
    labels: dict[str, str] = {}
    field.mapping()
    for key, member in sorted(field.members(), key=lambda pair: pair[0]):
        value = member.text()
        if value is None:
            continue
        at = member.reported_at(field)
        key_errors, value_errors = label_key(key), label_value(value)
        at.refuse_each(key, key_errors)
        at.refuse_each(value, value_errors)
        if not key_errors and not value_errors:
            labels[key] = value
    return labels


def _labels(field: Field) -> list[Requirement]:
    return [Requirement(key=key, operator="In", values=(value,)) for key, value in read_labels(field).items()]


def _expressions(field: Field) -> list[Requirement]:
    read = (_requirement(item) for item in field.items() or [])
    return [requirement for requirement in read if requirement is not None]


def _requirement(field: Field) -> Requirement | None:
    before = len(field.findings)
    if not field.mapping(REQUIREMENT_FIELDS):
        return None
    operator, key = field.get("operator").text(""), field.get("key").text("")
    values = field.get("values").texts()
    if operator is not None:
        _check_operator(field, operator, values)
    if key is not None:
        field.get("key").refuse_each(key, label_key(key))
    for item, value in values or []:
        item.refuse_each(value, label_value(value))
    if len(field.findings) > before or operator is None or key is None or values is None:
        return None
    return Requirement(key=key, operator=operator, values=tuple(value for _, value in values))


def _check_operator(field: Field, operator: str, values: list[tuple[Field, str]] | None) -> None:
    if operator in WITH_VALUES:
        if values == []:
            field.get("values").refuse(field_errors.required("must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in WITHOUT_VALUES:
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            field.get("values").refuse(field_errors.forbidden(detail))
    else:
        field.get("operator").refuse(field_errors.invalid_typed(operator, "not a valid selector operator"))
