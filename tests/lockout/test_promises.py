"""What is promised is never sent to a webhook under Fail, by kube-apiserver's own rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.lockout.configurations import read_webhooks
from gateway.lockout.examination import examine
from gateway.lockout.registration import DNS, NETWORK
from tests.lockout.registrations import rule

NAMES = "kubernetes.io/metadata.name"
RESOURCES = [
    "pods",
    "pods/*",
    "nodes",
    "nodes/status",
    "*",
    "*/*",
    "*/status",
    "leases",
    "events",
    "namespaces",
    "secrets",
]
GROUPS = ["", "*", "apps", "coordination.k8s.io", "events.k8s.io"]

RULES = st.builds(
    rule,
    st.sampled_from(RESOURCES),
    group=st.sampled_from(GROUPS),
    version=st.sampled_from(["v1", "v1beta1", "*"]),
    operations=st.sampled_from([["*"], ["CREATE"], ["UPDATE", "DELETE"]]),
    scope=st.sampled_from(["*", "Namespaced", "Cluster"]),
)
REQUIREMENTS = st.sampled_from(
    [
        {"key": NAMES, "operator": "NotIn", "values": ["kube-system"]},
        {"key": NAMES, "operator": "In", "values": ["kube-system", "default"]},
        {"key": "team", "operator": "In", "values": ["a"]},
        {"key": "team", "operator": "DoesNotExist"},
        {"key": "k8s-app", "operator": "Exists"},
    ]
)
SELECTORS = st.lists(REQUIREMENTS, max_size=2).map(lambda found: {"matchExpressions": found})
WEBHOOKS = st.lists(
    st.fixed_dictionaries(
        {
            "rules": st.lists(RULES, min_size=1, max_size=2),
            "namespaceSelector": SELECTORS,
            "objectSelector": SELECTORS,
            "failurePolicy": st.sampled_from(["Fail", "Ignore"]),
            "matchPolicy": st.sampled_from(["Exact", "Equivalent"]),
        }
    ),
    max_size=4,
)
LABELS = st.sampled_from([{}, {"team": "a"}, {"team": "b"}])


def registered(webhooks):
    named = [
        {
            "name": f"w{index}.example.com",
            "clientConfig": {"service": {"namespace": "gw", "name": "gw"}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 1,
        }
        | webhook
        for index, webhook in enumerate(webhooks)
    ]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "gw"},
        "webhooks": named,
    }


def selects(selector, labels):
    """metav1.LabelSelectorAsSelector."""
    holds = {
        "In": lambda each: labels.get(each["key"]) in each["values"],
        "NotIn": lambda each: labels.get(each["key"]) not in each["values"],
        "Exists": lambda each: each["key"] in labels,
        "DoesNotExist": lambda each: each["key"] not in labels,
    }
    return all(holds[each["operator"]](each) for each in selector["matchExpressions"])


def matches(each, probe, group, version):
    """rules.Matcher: operation, group, version, resource, scope."""
    namespaced = bool(probe.namespace) and probe.resource.resource != "namespaces"

    def resource(text):
        wanted, _, sub = text.partition("/")
        return wanted in ("*", probe.resource.resource) and sub in (probe.sub_resource, "*")

    return (
        ("*" in each["operations"] or probe.operation in each["operations"])
        and ("*" in each["apiGroups"] or group in each["apiGroups"])
        and ("*" in each["apiVersions"] or version in each["apiVersions"])
        and any(map(resource, each["resources"]))
        and each["scope"] in ("*", "Namespaced" if namespaced else "Cluster")
    )


def should_call(webhook, probe, labels, served):
    """webhook.ShouldCallHook, without matchConditions."""
    request = probe.request()
    if probe.resource.resource == "namespaces" and not probe.sub_resource and probe.operation in ("CREATE", "UPDATE"):
        chosen = selects(webhook["namespaceSelector"], probe.object["metadata"].get("labels", {}))
    elif not probe.namespace:
        chosen = True
    else:
        chosen = selects(webhook["namespaceSelector"], labels | {NAMES: probe.namespace})
    objects = [each for each in (request.object, request.old_object) if each is not None]
    wanted = webhook["objectSelector"]
    if wanted["matchExpressions"]:
        chosen = chosen and any(selects(wanted, each["metadata"].get("labels", {})) for each in objects)
    direct = [(probe.resource.group, probe.resource.version)]
    equivalent = [(probe.resource.group, version) for version in served]
    if probe.resource.resource == "events":
        equivalent += [("", "v1"), ("events.k8s.io", "v1"), *(("events.k8s.io", version) for version in served)]
    versions = direct if webhook["matchPolicy"] == "Exact" else direct + equivalent
    return chosen and any(matches(each, probe, *version) for each in webhook["rules"] for version in versions)


@pytest.mark.property
@given(webhooks=WEBHOOKS, labels=LABELS, known=st.booleans(), served=st.sampled_from([[], ["v1beta1"]]))
def test_what_is_promised_is_never_sent_to_a_webhook_under_fail(webhooks, labels, known, served):
    """Whatever labels the namespaces have, and whatever versions are served; and what is certainly blocked is sent."""
    namespaces = dict.fromkeys(("kube-system", "kube-node-lease", "default", "new-namespace"), labels) if known else {}
    examination = examine(read_webhooks([registered(webhooks)], {}), [DNS, NETWORK], namespaces=namespaces)
    closed = [each for each in webhooks if each["failurePolicy"] == "Fail"]
    for probe in examination.promised:
        assert not any(should_call(webhook, probe, labels, served) for webhook in closed), probe
    certain = [probe for each in examination.findings if each.code == "lockout" for probe in each.requests]
    for probe in certain:
        assert any(should_call(webhook, probe, labels, served) for webhook in closed), probe


def test_without_webhooks_everything_is_promised():
    """The promise is about something."""
    examination = examine((), [DNS])
    assert examination.blocked == ()
    assert {each.what for each in examination.promised} >= {"cluster DNS", "nodes", "events"}
