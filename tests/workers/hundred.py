"""A hundred reviews and nine policies, which must decide the same in every language and over every transport.

Recorded requests and variations of them, in both phases; with these settings all six sample policies act.
"""

import json

from tests.integration.client import message, post
from tests.traffic import recordings

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
"""Missing, invalid and valid labels, values that a message quotes, and some that an API server rejects."""

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
"""Lists of a PodSpec, each with three containers from this index on."""

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


def reviews():
    """The reviews, as requests over the wire."""
    recorded = _recorded(40)
    return [*recorded, *_made(COUNT - len(recorded))]


_TIER = {"team": "", "tier": "front|back", "app.kubernetes.io/name": "[a-z]+(\\.[a-z]+)*"}

MUTATING = {
    "labels": ("default-labels", {"labels": {"zone": "z", "team": "unassigned", "a.example.com/b": ""}}),
    "registry": ("image-registry", {"from": "docker.io", "to": "registry.example.com/mirror"}),
    "proxy": ("sidecar", {"container": SIDECAR, "annotation": "sidecar.example.com/inject"}),
    "first": ("sidecar", {"container": {"name": "first", "image": "i", "restartPolicy": "Always"}}),
    "resources": ("default-resources", RESOURCES),
}
"""Policies by name: the sample policy, and its settings."""

VALIDATING = {
    "required": ("required-labels", {"labels": _TIER}),
    "unicode": ("required-labels", {"labels": {"team": "\\pL[\\pL-]*語.*|a"}}),
    "privileged": ("no-privileged", {"exemptImages": ["registry.example.com/agents/*", "agent-[ab]@*"]}),
    "none": ("no-privileged", {}),
}
"""The same, of the validating phase."""


def assert_same(reference, decisions, name):
    """Compare bytes; the message shows the first that differ."""
    differing = [
        f"review {number}:\n  reference: {expected.decode()}\n  {name}: {found.decode()}"
        for number, (expected, found) in enumerate(zip(reference, decisions, strict=True))
        if expected != found
    ]
    assert not differing, "\n".join([f"{len(differing)} of {COUNT} differ", *differing[:5]])
