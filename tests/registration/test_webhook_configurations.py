"""What is registered with kube-apiserver, and that it comes to the same as the policies themselves."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.cel.match_conditions import compile_condition
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Configuration, MatchCondition, Mode, Phase, Requirement, Selector, SideEffects
from gateway.policies.workers.targets import ServiceReference
from gateway.registration.entries import make_entries
from gateway.registration.kubernetes_versions import KubeVersion
from gateway.registration.registered_entries import ANNOTATION
from gateway.registration.webhook_configurations import MAX_OBJECT_BYTES, Registrar, register
from tests.registration.chains import CONFIGURATIONS, REQUESTS, matched, on, policy

SERVICE = ServiceReference(namespace="gw", name="gateway", port=8443)
OWN_NAMESPACE = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["gw"]}
ANYTHING = on("* * * *")
ALL_EXCLUDED = "!(request.resource.group in ['admission-gateway.dev', 'authentication.k8s.io', 'authorization.k8s.io'])"
TRUE = compile_condition("true")


def registered(*policies, **fields):
    """The webhooks of the mutating phase, and the warnings."""
    entries = make_entries(Configuration(mutating=tuple(replace(each, index=i) for i, each in enumerate(policies))))
    made = register(entries, Registrar(**({"service": SERVICE} | fields)))
    return made.objects[0]["webhooks"], list(made.warnings)


def loaded(*objects):
    """The configuration that the objects are, to our own loader."""
    return load([SourceText(name=f"{i}.json", content=json.dumps(each).encode()) for i, each in enumerate(objects)])


def test_a_webhook_in_full():
    """An entry of two policies, field by field."""
    chain = [
        policy("a.x.y", rules=on("CREATE apps v1 deployments"), timeout=0.5),
        policy("b.x.y", rules=on("UPDATE apps v1 deployments"), side_effects=SideEffects.NONE_ON_DRY_RUN),
    ]
    (made,) = make_entries(Configuration(mutating=tuple(chain))).mutating
    assert made.path.startswith("/mutate/chain.a.x.y/")
    assert registered(*chain, ca_bundle=b"PEM") == (
        [
            {
                "name": "chain.a.x.y",
                "clientConfig": {
                    "service": {"namespace": "gw", "name": "gateway", "path": made.path, "port": 8443},
                    "caBundle": base64.b64encode(b"PEM").decode(),
                },
                "rules": [
                    {
                        "operations": ["CREATE", "UPDATE"],
                        "apiGroups": ["apps"],
                        "apiVersions": ["v1"],
                        "resources": ["deployments"],
                        "scope": "*",
                    }
                ],
                "namespaceSelector": {"matchExpressions": [OWN_NAMESPACE]},
                "objectSelector": {},
                "matchPolicy": "Equivalent",
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "sideEffects": "NoneOnDryRun",
                "timeoutSeconds": 12,
                "admissionReviewVersions": ["v1"],
            }
        ],
        [],
    )


def test_both_objects_are_made():
    """A phase without entries has an object without webhooks, which takes the place of an older one."""
    made = register(make_entries(Configuration()), Registrar(url="https://gw.example.com", name="gw"))
    assert [(each["kind"], each["metadata"], each["webhooks"]) for each in made.objects] == [
        ("MutatingWebhookConfiguration", {"name": "gw"}, []),
        ("ValidatingWebhookConfiguration", {"name": "gw"}, []),
    ]


def test_by_url():
    """A URL gets the entry's path; there is no namespace of ours to exclude."""
    ((webhook,), _) = registered(policy("a.x.y"), service=None, url="https://gw.example.com:8443")
    (entry,) = make_entries(Configuration(mutating=(policy("a.x.y"),))).mutating
    assert webhook["clientConfig"] == {"url": f"https://gw.example.com:8443{entry.path}"}
    assert webhook["namespaceSelector"] == {}


def test_validating_has_no_reinvocation():
    """reinvocationPolicy is a field of mutating webhooks only."""
    entries = make_entries(Configuration(validating=(policy("a.x.y", phase=Phase.VALIDATING),)))
    (webhook,) = register(entries, Registrar(service=SERVICE)).objects[1]["webhooks"]
    assert "reinvocationPolicy" not in webhook


