"""Native webhook configurations: loaded unchanged, with each version's defaults, as isolated policies and workers."""

import base64
import copy
import json

import pytest
import yaml

from gateway.policies.model import (
    EVERYTHING,
    FailurePolicy,
    MatchPolicy,
    Mode,
    OnConflict,
    Phase,
    ReinvocationPolicy,
    Requirement,
    Rule,
    Scope,
    Selector,
    SideEffects,
)
from gateway.policies.workers.targets import ServiceReference, WebhookTarget
from gateway.scopes.inputs import Inputs
from gateway.scopes.writes import Writes
from tests.authorities import Authority

GROUP = "admissionregistration.k8s.io"
WEBHOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://hooks.example.com/a"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
PRINTED = """
apiVersion: v1
kind: List
metadata:
  resourceVersion: ""
items:
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingWebhookConfiguration
  metadata:
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"apiVersion":"admissionregistration.k8s.io/v1"}
    creationTimestamp: "2026-03-01T10:00:00Z"
    generation: 3
    labels:
      app.kubernetes.io/name: hooks
    managedFields:
    - apiVersion: admissionregistration.k8s.io/v1
      fieldsType: FieldsV1
      fieldsV1:
        f:webhooks:
          .: {}
          k:{"name":"pods.hooks.example.com"}:
            f:name: {}
      manager: kubectl-client-side-apply
      operation: Update
      time: "2026-03-01T10:00:00Z"
    name: hooks
    resourceVersion: "4711"
    uid: 3b0ee1bb-7e14-4f0c-8c71-8c6fd4cbe0d7
  webhooks:
  - admissionReviewVersions:
    - v1
    - v1beta1
    clientConfig:
      caBundle: Y2VydA==
      service:
        name: hooks
        namespace: policies
        path: /pods
        port: 8443
    failurePolicy: Ignore
    matchConditions:
    - expression: '!request.dryRun'
      name: not-dry
    matchPolicy: Exact
    name: pods.hooks.example.com
    namespaceSelector:
      matchExpressions:
      - key: kubernetes.io/metadata.name
        operator: NotIn
        values:
        - kube-system
    objectSelector: {}
    rules:
    - apiGroups:
      - ""
      apiVersions:
      - v1
      operations:
      - CREATE
      resources:
      - pods
      scope: Namespaced
    sideEffects: NoneOnDryRun
    timeoutSeconds: 5
"""


