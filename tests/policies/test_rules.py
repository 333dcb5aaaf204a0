"""Rules: Kubernetes' validation (admissionregistration/validation), and what a rule with an error matches."""

import pytest

from gateway.policies.model import EVERYTHING, Rule, Scope

GOOD = {"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}
RULE = "policies[0].rules[0]"
WIDEST = {"operations": ("*",), "api_groups": ("*",), "api_versions": ("*",), "resources": ("*/*",)}
FIELDS = {
    "operations": "operations",
    "apiGroups": "api_groups",
    "apiVersions": "api_versions",
    "resources": "resources",
}


def test_good_rule(one_policy):
    """A rule is kept as it is written, its scope defaults to all."""
    policy, loaded = one_policy({"rules": [GOOD | {"resources": ["deployments", "deployments/*", "*/scale"]}]})
    assert not loaded.errors
    assert policy.rules == (
        Rule(
            operations=("CREATE",),
            api_groups=("apps",),
            api_versions=("v1",),
            resources=("deployments", "deployments/*", "*/scale"),
            scope=Scope.ALL,
        ),
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"operations": ...}, ".operations: Required value"),
        ({"operations": None}, ".operations: Required value"),
        ({"operations": []}, ".operations: Required value"),
        ({"apiGroups": []}, ".apiGroups: Required value"),
        ({"apiVersions": []}, ".apiVersions: Required value"),
        ({"apiVersions": [""]}, ".apiVersions[0]: Required value"),
        ({"resources": []}, ".resources: Required value"),
        ({"resources": [""]}, ".resources[0]: Required value"),
        (
            {"operations": ["CREATE", "*"]},
            """.operations: Invalid value: ["CREATE","*"]: if '*' is present, must not specify other operations""",
        ),
        (
            {"operations": ["PATCH"]},
            (
                '.operations[0]: Unsupported value: "PATCH": '
                'supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"'
            ),
        ),
        (
            {"apiGroups": ["", "*"]},
            """.apiGroups: Invalid value: ["","*"]: if '*' is present, must not specify other API groups""",
        ),
        (
            {"apiVersions": ["*", "v1"]},
            """.apiVersions: Invalid value: ["*","v1"]: if '*' is present, must not specify other API versions""",
        ),
        (
            {"resources": ["*/*", "a"]},
            """.resources: Invalid value: ["*/*","a"]: if '*/*' is present, must not specify other resources""",
        ),
        (
            {"resources": ["*", "a"]},
            (
                """.resources: Invalid value: ["*","a"]: """
                "if '*' is present, must not specify other resources without subresources"
            ),
        ),
        (
            {"resources": ["a/*", "a/x"]},
            """.resources[1]: Invalid value: "a/x": if 'a/*' is present, must not specify a/x""",
        ),
        (
            {"resources": ["*/a", "x/a"]},
            """.resources[1]: Invalid value: "x/a": if '*/a' is present, must not specify x/a""",
        ),
        (
            {"scope": "namespaced"},
            '.scope: Unsupported value: "namespaced": supported values: "*", "Cluster", "Namespaced"',
        ),
        ({"operations": "CREATE"}, '.operations: Invalid value: "string": must be of type array'),
        ({"operations": ["CREATE", 1]}, '.operations[1]: Invalid value: "integer": must be of type string'),
        ({"resources": [None]}, ".resources[0]: Invalid value: null: must not be null"),
        ({"scope": ["*"]}, '.scope: Invalid value: "array": must be of type string'),
        ({"resourceNames": ["a"]}, '.resourceNames: unknown field "policies[0].rules[0].resourceNames"'),
    ],
)
def test_validation(one_policy, errors, change, expected):
    """Each error has its field's path and Kubernetes' words."""
    rule = {name: value for name, value in (GOOD | change).items() if value is not ...}
    policy, loaded = one_policy({"rules": [rule]})
    assert errors(loaded) == [RULE + expected]
    assert policy.fault == loaded.errors[0].text


@pytest.mark.parametrize(
    "resources",
    [["*", "a/x", "*/x"], ["*", "a/*"], ["*/a", "*/b"], ["a", "b", "a/x"], ["*/*"], ["a", "*"], ["a/x", "a/*"]],
)
def test_accepted_resources(one_policy, resources):
    """What Kubernetes accepts is accepted, also the last two, which it refuses in the other order only."""
    assert not one_policy({"rules": [GOOD | {"resources": resources}]})[1].errors


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [None, [], "text", 5, {}, [5], [None], [[]]])
def test_error_widens(one_policy, field, value):
    """A field with an error matches everything; the others stay as they are written."""
    policy, _ = one_policy({"rules": [GOOD | {field: value}]})
    expected = {FIELDS[name]: tuple(words) for name, words in GOOD.items()} | {FIELDS[field]: WIDEST[FIELDS[field]]}
    assert policy.rules == (Rule(**expected),)
    assert policy.fault


@pytest.mark.parametrize("rules", [{}, "text", 5, True])
def test_no_list(one_policy, rules):
    """Rules that are no list match everything."""
    policy, _ = one_policy({"rules": rules})
    assert policy.rules == (EVERYTHING,)
    assert policy.fault.startswith("policies[0].rules: Invalid value: ")


@pytest.mark.parametrize("rule", [None, "text", 5, []])
def test_no_rule(one_policy, rule):
    """An element of the list that is no rule matches everything; the others stay."""
    policy, _ = one_policy({"rules": [GOOD, rule]})
    assert policy.rules[0].resources == ("deployments",)
    assert policy.rules[1] == EVERYTHING
    assert policy.fault.startswith("policies[0].rules[1]: Invalid value: ")


@pytest.mark.parametrize("rules", [..., None, []])
def test_no_rules(one_policy, rules):
    """Without rules a policy matches nothing, as in Kubernetes; that is no error, but it is said."""
    policy, loaded = one_policy({"rules": rules})
    assert policy.rules == ()
    assert policy.fault is None
    assert [warning.message for warning in loaded.warnings] == ["there are no rules, so the policy never matches"]


def test_misspelt_rules(one_policy):
    """Where a field's name is not known and the rules are absent, they may be misspelt ones: everything is matched."""
    policy, _ = one_policy({"rules": ..., "rule": [GOOD]})
    assert policy.rules == (EVERYTHING,)
    assert policy.fault == 'unknown field "policies[0].rule"'