@pytest.mark.parametrize("mode", [Mode.WARN, Mode.AUDIT])
def test_what_is_not_enforced_is_ignored(mode):
    """An entry that enforces nothing is registered with Ignore, isolated or not."""
    for isolate in (False, True):
        ((webhook,), _) = registered(policy("a.x.y", mode=mode, isolate=isolate))
        assert webhook["failurePolicy"] == "Ignore"


def test_selectors_that_all_share():
    """A selector is registered where all members have the same, and left to the gateway where they differ."""
    team = Selector(requirements=(Requirement(key="team", operator="In", values=("a",)),))
    chain = [
        policy("a.x.y", namespace_selector=team, object_selector=team),
        policy("b.x.y", namespace_selector=team),
    ]
    ((webhook,), _) = registered(*chain)
    assert webhook["namespaceSelector"] == {"matchLabels": {"team": "a"}, "matchExpressions": [OWN_NAMESPACE]}
    assert webhook["objectSelector"] == {}


def test_excluded_namespaces():
    """Namespaces by choice are excluded with the gateway's own, each once."""
    ((webhook,), _) = registered(policy("a.x.y"), excluded_namespaces=("kube-system", "gw"))
    assert webhook["namespaceSelector"]["matchExpressions"][0]["values"] == ["gw", "kube-system"]


@pytest.mark.parametrize(
    ("rules", "groups"),
    [
        ("* * * */*", ["admission-gateway.dev", "authentication.k8s.io", "authorization.k8s.io"]),
        ("CREATE * v1 tokenreviews", ["authentication.k8s.io"]),
        ("CREATE * v1 subjectaccessreviews,pods", ["authorization.k8s.io"]),
        ("CREATE * v1 workers/*", ["admission-gateway.dev"]),
        ("CREATE * v1 pods", []),
        ("CREATE core,apps v1 *", []),
    ],
)
def test_excluded_groups(rules, groups):
    """Where a rule for all groups can match what must never be sent, a condition excepts that, and only that."""
    ((webhook,), warnings) = registered(policy("a.x.y", rules=on(rules)))
    words = ", ".join(f"'{group}'" for group in groups)
    expected = [f"!(request.resource.group in [{words}])"] if groups else []
    assert [each["expression"] for each in webhook.get("matchConditions", [])] == expected
    assert all(compile_condition(expression).error is None for expression in expected)
    assert warnings == []


def test_excluded_groups_that_are_named():
    """A rule that names an excluded group is registered without it, and it is said."""
    rules = on("* apps,authorization.k8s.io v1 *", "* admission-gateway.dev v1 workers")
    ((webhook,), warnings) = registered(policy("a.x.y", rules=rules))
    assert [each["apiGroups"] for each in webhook["rules"]] == [["apps"]]
    assert "matchConditions" not in webhook
    (warning,) = warnings
    assert warning.startswith("chain.a.x.y: never sent to the gateway, and so left out of the rules: ")
    assert warning.endswith(": admission-gateway.dev, authorization.k8s.io")


def test_nothing_but_excluded_groups():
    """An entry that could match nothing else is left out, and it is said."""
    webhooks, (warning,) = registered(policy("a.x.y", rules=on("CREATE authentication.k8s.io v1 tokenreviews")))
    assert webhooks == []
    assert warning.startswith("chain.a.x.y: is left out")


def test_no_rules():
    """A policy without rules is left out, and it is said."""
    assert registered(policy("a.x.y", rules=())) == ([], ["x/a.x.y: has no rules, so it never matches; it is left out"])


def conditions(number):
    """Conditions c0, c1 and so on."""
    return tuple(MatchCondition(name=f"c{index}", condition=TRUE) for index in range(number))


def test_isolated_conditions():
    """An isolated policy's own conditions are registered, behind ours."""
    ((webhook,), _) = registered(policy("a.x.y", isolate=True, rules=ANYTHING, match_conditions=conditions(2)))
    assert webhook["matchConditions"] == [
        {"name": "admission-gateway.dev/exclusions", "expression": ALL_EXCLUDED},
        {"name": "c0", "expression": "true"},
        {"name": "c1", "expression": "true"},
    ]


