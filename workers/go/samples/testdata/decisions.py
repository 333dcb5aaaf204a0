# ruff: noqa: INP001 - a script of its own, in a folder of another language
"""Makes decisions.json: what the Python sample decides, which is the specification.

About every recorded request, and about what records lack. From the repository's root, where the Python SDK is
installed: ``python workers/go/samples/testdata/decisions.py``
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from admission_worker import Allow, Failure, InvalidSettingsError
from admission_worker.samples import worker
from admission_worker.testing import review

HERE = Path(__file__).parent
RECORDINGS = HERE.parents[3] / "tests" / "recordings"

SETTINGS: Final[dict[str, list[dict[str, Any]]]] = {
    "required-labels": [{"labels": {"app": ""}}, {"labels": {"team": "a|b", "app": "(?i)[A-Z]+", "ü/x": ""}}],
    "no-privileged": [{}, {"exemptImages": ["registry.example.com/agents/*", "[!a-m]*", "bus?box"]}],
    "default-labels": [{"labels": {"team": "a"}}, {"labels": {"z": "", "app": "x", "example.com/a": "b"}}],
    "default-resources": [
        {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
        {
            "limits": {"memory": 1000, "cpu": 0.5},
            "requests": {"memory": "64Mi", "ephemeral-storage": "1e3", "cpu": "250m"},
        },
    ],
    "image-registry": [
        {"from": "docker.io", "to": "registry.example.com/mirror"},
        {"from": "registry.k8s.io", "to": "docker.io/a"},
    ],
    "sidecar": [
        {"container": {"name": "proxy", "image": "registry.example.com/proxy", "z": 1.0, "a": [1e2]}},
        {"container": {"image": "i", "restartPolicy": "Always", "name": "init"}, "annotation": "x"},
    ],
}
"""Settings with which each policy is asked; some are wrong, and say so."""

CONTAINERS: Final[list[Any]] = [
    {"name": "a", "image": "nginx", "securityContext": {"privileged": True}},
    {
        "name": "b",
        "image": "user/app:1@sha256:00",
        "securityContext": {"privileged": True},
        "resources": {"limits": {"cpu": "100m"}},
    },
    {
        "name": "c",
        "image": "registry.example.com/agents/x",
        "securityContext": {"privileged": True},
        "resources": {"requests": {"memory": "2Gi", "cpu": 2}},
    },
    {
        "name": "d",
        "image": "busybox",
        "securityContext": {"privileged": True},
        "resources": {"requests": None, "limits": {"cpu": None}},
    },
    {
        "name": 'e\n"ü',
        "image": "localhost/a",
        "securityContext": {"privileged": True},
        "resources": {"limits": {"memory": "x", "cpu": True}},
    },
    {"name": "f", "image": "index.docker.io/a", "securityContext": {"privileged": 1}, "resources": []},
    {"name": "g", "image": "registry.k8s.io/pause:3.10", "securityContext": []},
    {"name": "h", "image": "registry.example.com/mirror/library/nginx"},
    {"name": "proxy", "image": 7},
    {"image": "registry.example.com/mirrored"},
    "no container",
    None,
]

POD = {"group": "", "version": "v1", "kind": "Pod"}
KINDS = [
    POD,
    {"group": "", "version": "v1", "kind": "PodTemplate"},
    {"group": "apps", "version": "v1", "kind": "Deployment"},
    {"group": "batch", "version": "v1", "kind": "CronJob"},
    {"group": "example.com", "version": "v1", "kind": "Pod"},
]


def whole(kind: dict[str, str], spec: Any, metadata: Any) -> dict[str, Any]:
    """An object of a kind, around a PodSpec."""
    match kind["kind"]:
        case "Pod":
            below = {"spec": spec}
        case "PodTemplate":
            below = {"template": {"spec": spec}}
        case "CronJob":
            below = {"spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}}
        case _:
            below = {"spec": {"template": {"spec": spec}}}
    return {"metadata": metadata} | below


def made() -> Iterator[tuple[str, dict[str, Any]]]:
    """Requests that were not recorded, by name."""
    spec: Any = {"containers": CONTAINERS, "initContainers": CONTAINERS[:2], "ephemeralContainers": CONTAINERS[:1]}
    for kind in KINDS:
        name = f"{kind['group']}-{kind['kind']}"
        create = {
            "operation": "CREATE",
            "kind": kind,
            "object": whole(kind, spec, {"labels": {"app": "x", "team": "c"}}),
        }
        yield f"create{name}", create
        old = whole(kind, {"containers": CONTAINERS[:3]}, {})
        yield f"update{name}", create | {"operation": "UPDATE", "oldObject": old}
        yield f"delete{name}", {"operation": "DELETE", "kind": kind, "object": None, "oldObject": old}
    pod: dict[str, Any] = {"operation": "CREATE", "kind": POD}
    for number, metadata in enumerate(
        [
            None,
            [],
            {},
            {"labels": None},
            {"labels": []},
            {"labels": {}},
            {"labels": {"app": 1, "team": "b"}},
            {"labels": {"app": {"b": 1, "a": [None]}, "team": "ab", "z": "a\u2028\u0007<"}},
            {"annotations": {"sidecar.admission-gateway.dev/inject": "false", "x": "true"}},
            {"annotations": {"kubernetes.io/config.mirror": ""}},
            {"annotations": {"x": "false"}},
        ]
    ):
        yield f"metadata-{number}", pod | {"object": {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}}}
    for number, spec in enumerate(
        [
            None,
            [],
            {},
            {"containers": None},
            {"containers": []},
            {"containers": {}},
            {"initContainers": []},
            {"initContainers": [{"name": "proxy"}]},
            {"initContainers": [{"name": "proxy", "restartPolicy": "Always"}]},
            {"containers": [{"name": "init"}]},
            {"containers": [{"name": "c"}], "resources": {"limits": {"cpu": 1}}},
            {"containers": [{"name": "c"}], "resources": {}},
        ]
    ):
        yield f"spec-{number}", pod | {"object": {"metadata": {}, "spec": spec}}
    yield "scale", pod | {"subResource": "scale", "object": {"metadata": {}, "spec": {"containers": [{"name": "c"}]}}}
    yield (
        "ephemeral",
        pod
        | {
            "operation": "UPDATE",
            "subResource": "ephemeralcontainers",
            "object": whole(POD, {"ephemeralContainers": CONTAINERS}, {}),
        },
    )
    yield (
        "connect",
        {"operation": "CONNECT", "kind": POD, "object": {"metadata": {}, "spec": {"containers": CONTAINERS}}},
    )
    yield "nothing", {}


WRONG_SETTINGS: Final[dict[str, list[dict[str, Any]]]] = {
    "required-labels": [{"labels": {"-a": "(", "a b/c": "\\1", "ok": "(?=x)", "a/b/c": ""}}],
    "default-labels": [{"labels": {"": "a", "a": "a b", "é": "é"}}],
    "default-resources": [
        {"requests": {"cpu": "1x", "memory": "-1"}, "limits": {"cpu": "", "memory": "1Ki"}},
        {
            "requests": {"cpu": "2", "memory": "1e3", "ephemeral-storage": "9Ei"},
            "limits": {"cpu": "1999m", "memory": ".5k", "ephemeral-storage": "1e999999"},
        },
        {"requests": {"cpu": "1n"}, "limits": {"cpu": "0.1n"}},
        {"requests": {"cpu": 1.5}, "limits": {"cpu": 1}},
    ],
    "image-registry": [
        {"from": "docker", "to": "a b"},
        {"from": "index.docker.io", "to": "docker.io"},
        {"from": "docker.io/a", "to": "docker.io"},
        {"from": "docker.io", "to": "docker.io"},
        {"from": "docker.io/", "to": "x.y/A"},
    ],
    "sidecar": [{"container": {}}, {"container": {"name": "", "image": 1, "restartPolicy": "Never"}}],
}


def answered(policy: str, request: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """What the policy answers, as the test compares it."""
    try:
        answer = review(worker, policy, request, settings)
    except InvalidSettingsError as error:
        return {"settings": [[one.pointer, one.message] for one in error.errors]}
    if isinstance(answer, Failure):
        raise TypeError(answer.message)
    if not isinstance(answer, Allow):
        causes = [[cause.field, cause.message, cause.reason] for cause in answer.causes]
        return {"code": answer.code, "reason": answer.reason, "message": answer.message, "causes": causes}
    operations = [] if answer.change is None else json.loads(answer.change.content)
    return {"patch": operations, "warnings": list(answer.warnings)}


def main() -> None:
    """Write the file: for each request its policies' answers, plain allows left out."""
    requests: dict[str, tuple[dict[str, Any], bool]] = {}
    for path in sorted(RECORDINGS.glob("*.json")):
        body = json.loads(json.loads(path.read_text())["body"])
        if "request" in body:
            requests[path.stem] = (body["request"], True)
    requests |= {name: (request, False) for name, request in made()}
    decisions = []
    for name, (request, recorded) in requests.items():
        answers = []
        for policy, several in SETTINGS.items():
            for number, settings in enumerate(several):
                answer = answered(policy, request, settings)
                if answer != {"patch": [], "warnings": []}:
                    answers.append({"policy": policy, "settings": number, "answer": answer})
        decisions.append({"name": name, "answers": answers} | ({} if recorded else {"request": request}))
    wrong = [
        {"policy": policy, "settings": settings, "answer": answered(policy, {}, settings)}
        for policy, several in WRONG_SETTINGS.items()
        for settings in several
    ]
    text = ",\n".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in decisions)
    lines = [
        f'{{"settings":{json.dumps(SETTINGS, ensure_ascii=False)},',
        f'"wrong":{json.dumps(wrong, ensure_ascii=False)},',
        f'"decisions":[\n{text}\n]}}',
    ]
    (HERE / "decisions.json").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
