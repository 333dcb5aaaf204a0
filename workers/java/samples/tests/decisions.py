"""Writes what the Python samples decide, which is what the Java samples must decide: `make decisions`.

Every recorded request, and some that no recording has, with several settings for each policy. What is allowed without
more is listed by name only.
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from admission_worker import Allow, Answer, Deny, InvalidSettingsError
from admission_worker.samples import worker
from admission_worker.testing import review

REPOSITORY = Path(__file__).parents[4]

SETTINGS = {
    "required-labels": [
        {"labels": {"app": ""}},
        {"labels": {"team": "", "tier": "front|back", "app": "[a-z]+", "a/b": "(?i)x.*"}},
        {"labels": {"team": "("}},
        {"labels": {"a/b/c": "", "-": "", "x": "(?=a)", "y": r"(a)\1"}},
    ],
    "no-privileged": [{}, {"exemptImages": ["registry.example.com/agents/*", "busybox:[0-9]*", "[!a-z]*"]}],
    "default-labels": [
        {"labels": {"team": "a"}},
        {"labels": {"z": "1", "example.com/team": "b", "app": "", "a": "2"}},
        {"labels": {}},
        {"labels": {"a b": "ä"}},
    ],
    "default-resources": [
        {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
        {
            "limits": {"memory": 1000000, "cpu": 0.5},
            "requests": {"memory": "64k", "ephemeral-storage": "1Gi", "cpu": 0.25},
        },
        {"requests": {"memory": "2Gi", "cpu": "1n"}, "limits": {"cpu": "10"}},
        {"requests": {"cpu": "1x", "memory": "-1"}, "limits": {"cpu": "1e", "memory": "."}},
        {"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}},
        {},
    ],
    "image-registry": [
        {"from": "docker.io", "to": "registry.example.com/mirror"},
        {"from": "registry.k8s.io", "to": "mirror.example.com:5000"},
        {"from": "docker.io/library", "to": "docker.io/a"},
        {"from": "nowhere", "to": "A"},
        {"from": "index.docker.io", "to": "docker.io/"},
        {"from": "docker.io/a", "to": "docker.io"},
    ],
    "sidecar": [
        {"container": {"name": "proxy", "image": "registry.example.com/proxy", "n": [1.5, 9007199254740993, "ä\n"]}},
        {"container": {"image": "i", "name": "c", "restartPolicy": "Always"}, "annotation": "inject"},
        {"container": {"name": "", "restartPolicy": "Never"}},
    ],
}

POD = {"group": "", "version": "v1", "kind": "Pod"}


def _pod(spec: Any, old: Any = None, **metadata: Any) -> dict[str, Any]:
    """A request about a Pod; with an old spec an UPDATE."""
    made = {"kind": POD, "operation": "CREATE" if old is None else "UPDATE"}
    made["object"] = {"metadata": {"name": "n"} | metadata, "spec": spec}
    return made if old is None else made | {"oldObject": {"metadata": {"name": "n"}, "spec": old}}


def _container(name: str, image: str = "nginx", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": image} | more


PRIVILEGED = {"securityContext": {"privileged": True}}

OTHERS = {
    "odd labels": _pod({}, labels={"app": 'A"b\\c\u001fä\u007f', "team": 5, "tier": "front\n", "a/b": 1.0}),
    "labels of another kind": {"kind": POD, "operation": "CREATE", "object": {"metadata": {"labels": []}}},
    "metadata of another kind": {"kind": POD, "operation": "CREATE", "object": {"metadata": "m"}},
    "empty object": {"kind": POD, "operation": "UPDATE", "object": {}, "oldObject": None},
    "a subresource": _pod({"containers": [_container("a", **PRIVILEGED)]}) | {"subResource": "status"},
    "privileged": _pod(
        {
            "initContainers": [_container("i", "registry.example.com/agents/a/b", **PRIVILEGED)],
            "containers": [_container('q"u', "busybox:1", **PRIVILEGED), _container("x", "Xä", **PRIVILEGED), 5, {}],
            "ephemeralContainers": [PRIVILEGED | {"name": 7, "image": None}],
        }
    ),
    "privileged before": _pod(
        {"containers": [_container("a", **PRIVILEGED), _container("b", "new", **PRIVILEGED)]},
        {"containers": [_container("a", **PRIVILEGED), _container("b", "old", **PRIVILEGED)]},
    ),
    "resources": _pod(
        {
            "initContainers": [_container("i", resources={"requests": {"cpu": "2"}, "limits": None})],
            "containers": [
                _container("a", resources={"limits": {"cpu": "50m", "memory": 1000.5}}),
                _container("b", resources={"requests": {"memory": "2Gi", "cpu": True}}),
                _container("c", resources={"limits": {"cpu": None, "memory": "1e3k"}}),
                _container("d", resources=[]),
                _container("e", resources=None),
            ],
        }
    ),
    "resources of the Pod": _pod({"resources": {"limits": {"cpu": "1"}}, "containers": [_container("a")]}),
    "resources as before": _pod(
        {"containers": [_container("a", resources={}), _container("b", resources={"limits": {"cpu": 1}})]},
        {"containers": [_container("a"), _container("b", resources={"limits": {"cpu": 1.0}})]},
    ),
    "images": _pod(
        {
            "containers": [
                _container(str(index), image)
                for index, image in enumerate(
                    [
                        "nginx:1",
                        "user/app@sha256:a",
                        "docker.io/nginx",
                        "index.docker.io/a/b",
                        "localhost/a",
                        "Registry/a",
                        "registry.k8s.io/pause:3.9",
                        "registry.k8s.io:443/pause",
                        "docker.io/library/x",
                        "docker.io/a/x",
                        "registry.example.com/mirror/x",
                        "",
                    ]
                )
            ]
        }
    ),
    "a sidecar's name": _pod(
        {"containers": [_container("a")], "initContainers": [_container("proxy"), _container("c")]}
    ),
    "a sidecar is there": _pod({"containers": [_container("proxy")], "initContainers": []}),
    "opted out": _pod({"containers": []}, annotations={"inject": "false", "kubernetes.io/config.mirror": "x"}),
    "no containers": _pod({}),
    "a kind without a name": {"kind": {}, "operation": "CREATE", "object": {}},
}


def decision(policy: str, request: Any, settings: Any) -> dict[str, Any] | None:
    """What a policy decides, as the Java test reads it; None: it allows, and nothing else."""
    answer: Answer = review(worker, policy, request, settings)
    if isinstance(answer, Allow):
        made: dict[str, Any] = {"warnings": list(answer.warnings)} if answer.warnings else {}
        if answer.change is not None and answer.change.content != b"[]":
            made["patch"] = answer.change.content.decode()
        return made or None
    assert isinstance(answer, Deny)
    causes = [[cause.field, cause.message, cause.reason] for cause in answer.causes]
    return {"deny": answer.message, "code": answer.code, "reason": answer.reason, "causes": causes}


def requests() -> dict[str, Any]:
    """The recorded requests by their files' names."""
    found = {}
    for path in sorted((REPOSITORY / "tests" / "recordings").glob("*.json")):
        body = json.loads(json.loads(path.read_text())["body"])
        if "request" in body:
            found[path.stem] = body["request"]
    return found


def judged(policy: str, settings: Any) -> dict[str, Any]:
    """All decisions of a policy with these settings, or what is wrong with them."""
    made: dict[str, Any] = {"policy": policy, "settings": settings}
    try:
        worker.policies[policy].settings.read(msgspec.json.encode(settings))
    except InvalidSettingsError as error:
        return made | {"errors": [[one.pointer, one.message] for one in error.errors]}
    decisions = {name: decision(policy, request, settings) for name, request in (requests() | OTHERS).items()}
    made["allowed"] = [name for name, decided in decisions.items() if decided is None]
    made["decided"] = {name: decided for name, decided in decisions.items() if decided is not None}
    return made


if __name__ == "__main__":
    cases = [judged(policy, settings) for policy, several in SETTINGS.items() for settings in several]
    sys.stdout.write(json.dumps({"requests": OTHERS, "cases": cases}, ensure_ascii=False, indent=1) + "\n")