def test_conditions_of_several():
    """Policies together have one condition, behind ours, if all have some; the gateway checks each one's own."""
    one = policy("a.x.y", rules=ANYTHING, match_conditions=conditions(1))
    ((webhook,), _) = registered(one, policy("b.x.y", rules=ANYTHING, match_conditions=conditions(2)))
    assert webhook["matchConditions"] == [
        {"name": "admission-gateway.dev/exclusions", "expression": ALL_EXCLUDED},
        {"name": "admission-gateway.dev/policies", "expression": "((true\n)) || ((true\n) && (true\n))"},
    ]
    ((webhook,), _) = registered(one, policy("b.x.y", rules=ANYTHING))
    assert [each["name"] for each in webhook["matchConditions"]] == ["admission-gateway.dev/exclusions"]


def test_no_room_for_a_condition():
    """With 64 conditions of its own, ours goes into the last, whatever that ends with."""
    last = MatchCondition(name="last", condition=compile_condition("request.name == 'a' || true // always"))
    own = (*conditions(63), last)
    ((webhook,), _) = registered(policy("a.x.y", isolate=True, rules=ANYTHING, match_conditions=own))
    assert [each["name"] for each in webhook["matchConditions"]] == [each.name for each in own]
    expression = webhook["matchConditions"][-1]["expression"]
    assert expression == f"{ALL_EXCLUDED} && (request.name == 'a' || true // always\n)"
    assert compile_condition(expression).error is None


def test_a_condition_that_has_our_name():
    """A condition of the same name (in what was registered before, say) keeps it."""
    own = (MatchCondition(name="admission-gateway.dev/exclusions", condition=TRUE),)
    ((webhook,), _) = registered(policy("a.x.y", isolate=True, rules=ANYTHING, match_conditions=own))
    assert [each["name"] for each in webhook["matchConditions"]] == [
        "admission-gateway.dev/exclusions-2",
        "admission-gateway.dev/exclusions",
    ]


def test_before_match_conditions():
    """For an API server without matchConditions there are none, and what that means is said for each entry."""
    chain = [policy("a.x.y", isolate=True, rules=ANYTHING, match_conditions=conditions(1)), policy("b.x.y")]
    webhooks, warnings = registered(*chain, kube_version=KubeVersion(1, 27))
    assert [each for each in webhooks if "matchConditions" in each] == []
    assert [warning.split(":")[0] for warning in warnings] == ["a.x.y", "a.x.y"]
    assert "does not check those of an isolated policy" in warnings[0]
    assert "cannot except admission-gateway.dev, authentication.k8s.io, authorization.k8s.io" in warnings[1]
    assert registered(*chain, kube_version=KubeVersion(1, 28))[1] == []


def test_before_the_name_label():
    """For an API server that does not label namespaces, the label that is needed is named."""
    _, (warning,) = registered(policy("a.x.y"), kube_version=KubeVersion(1, 20))
    assert "put the label kubernetes.io/metadata.name on gw" in warning
    assert registered(policy("a.x.y"), kube_version=KubeVersion(1, 21))[1] == []


def test_before_v1():
    """An API server without admissionregistration.k8s.io/v1 is refused."""
    with pytest.raises(ValueError, match=r"Kubernetes 1\.15 has no admissionregistration\.k8s\.io/v1, which 1\.16"):
        Registrar(service=SERVICE, kube_version=KubeVersion(1, 15))


def test_conditions_that_are_too_new():
    """A condition that an older CEL does not know is reported by name."""
    own = (MatchCondition(name="net", condition=compile_condition("isIP(request.name)")),)
    chain = policy("a.x.y", isolate=True, match_conditions=own)
    assert registered(chain, kube_version=KubeVersion(1, 30))[1] == [
        "a.x.y: matchCondition net: Kubernetes 1.30 does not have the IP address library (from 1.31)"
    ]


@pytest.mark.parametrize(("seconds", "warned"), [(29, False), (29.5, True), (30, True)])
def test_more_than_the_api_server_waits(seconds, warned):
    """Policies that may take longer than 30 s less the rounded second are reported."""
    ((webhook,), warnings) = registered(policy("a.x.y", timeout=seconds))
    assert (webhook["timeoutSeconds"], bool(warnings)) == (30, warned)


