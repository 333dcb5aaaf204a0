"""The same hundred reviews, the same decisions, whatever language the sample policies are written in.

Through a real gateway: recorded requests and variations of them, in both phases, with settings under which all six
sample policies act. Python's answers are the reference; each other language's are the same, byte for byte.
"""

import base64
import json

import pytest

from tests.integration.client import message, post
from tests.integration.running import policy
from tests.traffic import recordings
from tests.workers.commands import SAMPLES, command, languages
from tests.workers.running import EVERYTHING, Behind, asked

COUNT = 100

POD_KINDS = {
    "Pod": ("", "pods", ("spec",)),
    "PodTemplate": ("", "podtemplates", ("template", "spec")),
    "ReplicationController": ("", "replicationcontrollers", ("spec", "template", "spec")),
    "Deployment": ("apps", "deployments", ("spec", "template", "spec")),
    "CronJob": ("batch", "cronjobs", ("spec", "jobTemplate", "spec", "template", "spec")),
}

LABELS = (
    None,
    {},
    {"team": "a"},
    {"team": 'a "quoted" \\ one', "tier": "front"},
    {"team": "ümläut-語-\U0001f600", "tier": "frontend"},
    {"team": "a<b>&c\u2028\t\u007f", "tier": "back", "app.kubernetes.io/name": "x"},
    {"team": "A", "tier": "back", "app.kubernetes.io/name": "x/y", "more": "1"},
    {"team": 7, "tier": ["front"], "app.kubernetes.io/name": {"a": None}},
)
"""Missing, wrong, right, what is quoted in a message, and what no API server would let pass."""

CONTAINERS = (
    {"name": "plain", "image": "nginx"},
    {"name": "privileged", "image": "nginx:1.27", "securityContext": {"privileged": True}},
    {"name": "exempt", "image": "registry.example.com/agents/net:2", "securityContext": {"privileged": True}},
    {"name": "one-of", "image": "agent-b@sha256:0123", "securityContext": {"privileged": True}},
    {"name": "not-exempt", "image": "agent-c", "securityContext": {"privileged": True}},
    {"name": "hub", "image": "index.docker.io/user/app:latest", "resources": {"limits": {"cpu": "50m"}}},
    {"name": "mirrored", "image": "registry.example.com/mirror/library/nginx", "resources": {"requests": {"cpu": 3}}},
    {"name": "odd", "image": "LOCALHOST/a:b@c", "resources": {"requests": {"memory": "1e3"}, "limits": {"cpu": "x"}}},
    {"name": "full", "image": "ghcr.io/a/b", "resources": {"requests": {"cpu": "0.5", "memory": "1Gi"}, "limits": 0}},
    {"name": 'a "name"', "image": "localhost:5000/a", "resources": {"limits": {"memory": "16Mi", "cpu": 0.05}}},
)

SHAPES = ({"containers": 0}, {"containers": 3, "initContainers": 5}, {"containers": 6, "ephemeralContainers": 1})
"""Lists of a PodSpec, each with three containers from this one on."""

RESOURCES = {"requests": {"memory": "64Mi", "cpu": 0.1}, "limits": {"cpu": 1, "memory": "1.5e9"}}

SIDECAR = {"name": "proxy", "image": "registry.example.com/proxy:1", "args": ["--rate", "1.50"], "x": 1.0, "y": 1e2}


def _spec(shape, turn):
    many = len(CONTAINERS)
    found = {name: [CONTAINERS[(first + turn + step) % many] for step in range(3)] for name, first in shape.items()}
    if turn % 4 == 3:
        found["initContainers"] = [*found.get("initContainers", ()), {"name": "proxy", "image": "busybox"}]
    return found


def _object(kind, labels, spec):
    group, _, path = POD_KINDS[kind]
    for name in reversed(path):
        spec = {name: spec}
    annotations = {"sidecar.example.com/inject": "false"} if labels == {} else {"other": "1"}
    metadata = {"name": "n", "namespace": "default", "annotations": annotations}
    metadata |= {} if labels is None else {"labels": labels}
    return {"apiVersion": f"{group}/v1".lstrip("/"), "kind": kind, "metadata": metadata, **spec}


