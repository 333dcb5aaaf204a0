"""Rules as kube-apiserver matches them: operation, group, version, resource, scope; the first that matches wins."""

import pytest

from gateway.matching.outcomes import Matched, NotMatched
from gateway.policies.model import Rule, Scope
from tests.matching.lookup import matching
from tests.world import policy, request


def rule(**fields):
    base = {"operations": ("*",), "api_groups": ("*",), "api_versions": ("*",), "resources": ("*/*",)}
    return Rule(**{key: tuple(value) if isinstance(value, list) else value for key, value in (base | fields).items()})


def outcome(rules, on, **fields):
    return matching(policy("a", rules=tuple(rules), **fields), on)


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


KINDS = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("group", ["admissionregistration.k8s.io", "example.com"])
def test_kinds_that_configure_admission_are_judged_like_all_others(kind, group):
    """The API server sends them to webhooks from manifest files (KEP-5793): what comes is judged by the rules."""
    on = about(f"{kind.lower()}s", group=group, kind={"group": group, "version": "v1", "kind": kind})
    assert isinstance(outcome([rule()], on), Matched)
    assert outcome([rule(resources=["pods"])], on) == NotMatched(why="rules")
