"""RuleWithOperations (admissionregistration.k8s.io/v1): read, with Kubernetes' validation.

What of a rule cannot be read takes the widest meaning: a field with any error in it matches everything, the others
stay as they are written. So a rule with an error matches what it was meant for, and more; never less.
"""

from collections.abc import Callable, Sequence
from typing import Final

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.errors import ConfigurationError, Findings
from gateway.policies.fields.api_resources import resource_error
from gateway.policies.model import EVERYTHING, Rule, Scope
from gateway.policies.suggestions import did_you_mean

FIELDS: Final = ("operations", "apiGroups", "apiVersions", "resources", "scope")
OPERATIONS: Final = ("*", "CREATE", "UPDATE", "DELETE", "CONNECT")
_ANY: Final = "*"
_ANYTHING: Final = "*/*"

_MOST_RESOURCES: Final = 200
"""Entries of a rule's ``resources`` that are looked up among the known ones, at 1 ms each if they are misspelt. There
are some eighty built-in resources."""

_Texts = Sequence[tuple[Field, str]]


def read_rules(field: Field, warnings: Findings) -> tuple[Rule, ...]:
    """The rules that stand here. None at all match nothing, as in Kubernetes; what is no list matches everything.

    Names that no resource has are reported to ``warnings``: Kubernetes takes any name.
    """
    items = field.items()
    return (EVERYTHING,) if items is None else tuple(_rule(item, warnings) for item in items)


def _rule(field: Field, warnings: Findings) -> Rule:
    if not field.mapping(FIELDS):
        return EVERYTHING
    rule = Rule(
        operations=_texts(field.get("operations"), (_ANY,), _check_operations),
        api_groups=_texts(field.get("apiGroups"), (_ANY,), _check_groups),
        api_versions=_texts(field.get("apiVersions"), (_ANY,), _check_versions),
        resources=_texts(field.get("resources"), (_ANYTHING,), _check_resources),
        scope=field.get("scope").word(Scope) or Scope.ALL,
    )
    items = field.get("resources").items() or [] if rule.resources != (_ANYTHING,) else []
    for item in items[:_MOST_RESOURCES]:
        error = resource_error(item.raw_text or "", rule.api_groups)
        if error is not None:
            warnings.append(ConfigurationError(place=item.place, message=error))
    return rule


def _texts(field: Field, widest: tuple[str, ...], check: Callable[[Field, _Texts], None]) -> tuple[str, ...]:
    before = len(field.findings)
    texts = field.texts()
    if texts is None:
        return widest
    if not texts:
        field.refuse(field_errors.required())
    check(field, texts)
    return tuple(text for _, text in texts) if len(field.findings) == before else widest


def _check_alone(field: Field, texts: _Texts, wildcard: str, others: str) -> None:
    values = [text for _, text in texts]
    if len(values) > 1 and wildcard in values:
        field.refuse(field_errors.invalid(values, f"if '{wildcard}' is present, must not specify other {others}"))


def _check_operations(field: Field, texts: _Texts) -> None:
    _check_alone(field, texts, _ANY, "operations")
    for item, operation in texts:
        if operation not in OPERATIONS:
            item.refuse(field_errors.unsupported(operation, OPERATIONS), did_you_mean(operation, OPERATIONS))


def _check_groups(field: Field, texts: _Texts) -> None:
    # "Note: group could be empty, e.g., the legacy "v1" API"
    _check_alone(field, texts, _ANY, "API groups")


def _check_versions(field: Field, texts: _Texts) -> None:
    _check_alone(field, texts, _ANY, "API versions")
    for item, version in texts:
        if not version:
            item.refuse(field_errors.required())


def _check_resources(field: Field, texts: _Texts) -> None:
    """validateResources, with its order: only an entry *after* the wildcard that covers it is refused.

    So is the last check's: it looks at the last entry without a subresource only. What Kubernetes accepts is accepted
    here.
    """
    with_any_subresource: set[str] = set()
    of_any_resource: set[str] = set()
    last_is_plain = False
    for item, text in texts:
        if not text:
            item.refuse(field_errors.required())
            continue
        resource, slash, subresource = text.partition("/")
        if not slash:
            last_is_plain = text != _ANY
            continue
        if resource in with_any_subresource:
            item.refuse(field_errors.invalid(text, f"if '{resource}/*' is present, must not specify {text}"))
        if subresource in of_any_resource:
            item.refuse(field_errors.invalid(text, f"if '*/{subresource}' is present, must not specify {text}"))
        if subresource == _ANY:
            with_any_subresource.add(resource)
        if resource == _ANY:
            of_any_resource.add(subresource)
    _check_alone(field, texts, _ANYTHING, "resources")
    values = [text for _, text in texts]
    if _ANY in values and last_is_plain:
        detail = "if '*' is present, must not specify other resources without subresources"
        field.refuse(field_errors.invalid(values, detail))
