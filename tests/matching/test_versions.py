"""matchPolicy: is a rule about the resource in the version that was delivered, and which one does it mean if not."""

import pytest

from gateway.matching.equivalents import EMPTY, Equivalents, ServedResource
from gateway.matching.outcomes import Matched, NotMatched, WrongVersion
from gateway.policies.model import MatchPolicy, Requirement, Rule, Scope, Selector
from gateway.review.request import GroupVersionKind, GroupVersionResource
from tests.matching.lookup import matching
from tests.world import condition, policy, request

EXACT = {"match_policy": MatchPolicy.EXACT}


def resource(group, version, name="deployments"):
    return GroupVersionResource(group=group, version=version, resource=name)


def served(group, version, name="deployments", kind="Deployment", sub="", kind_group=None, kind_version=None):
    return ServedResource(
        resource=resource(group, version, name),
        sub_resource=sub,
        kind=GroupVersionKind(group=kind_group or group, version=kind_version or version, kind=kind),
    )


TABLE = Equivalents(
    served=(
        served("apps", "v1"),
        served("apps", "v1beta1"),
        served("extensions", "v1beta1"),
        served("apps", "v1", kind="Scale", sub="scale", kind_group="autoscaling"),
        served("extensions", "v1beta1", kind="Scale", sub="scale"),
        served("", "v1", "pods", "Pod"),
    ),
    identities={("apps", "deployments"): "deployments", ("extensions", "deployments"): "deployments"},
)
"""Deployments as they once were: one thing in two groups."""


def rule(groups=("apps",), versions=("v1",), resources=("deployments",), **fields):
    return Rule(operations=("*",), api_groups=groups, api_versions=versions, resources=resources, **fields)


def about(group, version, name="deployments", sub="", **members):
    named = {"group": group, "version": version, "resource": name}
    return request(resource=named, subResource=sub, **members)


def outcome(rules, on, table=EMPTY, **fields):
    return matching(policy("a", rules=tuple(rules), **fields), on, table=table)


# ------------------------------------------------------------------------------------------- without a table


def test_the_right_resource_in_another_version_is_a_failure_not_a_mismatch():
    """Else naming a version would be a way around the policy."""
    result = outcome([rule()], about("apps", "v2"))
    assert isinstance(result, WrongVersion)
    assert (result.resource, result.kind) == (resource("apps", "v2"), None)
    assert "deployments in apps/v2" in result.message


@pytest.mark.parametrize(
    "fields",
    [
        {"object_selector": Selector(requirements=(Requirement(key="x", operator="Exists"),))},
        {"match_conditions": (condition(False),)},
    ],
    ids=["selector", "condition"],
)
def test_a_wrong_version_is_judged_by_selectors_and_not_by_conditions(fields):
    """Selectors read labels, which every version has; conditions are for the object in the version that they know."""
    result = outcome([rule()], about("apps", "v2"), **fields)
    assert isinstance(result, NotMatched if "object_selector" in fields else WrongVersion)


def test_a_wrong_version_matters_only_to_a_policy_that_would_judge():
    """Its other parts say no first."""
    on = about("apps", "v2", operation="UPDATE")
    deletes = Rule(operations=("DELETE",), api_groups=("apps",), api_versions=("v1",), resources=("deployments",))
    assert outcome([deletes], on) == NotMatched(why="rules")


def events(group, version="v1", **members):
    return about(group, version, "events", **members)


@pytest.mark.parametrize(("named", "came"), [("", "events.k8s.io"), ("events.k8s.io", "")])
@pytest.mark.parametrize("sub", ["", "status"])
def test_the_same_objects_in_another_group_are_a_failure_not_a_mismatch(named, came, sub):
    """What kube-apiserver stores once and serves in two groups, in any version of them, is no way around the policy."""
    rules = [rule((named,), ("v1",), ("events/*",))]
    for version in ("v1", "v1beta1"):
        result = outcome(rules, events(came, version, sub=sub))
        assert isinstance(result, WrongVersion)
        assert (result.resource, result.kind) == (resource(came, version, "events"), None)
        assert "add that group and version to its rules" in result.message


@pytest.mark.parametrize(
    ("rules", "on"),
    [
        ([rule()], about("extensions", "v1beta1")),
        ([rule(("",), resources=("events",))], events("events.example.com")),
        ([rule(("events.example.com",), resources=("events",))], events("")),
        ([rule(("",), resources=("events",))], events("events.k8s.io", sub="status")),
        ([rule(("",), resources=("pods",))], about("events.k8s.io", "v1", "pods")),
    ],
    ids=["of a release before 1.16", "a custom resource", "a rule of one", "a subresource", "of that group"],
)
def test_any_other_group_is_another_resource(rules, on):
    """A custom resource has its own table in the API server, whatever its name."""
    assert outcome(rules, on) == NotMatched(why="rules")