@pytest.fixture
def native():
    """A native configuration with these webhooks."""
    return lambda *webhooks, phase="Mutating", version="v1", name="hooks": {
        "apiVersion": f"{GROUP}/{version}",
        "kind": f"{phase}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }


def webhook(**fields):
    """The webhook, with other fields; those that are ``...`` are left out."""
    fields = WEBHOOK | fields
    return {name: value for name, value in fields.items() if value is not ...}


def test_as_kubectl_prints_it(load_text):
    """What kubectl prints is loaded unchanged, with everything that the API server added, and all of it is taken."""
    loaded = load_text(PRINTED)
    assert not loaded.errors
    (policy,) = loaded.validating
    assert str(policy.place) == "policies.yaml:32: webhooks[0]"
    assert policy.qualified_name == "hooks/pods.hooks.example.com"
    assert (policy.phase, policy.isolate, policy.mode, policy.policy) == (Phase.VALIDATING, True, Mode.ENFORCE, "")
    assert policy.rules == (
        Rule(
            operations=("CREATE",),
            api_groups=("",),
            api_versions=("v1",),
            resources=("pods",),
            scope=Scope.NAMESPACED,
        ),
    )
    requirement = Requirement(key="kubernetes.io/metadata.name", operator="NotIn", values=("kube-system",))
    assert policy.namespace_selector == Selector(requirements=(requirement,))
    assert policy.object_selector == Selector()
    assert [(each.name, each.condition.expression) for each in policy.match_conditions] == [
        ("not-dry", "!request.dryRun")
    ]
    assert (policy.failure_policy, policy.match_policy) == (FailurePolicy.IGNORE, MatchPolicy.EXACT)
    assert (policy.timeout, policy.side_effects) == (5.0, SideEffects.NONE_ON_DRY_RUN)
    assert policy.worker == "ValidatingWebhookConfiguration/hooks/pods.hooks.example.com"
    worker = loaded.workers[policy.worker]
    assert worker.grpc is None
    assert worker.webhook == WebhookTarget(
        service=ServiceReference(namespace="policies", name="hooks", path="/pods", port=8443),
        ca_bundle=b"cert",
        review_versions=("v1", "v1beta1"),
    )


@pytest.mark.parametrize("absent", [..., None])
@pytest.mark.parametrize(
    ("version", "failure", "match", "timeout"),
    [
        ("v1", FailurePolicy.FAIL, MatchPolicy.EQUIVALENT, 10.0),
        ("v1beta1", FailurePolicy.IGNORE, MatchPolicy.EXACT, 30.0),
    ],
)
def test_defaults(load_documents, native, version, failure, match, timeout, absent):
    """What is absent, or null, has the defaults of its version."""
    optional = ("failurePolicy", "matchPolicy", "timeoutSeconds", "reinvocationPolicy", "rules", "matchConditions")
    selectors = ("namespaceSelector", "objectSelector")
    service = {"namespace": "n", "name": "s", "path": None, "port": None}
    fields = dict.fromkeys((*optional, *selectors), absent)
    loaded = load_documents(native(webhook(clientConfig={"service": service}, **fields), version=version))
    assert not loaded.errors
    (policy,) = loaded.mutating
    assert (policy.failure_policy, policy.match_policy, policy.timeout) == (failure, match, timeout)
    assert policy.reinvocation_policy is ReinvocationPolicy.NEVER
    assert policy.namespace_selector == policy.object_selector == Selector()
    assert policy.rules == policy.match_conditions == ()
    assert loaded.workers[policy.worker].webhook.service == ServiceReference(namespace="n", name="s", path="", port=443)


@pytest.mark.parametrize("phase", ["Mutating", "Validating"])
def test_nothing_is_limited(load_documents, native, errors, phase):
    """A webhook sees and changes what it always did, and nothing of it is kept; our own fields are unknown there."""
    (policy,) = (loaded := load_documents(native(webhook(), phase=phase))).mutating + loaded.validating
    assert (policy.inputs, policy.writes) == (Inputs.EVERYTHING, Writes.EVERYTHING)
    assert (policy.cache, policy.on_conflict) == (None, OnConflict.ALLOW)
    assert (policy.contact, policy.documentation) == ("", "")
    own = {
        "inputs": [],
        "writes": [],
        "cache": {},
        "onConflict": "deny",
        "contact": "us",
        "documentation": "https://a.b",
    }
    loaded = load_documents(native(webhook(**own), phase=phase))
    assert sorted(errors(loaded)) == [
        f'webhooks[0].{name}: unknown field "webhooks[0].{name}"'
        for name in ("cache", "contact", "documentation", "inputs", "onConflict", "writes")
    ]


def test_v1beta1_has_defaults_for_what_v1_requires(load_documents, native, errors):
    """sideEffects and admissionReviewVersions are required in v1; v1beta1 takes Unknown, and v1beta1 itself."""
    bare = webhook(sideEffects=..., admissionReviewVersions=...)
    loaded = load_documents(native(bare, version="v1beta1"))
    assert not loaded.errors
    assert loaded.mutating[0].side_effects is SideEffects.UNKNOWN
    (worker,) = loaded.workers.values()
    assert worker.webhook.review_versions == ("v1beta1",)
    assert errors(load_documents(native(bare))) == [
        "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
        "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
    ]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize("phase", ["Mutating", "Validating"])
def test_defaults_round_trip(load_documents, native, version, phase):
    """An object whose defaults are written out is the same policy as one that leaves them out."""
    bare = webhook(sideEffects="None", rules=[{name: ["*"] for name in ("operations", "apiGroups", "apiVersions")}])
    bare["rules"][0]["resources"] = ["*/*"]
    written = copy.deepcopy(bare) | {"namespaceSelector": {}, "objectSelector": {}, "matchConditions": []}
    written["rules"][0]["scope"] = "*"
    written |= (
        {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10}
        if version == "v1"
        else {"failurePolicy": "Ignore", "matchPolicy": "Exact", "timeoutSeconds": 30}
    )
    if phase == "Mutating":
        written["reinvocationPolicy"] = "Never"
    short, long = (load_documents(native(each, version=version, phase=phase)) for each in (bare, written))
    assert not short.errors
    assert short == long


def test_reinvocation_of_validating(load_documents, native, errors):
    """A validating webhook has no reinvocationPolicy."""
    loaded = load_documents(native(webhook(reinvocationPolicy="Never"), phase="Validating"))
    assert errors(loaded) == [
        'webhooks[0].reinvocationPolicy: unknown field "webhooks[0].reinvocationPolicy"',
    ]


@pytest.mark.parametrize("webhooks", [..., None, []])
def test_no_webhooks(load_documents, native, webhooks):
    """A configuration may have no webhooks at all."""
    document = native()
    if webhooks is ...:
        del document["webhooks"]
    else:
        document["webhooks"] = webhooks
    loaded = load_documents(document)
    assert not loaded.errors
    assert loaded.mutating == ()


def test_namesakes(load_documents, native, errors):
    """v1beta1 permits two webhooks of one name: each is a policy and a worker of its own. v1 refuses the second."""
    loaded = load_documents(native(WEBHOOK, WEBHOOK, webhook(name="b.example.com"), version="v1beta1"))
    assert not loaded.errors
    assert [policy.qualified_name for policy in loaded.mutating] == [
        "hooks/a.example.com",
        "hooks/a.example.com[1]",
        "hooks/b.example.com",
    ]
    assert list(loaded.workers) == [
        "MutatingWebhookConfiguration/hooks/a.example.com",
        "MutatingWebhookConfiguration/hooks/a.example.com[1]",
        "MutatingWebhookConfiguration/hooks/b.example.com",
    ]
    refused = load_documents(native(WEBHOOK, WEBHOOK))
    assert errors(refused) == ['webhooks[1].name: Duplicate value: "a.example.com"']
    assert [policy.fault is None for policy in refused.mutating] == [True, False]


def test_chain_with_own_kinds(load_documents, native, worker, configuration, policy):
    """Native configurations and ours are one chain, by name."""
    loaded = load_documents(
        native(WEBHOOK, name="b"), worker(), configuration(policy(), name="c"), configuration(policy(), name="a")
    )
    assert not loaded.errors
    assert [each.configuration for each in loaded.mutating] == ["a", "b", "c"]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_one_name_twice(load_documents, native, configuration, errors, version):
    """Two configurations of one phase with one name leave their order open, whatever their kinds: that is fatal."""
    for other in (native(version=version), configuration()):
        other["metadata"]["name"] = "hooks"
        loaded = load_documents(native(WEBHOOK), other)
        assert loaded.fatal
        assert errors(loaded) == ['metadata.name: Duplicate value: "hooks"']
    assert not load_documents(native(WEBHOOK), native(WEBHOOK, phase="Validating")).errors


@pytest.mark.parametrize("phase", ["Mutating", "Validating"])
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_typed_list(load_documents, native, phase, version):
    """The list of a native kind stands for its items, which do not say what they are; paths are those of the items."""
    item = native(WEBHOOK, webhook(name="b.example.com", sideEffects="Maybe"), phase=phase, version=version)
    kind = item.pop("kind")
    document = {
        "apiVersion": item.pop("apiVersion"),
        "kind": f"{kind}List",
        "metadata": {"resourceVersion": "1"},
        "items": [item],
    }
    loaded = load_documents(document)
    assert [policy.worker for policy in loaded.mutating + loaded.validating] == [
        f"{kind}/hooks/a.example.com",
        f"{kind}/hooks/b.example.com",
    ]
    assert {error.place.path for error in loaded.errors} >= {"webhooks[1].sideEffects"}
    assert not load_documents({**document, "items": None}).errors


@pytest.mark.parametrize(
    ("version", "kind", "words"),
    [
        ("v1", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicy objects are configuration of the API server"),
        ("v1beta1", "MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding objects are configuration"),
        ("v2", "ValidatingWebhookConfiguration", 'no matches for kind "ValidatingWebhookConfiguration" in version'),
        ("v1alpha1", "MutatingWebhookConfiguration", 'no matches for kind "MutatingWebhookConfiguration" in version'),
        ("v2", "MutatingWebhookConfigurationList", "MutatingWebhookConfigurationList objects are"),
    ],
)
def test_other_kinds_of_the_group(load_documents, version, kind, words):
    """Whatever else is of admissionregistration.k8s.io is refused by name, and so are other versions of the two."""
    loaded = load_documents({"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": "a"}})
    assert loaded.fatal
    (error,) = loaded.errors
    assert error.place.path == "kind"
    assert error.message.startswith(words)
    assert "known are " in error.message


def test_errors_of_a_webhook_are_its_own(load_documents, native):
    """A webhook with an error stands as a policy at fault, and has no worker; the others are not affected."""
    loaded = load_documents(native(webhook(timeoutSeconds="5"), webhook(name="b.example.com")))
    assert not loaded.fatal
    first, second = loaded.mutating
    assert first.fault == (
        "webhooks[0].timeoutSeconds: json: cannot unmarshal string into Go struct field "
        "MutatingWebhook.webhooks.timeoutSeconds of type int32"
    )
    assert second.fault is None
    assert list(loaded.workers) == [second.worker]


def test_errors_of_the_object_are_fatal(load_documents, native):
    """A error around the webhooks refuses the object, as in Kubernetes: what it would be is not known."""
    for change in ({"webhooks": {}}, {"metadata": {"name": "hooks", "labels": {"a b": ""}}}, {"spec": {}}):
        loaded = load_documents(native(WEBHOOK) | change)
        assert loaded.fatal
        assert len(loaded.errors) == 1


def test_what_cannot_be_read_is_strict(load_documents, native):
    """An unreadable field takes the strictest meaning, not the version's default; the decoder is the only one to
    speak of it.
    """
    bad = webhook(
        failurePolicy="ignore",
        matchPolicy=1,
        rules=[{"operations": 5, "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods", 1], "scope": 7}, 5],
        namespaceSelector={"matchLabels": {"a": 1}, "matchExpressions": [{"key": "b", "operator": "In", "values": 1}]},
        objectSelector=[],
        matchConditions=[{"name": "x", "expression": 1}],
    )
    loaded = load_documents(native(bad, version="v1beta1"))
    (policy,) = loaded.mutating
    assert (policy.failure_policy, policy.match_policy) == (FailurePolicy.FAIL, MatchPolicy.EQUIVALENT)
    first = Rule(operations=("*",), api_groups=("",), api_versions=("v1",), resources=("*/*",), scope=Scope.ALL)
    assert policy.rules == (first, EVERYTHING)
    assert policy.namespace_selector == policy.object_selector == Selector()
    assert policy.match_conditions == ()
    paths = [error.place.path for error in loaded.errors]
    assert len(paths) == len(set(paths)) == 10


