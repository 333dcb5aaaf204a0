"""Rules as kube-apiserver matches them: operation, group, version, resource, scope; the first that matches wins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.matching import Matched, NotMatched, Undecidable, match
from gateway.policies import MatchPolicy, Rule, Scope
from gateway.reasons import Reason
from gateway.review import decode
from tests.traffic import recordings
from tests.world import policy, request


def rule(**fields):
    base = {"operations": ("*",), "api_groups": ("*",), "api_versions": ("*",), "resources": ("*/*",)}
    return Rule(**{key: tuple(value) if isinstance(value, list) else value for key, value in (base | fields).items()})


def outcome(rules, on, **fields):
    return match(policy("a", rules=tuple(rules), **fields), on, lambda: on.object, {})


def about(resource="pods", sub="", group="", version="v1", **members):
    return request(resource={"group": group, "version": version, "resource": resource}, subResource=sub, **members)


RESOURCES = {
    # entry: resource/subresource that it matches, and that it does not
    "pods": ("pods", ("pods/status", "services")),
    "pods/exec": ("pods/exec", ("pods", "pods/status", "services/exec")),
    "*": ("services", ("pods/status",)),
    "*/status": ("nodes/status", ("nodes", "nodes/proxy")),
}


@pytest.mark.parametrize(("entry", "hit", "misses"), [(entry, *cases) for entry, cases in RESOURCES.items()])
def test_an_entry_matches_exactly_its_resources(entry, hit, misses):
    """A resource alone does not match its subresources."""
    assert isinstance(outcome([rule(resources=[entry])], about(*hit.split("/"))), Matched)
    for miss in misses:
        assert isinstance(outcome([rule(resources=[entry])], about(*miss.split("/"))), NotMatched)


@pytest.mark.parametrize("entry", ["pods/*", "*/*"])
@pytest.mark.parametrize("sub", ["", "status", "exec"])
def test_a_star_for_the_subresource_matches_the_resource_too(entry, sub):
    """ "r/*" and "*/*" match the resource and its subresources."""
    assert isinstance(outcome([rule(resources=[entry])], about("pods", sub)), Matched)


@pytest.mark.parametrize(
    "fields", [{"operations": ["DELETE"]}, {"api_groups": ["apps"]}, {"resources": ["nodes"]}, {"scope": Scope.CLUSTER}]
)
def test_every_part_must_match(fields):
    """One that does not is enough."""
    assert outcome([rule(**fields)], about()) == NotMatched(why="rules")


def test_any_rule_is_enough():
    """The first matching rule wins."""
    assert isinstance(outcome([rule(operations=["DELETE"]), rule(operations=["CREATE"])], about()), Matched)


@pytest.mark.parametrize(
    ("on", "scope"),
    [
        (about("pods", namespace="t"), Scope.NAMESPACED),
        (about("nodes", namespace=""), Scope.CLUSTER),
        (about("namespaces", namespace="t"), Scope.CLUSTER),
        (about("namespaces", "status", namespace="t"), Scope.CLUSTER),
        (about("namespaces", group="example.com", namespace="t"), Scope.NAMESPACED),
    ],
)
def test_scope(on, scope):
    """ "namespace objects are cluster-scoped", although their requests carry their name as namespace."""
    for each in (Scope.CLUSTER, Scope.NAMESPACED):
        assert isinstance(outcome([rule(scope=each)], on), Matched) == (each is scope)
    assert isinstance(outcome([rule(scope=Scope.ALL)], on), Matched)


# --------------------------------------------------------------------------------------------------- versions


def test_the_right_resource_in_another_version_is_a_failure_not_a_mismatch():
    """Else naming a version would be a way around the policy."""
    result = outcome([rule(api_versions=["v1"])], about(version="v2"))
    assert isinstance(result, Undecidable)
    assert result.reason is Reason.WRONG_VERSION


def test_a_wrong_version_matters_only_to_a_policy_that_would_judge():
    """Its other parts say no first."""
    assert outcome([rule(api_versions=["v1"], operations=["DELETE"])], about(version="v2")) == NotMatched(why="rules")


def test_another_group_is_another_resource_until_the_equivalents_are_known():
    """Only the API server can say which groups serve the same resource; docs/differences.md tells what to do."""
    core, other = about("events"), about("events", group="events.k8s.io")
    assert isinstance(outcome([rule(api_groups=[""])], core), Matched)
    assert outcome([rule(api_groups=[""])], other) == NotMatched(why="rules")


def test_exact_is_judged_on_the_clients_own_resource():
    """requestResource, before the API server's conversion."""
    exact = {"match_policy": MatchPolicy.EXACT}
    original = {"group": "", "version": "v2", "resource": "pods"}
    converted = about(version="v1", requestResource=original)
    assert outcome([rule(api_versions=["v1"])], converted, **exact) == NotMatched(why="rules")
    shown = outcome([rule(api_versions=["v2"])], converted, **exact)
    assert shown.reason is Reason.WRONG_VERSION, "it would be shown something else than it asked for"
    assert isinstance(outcome([rule(api_versions=["v1"])], about(), **exact), Matched)


@pytest.mark.parametrize(
    "resource",
    ["validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies"],
)
def test_what_kubernetes_sends_to_no_webhook_goes_to_no_policy(resource):
    """So that a bad configuration can be repaired."""
    on = about(resource, group="admissionregistration.k8s.io")
    assert isinstance(outcome([rule()], on), NotMatched)


# ------------------------------------------------------------------------------------------------- properties

NAMES = st.lists(st.sampled_from(["pods", "pods/*", "*/status", "configmaps", "*", "deployments", "*/*"]), min_size=1)
RULES = st.builds(
    rule,
    operations=st.lists(st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]), min_size=1),
    api_groups=st.lists(st.sampled_from(["", "apps", "*"]), min_size=1),
    api_versions=st.just(["*"]),
    resources=NAMES,
    scope=st.sampled_from(list(Scope)),
)
TRAFFIC = st.sampled_from(recordings())


@pytest.mark.property
@given(st.lists(RULES, min_size=1, max_size=3), RULES, TRAFFIC)
def test_adding_a_rule_never_unmatches(rules, more, traffic):
    """Rules are alternatives."""
    on = decode(traffic.body)
    if isinstance(outcome(rules, on), Matched):
        assert isinstance(outcome([*rules, more], on), Matched)


@pytest.mark.property
@given(RULES, TRAFFIC)
def test_splitting_a_rules_lists_changes_nothing(whole, traffic):
    """One rule with lists is all rules with one of each."""
    on = decode(traffic.body)
    parts = [
        rule(operations=[o], api_groups=[g], api_versions=["*"], resources=[r], scope=whole.scope)
        for o in whole.operations
        for g in whole.api_groups
        for r in whole.resources
    ]
    assert type(outcome([whole], on)) is type(outcome(parts, on))
