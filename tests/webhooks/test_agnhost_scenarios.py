"""The conformance scenarios of Kubernetes' end-to-end suite (test/e2e/apimachinery/webhook.go), with the gateway in
kube-apiserver's place: its webhooks, the real agnhost, its requests, what it expects of the answers.

What only an API server does (discovery, defaulting and pruning after a patch, storage versions, configurations that
come and go) is in tests/e2e/test_agnhost_scenarios.py, where a real one calls the gateway.
"""

import base64
import json

import jsonpatch
import pytest

from tests.integration.client import post
from tests.integration.running import configuration as loaded
from tests.webhooks.native import by_url, configuration, text, webhook

pytestmark = pytest.mark.workers

UNIQUE = {"e2e-unique": "true"}
SELECTED = {"namespaceSelector": {"matchLabels": UNIQUE}}
SKIPPED = {"skip-webhook-admission": "yes"}
CLOSED = {"fail-closed-webhook": "yes"}

UNWANTED = {"webhook-e2e-test": "webhook-disallow"}
NONDELETABLE = {"webhook-e2e-test": "webhook-nondeletable"}

NAMESPACES = {"ns": UNIQUE, "skipped": UNIQUE | SKIPPED, "closed": UNIQUE | CLOSED, "elsewhere": {}}

CONFIGMAPS = ("", "v1", "configmaps", "ConfigMap")
PODS = ("", "v1", "pods", "Pod")
WIDGETS = ("stable.example.com", "v1", "widgets", "Widget")
CRDS = ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")


def _rules(what, *operations, versions=None):
    group, version, resource, _ = what
    return [
        {
            "operations": list(operations),
            "apiGroups": [group],
            "apiVersions": versions or [version],
            "resources": [resource],
        }
    ]


def _namespaces():
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        for name, labels in NAMESPACES.items()
    ]


def _object(what, name, namespace="ns", **fields):
    group, version, _, kind = what
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": f"{group}/{version}".lstrip("/"), "kind": kind, "metadata": metadata} | fields


def _pod(name, container="container1", labels=None):
    made = _object(PODS, name, spec={"containers": [{"name": container, "image": "pause"}]})
    return made | {"metadata": made["metadata"] | ({"labels": labels} if labels else {})}


def _review(what, operation, whole, old=None, *, sub=None, timeout=10):
    """A request as kube-apiserver makes it."""
    group, version, resource, kind = what
    gvk = {"group": group, "version": version, "kind": kind}
    gvr = {"group": group, "version": version, "resource": resource}
    metadata = (whole or old).get("metadata", {})
    request = {"uid": f"{operation}-{metadata.get('name')}", "kind": gvk, "resource": gvr}
    request |= {"subResource": sub, "requestSubResource": sub} if sub else {}
    request |= {"requestKind": gvk, "requestResource": gvr, "name": metadata.get("name", "")}
    request |= {"namespace": metadata["namespace"]} if "namespace" in metadata else {}
    request |= {"operation": operation, "userInfo": {"username": "e2e"}, "object": whole, "oldObject": old}
    request |= {"dryRun": False, "options": None}
    body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(body).encode(), timeout


@pytest.fixture(scope="module")
def server(agnhost):
    """agnhost."""
    return agnhost()


@pytest.fixture
def cluster(server, authority, gateway):
    """A gateway with these webhooks: ``async with cluster(validating=[hook(...)]) as judged``."""

    def serve(*, validating=(), mutating=()):
        kinds = {"Validating": validating, "Mutating": mutating}
        objects = [configuration(kind, "e2e", *hooks) for kind, hooks in kinds.items() if hooks]
        known = loaded(text(*objects, *_namespaces()))
        assert not known.errors
        return gateway(known)

    return serve


@pytest.fixture
def hook(server, authority):
    """A webhook of agnhost's: ``hook(name, route, rules)``; ``trusted`` False: without caBundle."""

    def make(name, route, rules, *, trusted=True, **fields):
        client = by_url(route, server.port)
        return webhook(f"{name}.k8s.io", client, authority if trusted else None, rules=rules, **SELECTED | fields)

    return make


async def _validated(running, review):
    body, timeout = review
    return await running.send(post(body, f"/validate?timeout={timeout}s"))


async def _mutated(running, review):
    """The object as it becomes."""
    body, timeout = review
    answered = await running.send(post(body, f"/mutate?timeout={timeout}s"))
    assert answered.response["allowed"], answered
    patch = json.loads(base64.b64decode(answered.response.get("patch", "W10=")))
    return jsonpatch.apply_patch(json.loads(body)["request"]["object"], patch)