def test_another_group_is_not_matched_under_exact():
    """The client's own resource counts."""
    assert outcome([rule(("",), resources=("events",))], events("events.k8s.io"), **EXACT) == NotMatched(why="rules")


# --------------------------------------------------------------------------------------------- with a table


def test_a_direct_match_wins():
    """What was delivered is called first, and no equivalent after it."""
    assert isinstance(outcome([rule(versions=("v1beta1",)), rule()], about("apps", "v1"), TABLE), Matched)


def test_the_first_equivalent_hit_decides_resource_and_kind():
    """Rules in order; for each the equivalents in order of registration."""
    later = [rule(("extensions",), ("*",)), rule(("*",), ("v1beta1",))]
    hit = outcome(later, about("apps", "v1"), TABLE)
    assert (hit.resource, hit.kind.group) == (resource("extensions", "v1beta1"), "extensions")
    hit = outcome(later[::-1], about("apps", "v1"), TABLE)
    assert (hit.resource, hit.kind.group) == (resource("apps", "v1beta1"), "apps")


def test_the_kind_is_that_of_the_subresource():
    """A Scale, not a Deployment."""
    hit = outcome([rule(resources=("deployments/scale",))], about("extensions", "v1beta1", sub="scale"), TABLE)
    assert hit.kind == GroupVersionKind(group="autoscaling", version="v1", kind="Scale")


@pytest.mark.parametrize(
    ("on", "rules"),
    [
        (about("apps", "v1", sub="status"), [rule(versions=("v1beta1",), resources=("*/*",))]),
        (about("", "v1", "pods"), [rule(("",), ("v2",), ("pods",))]),
        (about("apps", "v1"), [rule(versions=("v7",))]),
    ],
    ids=["a subresource that is not served", "a version that is not served", "none of those served"],
)
def test_what_the_table_does_not_list_is_not_matched(on, rules):
    """It speaks of the resource, so what it does not say is not so: as kube-apiserver, which has no other table."""
    assert outcome(rules, on, TABLE) == NotMatched(why="rules")


def test_the_table_says_which_groups_serve_the_same_objects():
    """The API server's identities."""
    assert isinstance(outcome([rule()], about("extensions", "v1beta1"), TABLE), WrongVersion)


def test_a_resource_of_which_the_table_does_not_speak_is_as_without_a_table():
    """An aggregated API, a CRD of this minute: not knowing is not allowing."""
    assert isinstance(outcome([rule(("x",), ("v1",), ("y",))], about("x", "v2", "y"), TABLE), WrongVersion)


def test_scope_is_the_equivalents_own():
    """The rule is held against the equivalent with all of its parts."""
    on = about("extensions", "v1beta1")
    assert isinstance(outcome([rule(scope=Scope.NAMESPACED)], on, TABLE), WrongVersion)
    assert outcome([rule(scope=Scope.CLUSTER)], on, TABLE) == NotMatched(why="rules")


# ------------------------------------------------------------------------------------------------- Exact


def test_exact_is_judged_on_the_clients_own_resource():
    """requestResource, before the API server's conversion."""
    original = {"group": "apps", "version": "v2", "resource": "deployments"}
    kind = {"group": "apps", "version": "v2", "kind": "Deployment"}
    converted = about("apps", "v1", requestResource=original, requestKind=kind)
    assert outcome([rule()], converted, **EXACT) == NotMatched(why="rules")
    shown = outcome([rule(versions=("v2",))], converted, **EXACT)
    assert isinstance(shown, WrongVersion), "it would get another version than it requested"
    assert (shown.resource, shown.kind) == (resource("apps", "v2"), GroupVersionKind(**kind))
    assert isinstance(outcome([rule()], about("apps", "v1"), **EXACT), Matched)


def test_exact_knows_no_equivalents():
    """The table is not called."""
    assert outcome([rule()], about("apps", "v1beta1"), TABLE, **EXACT) == NotMatched(why="rules")


def test_what_is_equivalent_is_reported_in_order_of_registration_without_the_resource_itself():
    """For the resource, and for each subresource on its own."""
    versions = [(each.resource.group, each.resource.version) for each in TABLE.of(resource("apps", "v1beta1"), "")]
    assert versions == [("apps", "v1"), ("extensions", "v1beta1")]
    assert [each.kind.kind for each in TABLE.of(resource("apps", "v1beta1"), "scale")] == ["Scale", "Scale"]


def test_an_empty_table_knows_nothing():
    """The default."""
    assert not EMPTY.knows(resource("apps", "v1"))
    assert EMPTY.of(resource("apps", "v1"), "") == ()