def test_misspelt_rules(load_documents, native):
    """Absent rules match nothing; beside an unknown field they may be misspelt, and match everything."""
    plain, misspelt = load_documents(native(WEBHOOK, webhook(name="b.example.com", rule=[]))).mutating
    assert plain.rules == ()
    assert misspelt.rules == (EVERYTHING,)


def test_duplicate_fields(load_text, native, errors):
    """A duplicate field is reported at its path, in YAML and in JSON."""
    text = json.dumps(native(WEBHOOK)).replace('"sideEffects"', '"sideEffects": "Some", "sideEffects"')
    expected = ['webhooks[0].sideEffects: duplicate field "webhooks[0].sideEffects"']
    assert errors(load_text(text, "a.json")) == expected
    text = yaml.safe_dump(native(WEBHOOK)).replace("  sideEffects", "  sideEffects: Some\n  sideEffects")
    assert errors(load_text(text)) == expected


def test_whole_numbers(load_documents, native):
    """A number that is whole is an integer however it is written: kubectl would have made it one."""
    loaded = load_documents(native(webhook(timeoutSeconds=5.0)))
    assert not loaded.errors
    assert loaded.mutating[0].timeout == 5.0


@pytest.mark.parametrize(
    ("bundle", "is_warned_of"),
    [(b"", False), (b"cert", True), (Authority().pem, False), (Authority().pem + b"\nmore", False)],
)
def test_a_bundle_without_certificates(load_documents, native, bundle, is_warned_of):
    """Kubernetes takes it when the object is created, and fails at each call; so it is a warning, at its place."""
    config = {"url": "https://hooks.example.com/a", "caBundle": base64.b64encode(bundle).decode()}
    loaded = load_documents(native(webhook(clientConfig=config)))
    assert not loaded.errors
    warnings = [each for each in loaded.warnings if each.place.path == "webhooks[0].clientConfig.caBundle"]
    assert [each.message.partition(";")[0] for each in warnings] == is_warned_of * [
        "caBundle holds no PEM certificate: each call will fail"
    ]
