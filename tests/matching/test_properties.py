"""Metamorphic laws of matching: what must not change, and in which direction it may, when a policy is written anew."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.cel.authorization import AuthorizationCheck
from gateway.cel.program import EvaluationError
from gateway.matching.equivalents import Equivalents, ServedResource
from gateway.matching.outcomes import Matched, NotMatched, WrongVersion
from gateway.matching.pipeline import Facts
from gateway.policies.model import MatchPolicy, Requirement, Rule, Scope, Selector
from gateway.review.request import GroupVersionKind, GroupVersionResource, decode
from tests.matching.lookup import matching
from tests.traffic import recordings
from tests.world import condition, policy, request, when_authorized

pytestmark = pytest.mark.property

TRAFFIC = st.sampled_from([decode(each.body) for each in recordings()])
ENTRIES = [
    "pods",
    "pods/*",
    "*/status",
    "configmaps",
    "events",
    "*",
    "deployments",
    "*/*",
    "namespaces",
    "deployments/scale",
]
GROUPS = ["", "apps", "events.k8s.io", "*"]
RULES = st.builds(
    Rule,
    operations=st.lists(st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]), min_size=1).map(tuple),
    api_groups=st.lists(st.sampled_from(GROUPS), min_size=1).map(tuple),
    api_versions=st.lists(st.sampled_from(["v1", "v2", "*"]), min_size=1).map(tuple),
    resources=st.lists(st.sampled_from(ENTRIES), min_size=1).map(tuple),
    scope=st.sampled_from(list(Scope)),
)
CHAINS = st.lists(RULES, min_size=1, max_size=3)
POLICIES = st.sampled_from(list(MatchPolicy))
REQUIREMENTS = st.builds(
    Requirement,
    key=st.sampled_from(["app", "env", "kubernetes.io/metadata.name"]),
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    values=st.lists(st.sampled_from(["web", "prod", "t"]), max_size=2).map(tuple),
)
LABELS = st.dictionaries(st.sampled_from(["app", "env"]), st.sampled_from(["web", "prod"]))


def served(version, group="", name="pods"):
    kind = GroupVersionKind(group=group, version=version, kind="K")
    return ServedResource(resource=GroupVersionResource(group=group, version=version, resource=name), kind=kind)


TABLES = st.sampled_from(
    [
        Equivalents(),
        Equivalents(served=(served("v1"), served("v2"))),
        Equivalents(
            served=(served("v1"), served("v1", "apps"), served("v2", "apps")),
            identities={("", "pods"): "pods", ("apps", "pods"): "pods"},
        ),
    ]
)


def outcome(rules, on, table=Equivalents(), namespaces=None, **fields):  # noqa: B008 - a value
    return matching(policy("a", rules=tuple(rules), **fields), on, Facts(namespaces=namespaces or {}), table=table)


def concerned(result):
    """Whether a policy has to do with the request: it judges, or would in another version."""
    return isinstance(result, Matched | WrongVersion)


@given(CHAINS, RULES, TRAFFIC, TABLES, POLICIES)
def test_adding_a_rule_never_unmatches(rules, more, on, table, how):
    """Rules are alternatives, wherever the new one stands."""
    before = outcome(rules, on, table, match_policy=how)
    for written in ([*rules, more], [more, *rules]):
        after = outcome(written, on, table, match_policy=how)
        if isinstance(before, Matched):
            assert isinstance(after, Matched)
        elif concerned(before):
            assert concerned(after)


@given(CHAINS, TRAFFIC, TABLES, POLICIES)
def test_splitting_a_rules_lists_changes_nothing(rules, on, table, how):
    """One rule with lists is all rules with one of each."""
    parts = [
        Rule(operations=(o,), api_groups=(g,), api_versions=(v,), resources=(r,), scope=rule.scope)
        for rule in rules
        for o, g, v, r in itertools.product(rule.operations, rule.api_groups, rule.api_versions, rule.resources)
    ]
    assert type(outcome(rules, on, table, match_policy=how)) is type(outcome(parts, on, table, match_policy=how))


@given(CHAINS.flatmap(lambda rules: st.tuples(st.just(rules), st.permutations(rules))), TRAFFIC, TABLES, POLICIES)
def test_the_order_of_rules_changes_nothing_about_whether(orders, on, table, how):
    """It decides only which equivalent version is meant."""
    one, other = (outcome(rules, on, table, match_policy=how) for rules in orders)
    assert type(one) is type(other)


@given(st.lists(REQUIREMENTS, max_size=3), REQUIREMENTS, LABELS, LABELS)
def test_a_selector_with_more_requirements_never_matches_more(requirements, more, labels, old):
    """Requirements are an "and", for the object's labels and for the namespace's."""
    on = request({"metadata": {"labels": labels}}, operation="UPDATE", oldObject={"metadata": {"labels": old}})
    everything = [Rule(operations=("*",), api_groups=("*",), api_versions=("*",), resources=("*/*",))]
    for field in ("object_selector", "namespace_selector"):
        few, many = (
            outcome(everything, on, namespaces={"t": labels}, **{field: Selector(requirements=tuple(chosen))})
            for chosen in (requirements, [*requirements, more])
        )
        assert isinstance(few, Matched) or isinstance(many, NotMatched)


@given(CHAINS, TRAFFIC.filter(lambda on: on.request_resource == on.resource), TABLES)
def test_equivalent_matches_whatever_exact_matches(rules, on, table):
    """On a request that was not converted."""
    exact = outcome(rules, on, table, match_policy=MatchPolicy.EXACT)
    equivalent = outcome(rules, on, table, match_policy=MatchPolicy.EQUIVALENT)
    if isinstance(exact, Matched):
        assert isinstance(equivalent, Matched)


CHECKS = [AuthorizationCheck(verb=verb, resource="pods") for verb in ("get", "list")]
OUTCOMES = st.sampled_from([True, False, EvaluationError(message="x"), *map(when_authorized, CHECKS)])


@given(st.lists(OUTCOMES, max_size=5).flatmap(lambda values: st.tuples(st.just(values), st.permutations(values))))
def test_the_order_of_conditions_changes_nothing_about_whether(orders):
    """All are evaluated before anything is decided."""
    chosen = policy("a", match_conditions=tuple(map(condition, orders[0])))
    on = request()
    one, other = (matching(replace(chosen, match_conditions=tuple(map(condition, values))), on) for values in orders)
    assert type(one) is type(other)