def test_too_large():
    """An object that etcd would refuse is reported with its size."""
    chain = [policy(f"p{index}.x.y", isolate=True) for index in range(MAX_OBJECT_BYTES // 400)]
    _, (members, warning) = registered(*chain)
    assert warning.startswith("MutatingWebhookConfiguration: the object has ")
    assert f"bytes, and the annotation {ANNOTATION} at most" in members


@pytest.mark.parametrize("fields", [{}, {"service": SERVICE, "url": "https://gw.example.com"}])
def test_one_way_to_the_gateway(fields):
    """Neither or both of service and url are refused."""
    with pytest.raises(ValueError, match="exactly one of service and url"):
        Registrar(**fields)


NATIVE = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "images"},
    "webhooks": [
        {
            "name": "images.example.com",
            "clientConfig": {"url": "https://images.example.com/validate"},
            "rules": [
                {
                    "operations": ["UPDATE", "CREATE"],
                    "apiGroups": ["", "apps"],
                    "apiVersions": ["v1"],
                    "resources": ["pods", "pods/ephemeralcontainers"],
                    "scope": "Namespaced",
                },
                {
                    "operations": ["CREATE"],
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "resources": ["pods"],
                    "scope": "*",
                },
            ],
            "namespaceSelector": {
                "matchLabels": {"a": "1", "b": "2"},
                "matchExpressions": [{"key": "a", "operator": "Exists"}],
            },
            "objectSelector": {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
            "matchConditions": [{"name": "named", "expression": "request.name != ''"}],
            "matchPolicy": "Exact",
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "timeoutSeconds": 7,
            "admissionReviewVersions": ["v1"],
        }
    ],
}


def test_a_webhook_that_moved_here():
    """A native webhook is registered as it was, but for its clientConfig, our namespace, and the rounded second."""
    configuration = loaded(NATIVE)
    assert configuration.errors == ()
    entries = make_entries(configuration)
    rendered = register(entries, Registrar(service=SERVICE)).objects[1]
    path = entries.validating[0].path
    assert path.startswith("/validate/images.example.com/")
    (before,), (after,) = NATIVE["webhooks"], rendered["webhooks"]
    selector = before["namespaceSelector"]
    assert after == before | {
        "clientConfig": {"service": {"namespace": "gw", "name": "gateway", "path": path, "port": 8443}},
        "timeoutSeconds": 8,
        "namespaceSelector": selector | {"matchExpressions": [*selector["matchExpressions"], OWN_NAMESPACE]},
    }


@pytest.mark.property
@given(CONFIGURATIONS)
def test_our_own_loader_takes_it(configuration):
    """Whatever is registered is a native configuration without an error, one policy for each webhook, in order."""
    made = register(make_entries(configuration), Registrar(service=SERVICE, excluded_namespaces=("kube-system",)))
    again = loaded(*made.objects)
    assert [str(error) for error in again.errors] == []
    for phase, each in zip((Phase.MUTATING, Phase.VALIDATING), made.objects, strict=True):
        assert [one.name for one in again.policies(phase)] == [webhook["name"] for webhook in each["webhooks"]]


@pytest.mark.property
@given(CONFIGURATIONS)
def test_registered_again(configuration):
    """An isolated policy, registered and read again, has the same rules, selectors, conditions and policies."""
    isolated = Configuration(
        mutating=tuple(replace(each, isolate=True) for each in configuration.mutating),
        validating=tuple(replace(each, isolate=True) for each in configuration.validating),
    )
    entries = make_entries(isolated)
    again = loaded(*register(entries, Registrar(url="https://gw.example.com")).objects)
    for phase in Phase:
        read = {each.name: each for each in again.policies(phase)}
        for entry in entries.of(phase):
            (before,), after = entry.policies, read[entry.name]
            assert after.rules == before.rules
            assert after.namespace_selector == before.namespace_selector
            assert after.object_selector == before.object_selector
            assert after.match_policy == before.match_policy
            assert after.reinvocation_policy == before.reinvocation_policy
            own = [(each.name, each.condition.expression) for each in before.match_conditions]
            registered_ones = [(each.name, each.condition.expression) for each in after.match_conditions]
            assert registered_ones[len(registered_ones) - len(own) :] == own


@pytest.mark.property
@given(CONFIGURATIONS, st.lists(st.sampled_from(REQUESTS), min_size=30, max_size=30))
def test_registered_rules(configuration, requests):
    """The API server calls an entry for a request if and only if the rules of one of its policies match it."""
    entries = make_entries(configuration)
    again = loaded(*register(entries, Registrar(service=SERVICE)).objects)
    for phase in Phase:
        read = {each.name: each for each in again.policies(phase)}
        for entry in entries.of(phase):
            rules = [rule for each in entry.policies for rule in each.rules]
            assert [matched(read[entry.name].rules, request) for request in requests] == [
                matched(rules, request) for request in requests
            ]