def _denial(answered):
    """The text of a denial, or None. agnhost has it in the message, or in the reason."""
    if answered.response["allowed"]:
        return None
    status = answered.response["status"]
    return status.get("message") or status["reason"]


async def test_deny_create(cluster, hook):
    """Unwanted pods and configmaps are refused however they come, but not in a namespace that is not selected."""
    unless_skipped = {"matchLabels": UNIQUE, "matchExpressions": [_not_in(SKIPPED)]}
    hooks = [
        hook("deny-unwanted-pod-container-name-and-label", "/pods", _rules(PODS, "CREATE")),
        hook(
            "deny-unwanted-configmap-data",
            "/configmaps",
            _rules(CONFIGMAPS, "CREATE", "UPDATE", "DELETE"),
            namespaceSelector=unless_skipped,
        ),
        hook("fail-open", "/configmaps", _rules(CONFIGMAPS, "CREATE"), trusted=False, failurePolicy="Ignore"),
    ]
    async with cluster(validating=hooks) as running:
        unwanted = _pod("disallowed-pod", "webhook-disallow", UNWANTED)
        denial = _denial(await _validated(running, _review(PODS, "CREATE", unwanted)))
        assert "the pod contains unwanted container name" in denial
        assert "the pod contains unwanted label" in denial
        hanging = _pod("hanging-pod", labels={"webhook-e2e-test": "wait-forever"})
        # The API server's time runs out before the webhook's own.
        assert "BUDGET_EXHAUSTED" in _denial(await _validated(running, _review(PODS, "CREATE", hanging, timeout=2)))
        bad, good = _object(CONFIGMAPS, "cm", data=UNWANTED), _object(CONFIGMAPS, "cm", data={"admit": "this"})
        for review in (_review(CONFIGMAPS, "CREATE", bad), _review(CONFIGMAPS, "UPDATE", bad, good)):
            assert "the configmap contains unwanted key and value" in _denial(await _validated(running, review))
        admitted = await _validated(running, _review(CONFIGMAPS, "CREATE", good))
        assert _denial(admitted) is None
        assert "fail-open.k8s.io_failed-open" in admitted.response["auditAnnotations"]
        skipped = _object(CONFIGMAPS, "cm", "skipped", data=UNWANTED)
        assert _denial(await _validated(running, _review(CONFIGMAPS, "CREATE", skipped))) is None


def _not_in(labels):
    ((key, value),) = labels.items()
    return {"key": key, "operator": "NotIn", "values": [value]}


async def test_deny_attach(cluster, hook):
    """Attaching to the one container of the one pod is refused."""
    rules = _rules(("", "v1", "pods/attach", ""), "CONNECT")
    async with cluster(validating=[hook("deny-attaching-pod", "/pods/attach", rules)]) as running:
        what = ("", "v1", "pods", "PodAttachOptions")
        options = {"apiVersion": "v1", "kind": "PodAttachOptions", "stdin": True, "container": "container1"}
        body, timeout = _review(what, "CONNECT", options, sub="attach")
        called = json.loads(body)
        called["request"] |= {"name": "to-be-attached-pod", "namespace": "ns"}
        denial = _denial(await _validated(running, (json.dumps(called).encode(), timeout)))
        assert "attaching to pod 'to-be-attached-pod' is not allowed" in denial


async def test_deny_custom_resource_create_update_and_delete(cluster, hook):
    """Its data decides whether a custom resource may come, change and go."""
    rules = _rules(WIDGETS, "CREATE", "UPDATE", "DELETE")
    async with cluster(validating=[hook("deny-unwanted-custom-resource-data", "/custom-resource", rules)]) as running:
        unwanted, nondeletable, plain = (
            _object(WIDGETS, "cr", data=data)
            for data in (UNWANTED, NONDELETABLE, {"webhook-e2e-test": "webhook-allow"})
        )
        no, never = (
            "the custom resource contains unwanted data",
            "the custom resource cannot be deleted because it contains unwanted key and value",
        )
        for review, expected in (
            (_review(WIDGETS, "CREATE", unwanted), no),
            (_review(WIDGETS, "CREATE", nondeletable), None),
            (_review(WIDGETS, "UPDATE", unwanted, nondeletable), no),
            (_review(WIDGETS, "DELETE", None, nondeletable), never),
            (_review(WIDGETS, "UPDATE", plain, nondeletable), None),
            (_review(WIDGETS, "DELETE", None, plain), None),
        ):
            assert _denial(await _validated(running, review)) == expected