def _review(number, kind, operation, whole, old):
    group, resource, _ = POD_KINDS[kind]
    gvk, gvr = {"group": group, "version": "v1", "kind": kind}, {"group": group, "version": "v1", "resource": resource}
    request = {
        "uid": f"00000000-0000-0000-0000-{number:012}",
        "kind": gvk,
        "resource": gvr,
        "requestKind": gvk,
        "requestResource": gvr,
        "name": "n",
        "namespace": "default",
        "operation": operation,
        "userInfo": {"username": "u"},
        "object": whole,
        "oldObject": old,
        "dryRun": False,
        "options": None,
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def _made(count):
    """Reviews of every kind with PodSpecs, in both phases, with all three operations."""
    kinds = list(POD_KINDS)
    for number in range(count):
        kind, shape = kinds[number // 2 % len(kinds)], SHAPES[number // 2 % len(SHAPES)]
        whole = _object(kind, LABELS[number // 2 % len(LABELS)], _spec(shape, number // 6))
        old = _object(kind, {"team": "a"}, _spec(shape, number // 6 + number % 3))
        operation = ("CREATE", "UPDATE", "CREATE", "DELETE")[number // 2 % 4]
        objects = {"CREATE": (whole, None), "UPDATE": (whole, old), "DELETE": (None, old)}[operation]
        body = json.dumps(_review(number, kind, operation, *objects), ensure_ascii=False).encode()
        yield post(body, f"/{('mutate', 'validate')[number % 2]}?timeout=10s")


def _recorded(count):
    """Recorded requests: those about kinds with a PodSpec first, then others in order of name."""
    about = ("pod", "deploy", "kubectl")
    found = sorted(recordings(), key=lambda each: (not each.name.startswith(about), each.name))
    return [message(each).replace(b"timeout=1s", b"timeout=9s") for each in found[:count]]


def _reviews():
    recorded = _recorded(40)
    return [*recorded, *_made(COUNT - len(recorded))]


def _policy(name, of, settings):
    return policy(name, worker="judge", policy=of, rules=EVERYTHING, settings=settings, timeoutSeconds=10)


def _behind(argv):
    tier = {"team": "", "tier": "front|back", "app.kubernetes.io/name": "[a-z]+(\\.[a-z]+)*"}
    return Behind(
        argv=argv,
        mutating=[
            _policy("labels", "default-labels", {"labels": {"zone": "z", "team": "unassigned", "a.example.com/b": ""}}),
            _policy("registry", "image-registry", {"from": "docker.io", "to": "registry.example.com/mirror"}),
            _policy("proxy", "sidecar", {"container": SIDECAR, "annotation": "sidecar.example.com/inject"}),
            _policy("first", "sidecar", {"container": {"name": "first", "image": "i", "restartPolicy": "Always"}}),
            _policy("resources", "default-resources", RESOURCES),
        ],
        validating=[
            _policy("required", "required-labels", {"labels": tier}),
            _policy("unicode", "required-labels", {"labels": {"team": "\\pL[\\pL-]*語.*|a"}}),
            _policy("privileged", "no-privileged", {"exemptImages": ["registry.example.com/agents/*", "agent-[ab]@*"]}),
            _policy("none", "no-privileged", {}),
        ],
    )


def _decisions(language, serving, trust, folder):
    """What the API server is told in each review, in bytes."""
    answers = asked(serving, trust, folder, _behind(command(SAMPLES, language)), _reviews())
    assert {answered.status for answered in answers} == {200}
    return [answered.body for answered in answers]


@pytest.fixture(scope="module")
def reference(serving, trust, tmp_path_factory):
    """Python's decisions."""
    return _decisions("python", serving, trust, tmp_path_factory.mktemp("reference"))


@pytest.mark.parametrize("language", languages(SAMPLES))
def test_a_language_decides_the_same(language, reference, serving, trust, tmp_path):
    """Allowed, status with its causes, patch, warnings, audit annotations: byte for byte. Python's own again, too."""
    decisions = _decisions(language, serving, trust, tmp_path)
    differing = [
        f"review {number}:\n  python: {expected.decode()}\n  {language}: {found.decode()}"
        for number, (expected, found) in enumerate(zip(reference, decisions, strict=True))
        if expected != found
    ]
    assert not differing, "\n".join([f"{len(differing)} of {COUNT} differ", *differing[:5]])


def test_the_reviews_make_every_policy_act(reference):
    """There are a hundred, no policy fails, and each denies, changes or warns in some of them."""
    responses = [json.loads(body)["response"] for body in reference]
    assert len(responses) == COUNT
    assert not [each for each in responses if "WORKER_FAILURE" in json.dumps(each)]
    denials = [each["status"] for each in responses if not each["allowed"]]
    changes = [json.loads(base64.b64decode(each["patch"])) for each in responses if "patch" in each]
    warnings = [text for each in responses for text in each.get("warnings", ())]
    lines = [line for status in denials for line in status["message"].splitlines()]
    for name in ("required", "unicode", "privileged", "none"):
        assert [line for line in lines if line.startswith(f"{name}.test.example.com: ")], name
    for name in ("labels", "registry", "proxy", "first", "resources"):
        annotation = f"{name}.test.example.com_changed"
        assert [each for each in responses if annotation in each.get("auditAnnotations", {})], name
    assert len(denials) >= 20
    assert len(changes) >= 20
    assert [status for status in denials if len(status["details"]["causes"]) > 2]
    assert [text for text in warnings if "exceeds its limit" in text]
    assert [text for text in warnings if 'sidecar "proxy" is not added' in text]
