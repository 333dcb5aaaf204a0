"""Writes ``expected.json``: what the Python samples, which are the specification, answer to the reviews of these tests.

    .venv/bin/python workers/node/tests/expected.py

from the repository's folder. All recorded reviews under several settings, and reviews made for the corners: numbers,
quotes, names that look like indexes, UPDATEs.
"""

import json
from pathlib import Path
from typing import Any

from admission_worker import Allow, Deny, Request, json_text
from admission_worker.errors import InvalidSettingsError
from admission_worker.outcomes import accepted
from admission_worker.projection import document_of
from admission_worker.samples import worker

HERE = Path(__file__).parent
RECORDINGS = HERE.parents[2] / "tests" / "recordings"

SETTINGS: dict[str, list[str]] = {
    "required-labels": [
        '{"labels":{"app":""}}',
        '{"labels":{"team":"a|b","10":"x+","2":"","constructor":""}}',
        r'{"labels":{"app":"(?i)[a-z\\d]+(-[a-z]+)*","b/c":"\\pL\"é"}}',
    ],
    "no-privileged": ["{}", '{"exemptImages":["registry.k8s.io/*","[!a-m]*[0-9]","a?c","[]x]*","[z-a]","[a"]}'],
    "default-labels": ['{"labels":{"team":"a"}}', '{"labels":{"z":"1","10":"2","a":"3","2":"4"}}', '{"labels":{}}'],
    "default-resources": [
        '{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"1Gi"}}',
        '{"requests":{"cpu":0.5,"memory":1000.0,"ephemeral-storage":12345678901234567890},"limits":{"memory":2000.0}}',
    ],
    "image-registry": [
        '{"from":"docker.io","to":"registry.example.com/mirror"}',
        '{"from":"registry.k8s.io","to":"docker.io/a"}',
    ],
    "sidecar": [
        '{"container":{"name":"proxy","image":"i","args":["é\\"",1.0,9007199254740993,{"2":1,"b":0,"1":0}]}}',
        '{"container":{"name":"c","image":"i","restartPolicy":"Always"},"annotation":"a"}',
    ],
}

WRONG: dict[str, list[str]] = {
    "required-labels": ['{"labels":{"-a":"(","b/c/d":"(?=x)","10":"\\\\1","a":"[","é":"a{2,1}"}}'],
    "no-privileged": [],
    "default-labels": ['{"labels":{"-a":"b c","10":"-","a":"ok","x/y":"é\\""}}'],
    "default-resources": [
        '{"requests":{"cpu":"much","memory":-1.5},"limits":{"cpu":"-1"}}',
        '{"requests":{"cpu":2.0,"memory":"1Gi"},"limits":{"cpu":"1999m","memory":1000.0}}',
    ],
    "image-registry": [
        '{"from":"docker","to":"a b"}',
        '{"from":"index.docker.io","to":"docker.io"}',
        '{"from":"registry.example.com/a","to":"registry.example.com"}',
    ],
    "sidecar": ['{"container":{"image":7,"restartPolicy":"Never"}}', '{"container":{"name":"","image":""}}'],
}

POD = '{"group":"","version":"v1","kind":"Pod"}'

IMAGES = [
    "nginx",
    "nginx:1.27",
    "user/app",
    "index.docker.io/a/b",
    "docker.io/a:5000",
    "localhost/a",
    "a.b:5/c@sha256:0",
]
IMAGES += ["registry.k8s.io/pause:3", "registry.k8s.io:443/x", "Up/case", "abc", "x]y", "[a", "zz9", ""]

LABELS = [
    '{"team":"a"}',
    '{"team":"c","2":1.0,"10":"xx"}',
    '{"app":"A-b","b/c":"é"}',
    "[]",
    "null",
    '{"app":{"a":[1e400]}}',
]
LABELS += ['{"team":9007199254740993,"app":true}']

CONTAINERS = [
    '{"name":"a","image":"nginx","securityContext":{"privileged":true}}',
    '{"name":"b \\"q\\"","image":"abc","securityContext":{"privileged":true},"resources":{"limits":{"cpu":"50m"}}}',
    '{"image":"zz9","securityContext":{"privileged":"true"},"resources":{"requests":{"memory":1e12},"limits":null}}',
    '{"name":"proxy","resources":{"limits":{"memory":0.10,"cpu":null},"requests":{"memory":"2Ti"}},"image":7}',
    '{"name":"c","restartPolicy":"Always","resources":{"limits":{"memory":[1.0]},"requests":7},"image":"x]y"}',
    '{"name":"d","image":"[a","resources":{"requests":{"cpu":"1e400","memory":"1Ki"},"limits":{"memory":"1.5m"}}}',
    "7",
]


