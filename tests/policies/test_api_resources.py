"""Names in ``resources`` that match nothing, and which were meant."""

import pytest

MEANT = {
    # group, entry: the warning
    ("", "pod"): 'no resource is called "pod": did you mean "pods"?',
    ("", "Pod"): 'no resource is called "Pod": did you mean "pods"?',
    ("", "po"): 'no resource is called "po": did you mean "pods"?',
    ("", "pdos"): 'no resource is called "pdos": did you mean "pods"?',
    ("", "pod/exec"): 'no resource is called "pod": did you mean "pods/exec"?',
    ("apps", "Deployments"): 'no resource is called "Deployments": did you mean "deployments"?',
    ("apps", "deploy"): 'no resource is called "deploy": did you mean "deployments"?',
    ("networking.k8s.io", "NetworkPolicy"): 'no resource is called "NetworkPolicy": did you mean "networkpolicies"?',
    ("*", "ingress"): 'no resource is called "ingress": did you mean "ingresses"?',
    ("", "deployments"): 'deployments are in the API group "apps", which this rule does not name',
    ("example.com", "Widget"): (
        'no resource is called "Widget", since none has capital letters: write its plural, as `kubectl api-resources` '
        "shows it"
    ),
}


@pytest.mark.parametrize(("group", "entry"), MEANT)
def test_the_likely_name_is_suggested(one_policy, group, entry):
    """A singular, a kind, a short name, a misspelt one: Kubernetes takes them, and they match nothing."""
    rule = {"operations": ["DELETE"], "apiGroups": [group], "apiVersions": ["v1"], "resources": [entry]}
    _, loaded = one_policy({"rules": [rule]})
    assert loaded.errors == ()
    assert [(each.place.path, each.message) for each in loaded.warnings] == [
        ("policies[0].rules[0].resources[0]", MEANT[group, entry])
    ]


@pytest.mark.parametrize(
    ("group", "entry"),
    [
        ("", "pods"),
        ("", "pods/*"),
        ("", "*/*"),
        ("*", "widgets"),
        ("", "novelties"),
        ("example.com", "pod"),
        ("extensions", "ingresses"),
        ("events.k8s.io", "events"),
        ("*", "deployments"),
    ],
)
def test_what_may_be_right_has_no_hint(one_policy, group, entry):
    """Neither are custom resources, nor those of releases that this one does not know."""
    rule = {"operations": ["DELETE"], "apiGroups": [group], "apiVersions": ["v1"], "resources": [entry]}
    _, loaded = one_policy({"rules": [rule], "failurePolicy": "Ignore"})
    assert (loaded.errors, loaded.warnings) == ((), ())


def test_native_rules_have_hints_too(load_documents):
    """An existing webhook's rule that matches nothing is the same error."""
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["Pods"]}
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://a.example.com"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    loaded = load_documents(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "a"},
            "webhooks": [hook],
        }
    )
    assert [each.place.path for each in loaded.warnings] == ["webhooks[0].rules[0].resources[0]"]
