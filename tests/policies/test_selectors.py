"""Selectors: metav1's validation, and what a selector with an error selects."""

import pytest

from gateway.policies.model import Requirement, Selector


def test_good_selector(one_policy):
    """matchLabels become requirements, in order of their keys, and stand before the expressions."""
    policy, loaded = one_policy(
        {
            "objectSelector": {
                "matchLabels": {"b": "2", "example.com/a": ""},
                "matchExpressions": [
                    {"key": "c", "operator": "In", "values": ["x", "y"]},
                    {"key": "d", "operator": "DoesNotExist"},
                    {"key": "e", "operator": "Exists", "values": []},
                ],
            }
        }
    )
    assert not loaded.errors
    assert policy.object_selector.requirements == (
        Requirement(key="b", operator="In", values=("2",)),
        Requirement(key="example.com/a", operator="In", values=("",)),
        Requirement(key="c", operator="In", values=("x", "y")),
        Requirement(key="d", operator="DoesNotExist"),
        Requirement(key="e", operator="Exists"),
    )


@pytest.mark.parametrize(
    "selector", [..., None, {}, {"matchLabels": None}, {"matchLabels": {}}, {"matchExpressions": []}]
)
def test_empty_selector(one_policy, selector):
    """A selector without requirements selects everything."""
    policy, loaded = one_policy({"namespaceSelector": selector} if selector is not ... else {})
    assert not loaded.errors
    assert policy.namespace_selector == Selector()


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("text", ': Invalid value: "string": must be of type object'),
        ([], ': Invalid value: "array": must be of type object'),
        ({"matchlabels": {}}, '.matchlabels: unknown field "policies[0].FIELD.matchlabels"'),
        ({"matchLabels": {"a": 1}}, '.matchLabels.a: Invalid value: "integer": must be of type string'),
        ({"matchLabels": {"a": None}}, ".matchLabels.a: Invalid value: null: must not be null"),
        ({"matchLabels": {"x.y/z": True}}, '.matchLabels[x.y/z]: Invalid value: "boolean": must be of type string'),
        (
            {"matchLabels": {"a": "-"}},
            (
                '.matchLabels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric '
                "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  "
                "or 'my_value',  or '12345', "
                "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ),
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In"}]},
            ".matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
            (
                ".matchExpressions[0].values: Forbidden: "
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            ),
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "in", "values": ["x"]}]},
            '.matchExpressions[0].operator: Invalid value: "in": not a valid selector operator',
        ),
        (
            {"matchExpressions": [{"key": "a"}]},
            '.matchExpressions[0].operator: Invalid value: "": not a valid selector operator',
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", 1]}]},
            '.matchExpressions[0].values[1]: Invalid value: "integer": must be of type string',
        ),
        (
            {"matchExpressions": [{"key": 1, "operator": "Exists"}]},
            '.matchExpressions[0].key: Invalid value: "integer": must be of type string',
        ),
        ({"matchExpressions": {}}, '.matchExpressions: Invalid value: "object": must be of type array'),
        ({"matchExpressions": [None]}, ".matchExpressions[0]: Invalid value: null: must not be null"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "value": "x"}]},
            '.matchExpressions[0].value: unknown field "policies[0].FIELD.matchExpressions[0].value"',
        ),
    ],
)
@pytest.mark.parametrize("field", ["namespaceSelector", "objectSelector"])
def test_validation(one_policy, errors, field, selector, expected):
    """Each error has its field's path and Kubernetes' words."""
    policy, loaded = one_policy({field: selector})
    expected = expected.replace("FIELD", field)
    assert errors(loaded) == [f"policies[0].{field}{expected}"]
    assert policy.fault == loaded.errors[0].text


def test_label_value_in_expression(one_policy, errors):
    """The values of an expression are label values, each with its own path."""
    _, loaded = one_policy(
        {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["ok", "a b"]}]}}
    )
    (error,) = errors(loaded)
    assert error.startswith(
        'policies[0].objectSelector.matchExpressions[0].values[1]: Invalid value: "a b": a valid label'
    )


def test_error_widens(one_policy):
    """A requirement that cannot be read is left out, and the others stay: more is selected, never less."""
    policy, _ = one_policy(
        {
            "namespaceSelector": {
                "matchLabels": {"good": "yes", "bad": "- -"},
                "matchExpressions": [{"key": "x", "operator": "Nope"}, {"key": "y", "operator": "Exists"}, 7],
            }
        }
    )
    assert policy.namespace_selector.requirements == (
        Requirement(key="good", operator="In", values=("yes",)),
        Requirement(key="y", operator="Exists"),
    )
    assert policy.fault