def _made() -> list[str]:
    """The made reviews, as JSON text."""
    labelled = ('"operation":"CREATE"', '"operation":"UPDATE","subResource":"status"', '"operation":"DELETE"')
    found = [
        f'{{{rest},"kind":{POD},"object":{{"metadata":{{"labels":{labels}}}}}}}'
        for labels in LABELS
        for rest in labelled
    ]
    found += [f'{{"operation":"CREATE","kind":{POD},"object":{whole}}}' for whole in ("null", "{}", '{"metadata":7}')]
    for image in IMAGES:
        container = json.dumps({"name": "n", "image": image, "securityContext": {"privileged": True}})
        found.append(f'{{"operation":"CREATE","kind":{POD},"object":{{"spec":{{"containers":[{container}]}}}}}}')
    now = ",".join(CONTAINERS)
    spec = f'{{"containers":[{now}],"initContainers":[{CONTAINERS[4]}]}}'
    old = f'{{"containers":[{",".join(reversed(CONTAINERS[:4]))}]}}'
    deployment = '{"group":"apps","version":"v1","kind":"Deployment"}'
    for operation in ("CREATE", "UPDATE"):
        whole, before = f'"object":{{"spec":{spec}}}', f'"oldObject":{{"spec":{old}}}'
        found.append(f'{{"operation":"{operation}","kind":{POD},{whole},{before}}}')
        whole, before = f'"object":{{"spec":{{"template":{{"spec":{spec}}}}}}}', '"oldObject":{"spec":{}}'
        found.append(f'{{"operation":"{operation}","kind":{deployment},{whole},{before}}}')
    for annotations in (
        '{"kubernetes.io/config.mirror":""}',
        '{"a":"false"}',
        '{"sidecar.admission-gateway.dev/inject":"false"}',
    ):
        found.append(
            f'{{"operation":"CREATE","kind":{POD},"object":{{"metadata":{{"annotations":{annotations}}},"spec":{{}}}}}}'
        )
    return found


def _answer(policy: str, request: str, settings: str) -> dict[str, Any] | None:
    """An answer in JSON; None is a plain allow."""
    answer = _put(policy, request, settings)
    if isinstance(answer, Deny):
        causes = [[cause.field, cause.message, cause.reason] for cause in answer.causes]
        return {"deny": answer.message, "code": answer.code, "reason": answer.reason, "causes": causes}
    assert isinstance(answer, Allow), answer
    found: dict[str, Any] = {"warnings": list(answer.warnings)} if answer.warnings else {}
    if answer.change is not None and answer.change.content != b"[]":
        found["patch"] = answer.change.content.decode()
    return found or None


def _put(policy: str, request: str, settings: str) -> Any:
    """Call a policy with what it claims of a request, every number as it was written."""
    held = worker.policies[policy]
    whole = json_text.decoder().decode(request.encode())
    document = json_text.encoded(document_of(whole.get("request", whole), held.inputs))
    converted, _ = held.settings.read(settings.encode())
    return accepted(held.function(*held.arguments(Request(document), converted)), held.phase)


def _findings(policy: str, settings: str) -> list[list[str]]:
    """What ValidateSettings finds wrong."""
    try:
        worker.policies[policy].settings.read(settings.encode())
    except InvalidSettingsError as error:
        return [[one.pointer, one.message] for one in error.errors]
    return []


def main() -> None:
    """Write the file."""
    recorded = {path.stem: json.loads(path.read_text())["body"] for path in sorted(RECORDINGS.glob("*.json"))}
    requests = {name: body for name, body in recorded.items() if "request" in json.loads(body)}
    made = _made()
    answers = []
    for policy, variants in SETTINGS.items():
        for settings in variants:
            by_name = {name: _answer(policy, body, settings) for name, body in requests.items()}
            answers.append(
                {
                    "policy": policy,
                    "settings": settings,
                    "recorded": {name: answer for name, answer in by_name.items() if answer is not None},
                    "made": [_answer(policy, request, settings) for request in made],
                }
            )
    wrong = [
        {"policy": policy, "settings": settings, "errors": _findings(policy, settings)}
        for policy, variants in WRONG.items()
        for settings in variants
    ]
    right = [[policy, settings, _findings(policy, settings)] for policy in SETTINGS for settings in SETTINGS[policy]]
    assert not any(errors for _, _, errors in right), right
    content = {"recordings": sorted(requests), "made": made, "answers": answers, "wrong": wrong}
    (HERE / "expected.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