async def test_fail_closed(cluster, hook):
    """A webhook that cannot be called, for want of a caBundle, refuses with InternalError what its selector selects."""
    selected = {
        "namespaceSelector": {"matchLabels": UNIQUE, "matchExpressions": [_not_in(CLOSED) | {"operator": "In"}]}
    }
    closed = hook("fail-closed", "/configmaps", _rules(CONFIGMAPS, "CREATE"), trusted=False, **selected)
    async with cluster(validating=[closed]) as running:
        answered = await _validated(running, _review(CONFIGMAPS, "CREATE", _object(CONFIGMAPS, "cm", "closed")))
        assert answered.fails_with("WORKER_UNAVAILABLE")
        assert _denial(await _validated(running, _review(CONFIGMAPS, "CREATE", _object(CONFIGMAPS, "cm")))) is None


@pytest.mark.parametrize(
    ("what", "route"), [(CONFIGMAPS, "/mutating-configmaps"), (WIDGETS, "/mutating-custom-resource")]
)
async def test_ordered_mutation(cluster, hook, what, route):
    """The second webhook sees what the first has made of the object."""
    stages = [hook(f"adding-data-stage-{number}", route, _rules(what, "CREATE")) for number in (1, 2)]
    async with cluster(mutating=stages) as running:
        made = await _mutated(
            running, _review(what, "CREATE", _object(what, "started", data={"mutation-start": "yes"}))
        )
        assert made["data"] == {"mutation-start": "yes", "mutation-stage-1": "yes", "mutation-stage-2": "yes"}


async def test_mutated_pod(cluster, hook):
    """It has exactly one init container. (Its defaults are the API server's, after ours.)"""
    async with cluster(mutating=[hook("adding-init-container", "/mutating-pods", _rules(PODS, "CREATE"))]) as running:
        made = await _mutated(running, _review(PODS, "CREATE", _pod("webhook-to-be-mutated")))
        assert [each["name"] for each in made["spec"]["initContainers"]] == ["webhook-added-init-container"]


async def test_deny_custom_resource_definition(cluster, hook):
    """A definition with the unwanted label is refused, if the objectSelector selects it."""
    selected = {"namespaceSelector": {}, "objectSelector": {"matchLabels": UNIQUE}}
    deny = hook("deny-crd-with-unwanted-label", "/crd", _rules(CRDS, "CREATE", versions=["*"]), **selected)
    async with cluster(validating=[deny]) as running:
        for labels, expected in ((UNIQUE | UNWANTED, "the crd contains unwanted label"), (UNWANTED, None)):
            name = "widgets.stable.example.com"
            definition = _object(CRDS, name, "") | {"metadata": {"name": name, "labels": labels}}
            assert _denial(await _validated(running, _review(CRDS, "CREATE", definition))) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"timeoutSeconds": 1}, "WORKER_TIMEOUT"),
        ({"timeoutSeconds": 1, "failurePolicy": "Ignore"}, None),
        ({"timeoutSeconds": 10}, None),
    ],
    ids=["shorter", "shorter and Ignore", "longer"],
)
async def test_honor_timeout(cluster, hook, fields, expected):
    """A webhook that takes five seconds is waited for as long as its timeoutSeconds say, and not longer."""
    rules = _rules(CONFIGMAPS, "CREATE")
    slow = hook("allow-configmap-with-delay-webhook", "/always-allow-delay-5s", rules, **fields)
    async with cluster(validating=[slow]) as running:
        answered = await _validated(running, _review(CONFIGMAPS, "CREATE", _object(CONFIGMAPS, "cm"), timeout=12))
        if expected:
            assert answered.fails_with(expected)
        else:
            assert _denial(answered) is None


async def test_mutate_everything_except_skip_me(cluster, hook):
    """A matchCondition decides whether the webhook is called."""
    condition = {"name": "skip-me", "expression": "object.metadata.name != 'skip-me'"}
    stage = hook(
        "adding-configmap-data-stage-1",
        "/mutating-configmaps",
        _rules(CONFIGMAPS, "CREATE"),
        matchConditions=[condition],
    )
    async with cluster(mutating=[stage]) as running:
        for name, added in (("a-uuid", {"mutation-stage-1": "yes"}), ("skip-me", {})):
            started = _object(CONFIGMAPS, name, data={"mutation-start": "yes"})
            made = await _mutated(running, _review(CONFIGMAPS, "CREATE", started))
            assert made["data"] == {"mutation-start": "yes"} | added
