"""Pods matched without the subresources by which their containers come another way."""

import pytest

PODS = {"apiGroups": [""], "apiVersions": ["v1"]}
BOTH = "pods/ephemeralcontainers, pods/resize"


def rule(*resources, operations=("CREATE",)):
    """A rule about these resources of the core group."""
    return PODS | {"resources": list(resources), "operations": list(operations)}


@pytest.fixture
def missing(one_policy):
    """Which rule is to be added, None without a warning."""

    def resources(*rules, phase="Validating", **changes):
        _, loaded = one_policy({"rules": list(rules), **changes}, phase)
        assert not loaded.errors
        found = [each for each in loaded.warnings if "pods are matched without" in each.message]
        assert [each.place.path for each in found] in ([], ["policies[0].rules"])
        return found[0].message.partition("resources: [")[2].partition("]")[0] if found else None

    return resources


@pytest.mark.parametrize("operations", [["CREATE"], ["UPDATE"], ["*"], ["CREATE", "DELETE"]])
@pytest.mark.parametrize("resources", [["pods"], ["services", "pods"], ["*"], ["pods", "pods/status"]])
def test_pods_alone_have_a_warning(missing, operations, resources):
    """A policy that judges containers as pods are written is passed by through both subresources."""
    assert missing(rule(*resources, operations=operations)) == BOTH


def test_the_warnings(one_policy):
    """The warning says what is not matched, what passes unseen, and the rule to add."""
    _, loaded = one_policy({"rules": [rule("pods")]}, "Validating")
    assert [str(each) for each in loaded.warnings] == [
        (
            "1.json:1: policies[0].rules: pods are matched without pods/ephemeralcontainers and pods/resize, so the "
            "policy never sees a container that `kubectl debug` adds to a running pod and new resources of running "
            'containers; add the rule {operations: [UPDATE], apiGroups: [""], apiVersions: [v1], resources: '
            "[pods/ephemeralcontainers, pods/resize]}, or name in inputs what the policy reads"
        )
    ]


@pytest.mark.parametrize("resources", [["pods/*"], ["*/*"], ["pods/ephemeralcontainers", "pods/resize"]])
def test_matched_subresources_have_no_warning(missing, resources):
    """Whether one rule matches them, or another one does."""
    assert missing(rule("pods"), rule(*resources, operations=["UPDATE"])) is None
    assert missing(rule("pods"), rule(*resources, operations=["CREATE"])) == BOTH


def test_only_the_missing_one_has_a_warning(missing):
    """What is matched already has no warning."""
    assert missing(rule("pods", "*/resize", operations=["*"])) == "pods/ephemeralcontainers"
    assert missing(rule("pods"), rule("pods/ephemeralcontainers", operations=["UPDATE"])) == "pods/resize"


@pytest.mark.parametrize(
    "fields",
    [
        {"apiGroups": ["apps"]},
        {"apiVersions": ["v1beta1"]},
        {"scope": "Cluster"},
        {"operations": ["DELETE", "CONNECT"]},
        {"resources": ["pods/exec", "deployments"]},
    ],
)
def test_other_rules_have_no_warning(missing, fields):
    """Who does not match pods as they are written misses nothing."""
    assert missing(rule("pods") | fields) is None


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (["/object/metadata/labels", "/userInfo"], None),
        (["/object/spec/volumes"], None),
        (["/object/spec/containers/*/image"], "pods/ephemeralcontainers"),
        (["/object/spec/containers/*/resources"], BOTH),
        (["/object/spec"], BOTH),
        (["/oldObject"], None),
    ],
)
def test_a_policy_that_does_not_see_containers_has_no_warning(missing, inputs, expected):
    """What a subresource changes matters to those alone who are shown it, of whatever kind of container."""
    assert missing(rule("pods"), inputs=inputs) == expected


def test_mutating_policies_have_warnings_about_what_they_may_change(missing):
    """Who changes pods as they are made has no say in what becomes of their resources, nor of what it may not write."""
    assert missing(rule("pods"), phase="Mutating") == "pods/ephemeralcontainers"
    assert missing(rule("pods", operations=["UPDATE"]), phase="Mutating") == BOTH
    assert missing(rule("pods"), phase="Mutating", writes=["/spec/containers"]) is None
