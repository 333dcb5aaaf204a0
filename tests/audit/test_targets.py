"""Which resources a policy's existing objects are of, in which version, as which operation."""

import pytest

from gateway.audit.targets import ServedResource, audit_scope, narrowed
from gateway.policies.model import Phase, Rule, Scope, SideEffects
from tests.integration.running import configuration, source
from tests.integration.running import policy as raw
from tests.world import policy

SERVED = [
    ServedResource(group=group, version=version, name=name, kind=kind, namespaced=namespaced)
    for group, version, name, kind, namespaced in (
        ("", "v1", "pods", "Pod", True),
        ("", "v1", "namespaces", "Namespace", False),
        ("", "v1", "events", "Event", True),
        ("apps", "v1", "deployments", "Deployment", True),
        ("apps", "v1beta1", "deployments", "Deployment", True),
        ("events.k8s.io", "v1", "events", "Event", True),
        ("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "V", False),
    )
]
ALL = ("*",)


def scope(*rules, **fields):
    """What one policy with these rules judges: resource, version and operation."""
    judged = audit_scope([policy("a", phase=Phase.VALIDATING, rules=rules, **fields)], SERVED)
    found = [(str(each.resource), each.resource.version, name) for each in judged.targets for name in each.policies]
    return found, list(judged.excluded.values())


def rule(groups=ALL, versions=ALL, resources=ALL, operations=ALL, scope=Scope.ALL):
    return Rule(api_groups=groups, api_versions=versions, resources=resources, operations=operations, scope=scope)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([rule(("",), resources=("pods",))], [("pods", "v1", "CREATE")]),
        ([rule(("",), resources=("pods",), operations=("UPDATE",))], [("pods", "v1", "UPDATE")]),
        ([rule(("",), resources=("pods",), operations=("DELETE", "CONNECT"))], []),
        ([rule(("",), resources=("pods/exec",))], []),
        ([rule(("",), resources=("nothing",))], []),
        ([rule(("apps",), ALL)], [("deployments.apps", "v1", "CREATE")]),
        ([rule(("apps",), ("v1beta1",))], [("deployments.apps", "v1beta1", "CREATE")]),
        (
            [rule(("apps",), ("v1",), operations=("UPDATE",)), rule(("apps",), ("v1beta1",), operations=("CREATE",))],
            [("deployments.apps", "v1beta1", "CREATE")],
        ),
        ([rule(("events.k8s.io",))], [("events.events.k8s.io", "v1", "CREATE")]),
        ([rule(resources=("*/*",), scope=Scope.CLUSTER)], [("namespaces", "v1", "CREATE")]),
    ],
)
def test_rules_choose_resources(rules, expected):
    """As for a request, in one version and as one operation."""
    found, excluded = scope(*rules)
    assert found == expected
    assert bool(excluded) is not bool(expected)


def test_a_wildcard_judges_each_object_once():
    """Not in a second version or group, and nothing that webhooks are never sent."""
    found, _ = scope(rule(resources=("*/*",)))
    assert [name for name, _, _ in found] == ["pods", "namespaces", "events", "deployments.apps"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"side_effects": SideEffects.SOME}, "sideEffects is Some"),
        ({"side_effects": SideEffects.UNKNOWN}, "sideEffects is Unknown"),
        ({"fault": "no worker"}, "it has an error: no worker"),
        ({"side_effects": SideEffects.NONE_ON_DRY_RUN}, None),
    ],
)
def test_what_must_not_be_called_for_a_dry_run_is_not_audited(fields, why):
    """And the report says so."""
    found, excluded = scope(rule(("",), resources=("pods",)), **fields)
    assert (bool(found), bool(excluded)) == (why is None, why is not None)
    assert all(text.startswith(why) for text in excluded)


def test_only_what_is_audited_is_called():
    """Not the workers of other policies, nor shadows; a name that is no policy is an error."""
    known = configuration(
        source(
            workers={"a": "dns:///a:1", "b": "dns:///b:1", "c": "dns:///c:1"},
            mutating=[raw("m", worker="c")],
            validating=[raw("x", worker="a", shadow={"worker": "c"}), raw("y", worker="b")],
        )
    )
    assert known.errors == ()
    assert [
        set(narrowed(known, names).workers) for names in ((), ("y.test.example.com",), ("test/x.test.example.com",))
    ] == [
        {"a", "b"},
        {"b"},
        {"a"},
    ]
    assert narrowed(known, ()).validating[0].shadow is None
    with pytest.raises(ValueError, match=r"m\.test\.example\.com: no validating policy of this name"):
        narrowed(known, ["m.test.example.com"])
