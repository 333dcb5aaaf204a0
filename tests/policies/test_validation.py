"""Kubernetes' validation, word for word: what the real code says of 243 changes, recorded in validation.jsonl."""

import json
from pathlib import Path

import pytest

from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText

_, *RECORDED = map(json.loads, Path(__file__).with_name("validation.jsonl").read_bytes().splitlines())
WEBHOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://hooks.example.com/a"},
    "rules": [{"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
OF_WEBHOOKS = ("clientConfig", "admissionReviewVersions")
DECODER = ("unknown field", "duplicate field", "json: ", "illegal base64", "parsing time")


def edited(document, change):
    """The document with the recorded change."""
    document = json.loads(json.dumps(document))
    for path, value in change.items():
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        owner = document
        for step in steps:
            owner = owner[step]
        if value == "<absent>":
            del owner[last]
        else:
            owner[last] = value
    return document


def name_of(case):
    """The change as the case's name."""
    return f"{case['version']} {json.dumps(case['change'])[:80]}"


def said_of(document):
    """What the decoder says and what validation says, each in order."""
    loaded = load([SourceText(name="a.json", content=json.dumps(document).encode())])
    decoding = [error.message for error in loaded.errors if error.message.startswith(DECODER)]
    rest = [error for error in loaded.errors if not error.message.startswith(DECODER)]
    return decoding, [f"{error.place.path}: {error.message}" for error in rest]


@pytest.mark.parametrize("case", RECORDED, ids=name_of)
def test_native(case):
    """A native object gets the API server's errors: the same paths, the same words, the same order, all at once."""
    document = {
        "apiVersion": f"admissionregistration.k8s.io/{case['version']}",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "team-a"},
        "webhooks": [WEBHOOK],
    }
    decoding, errors = said_of(edited(document, case["change"]))
    assert decoding == case.get("decoding", [])
    if "errors" in case:
        assert errors == case["errors"]


def common(case):
    """Whether the case is one of v1 about fields that a policy of ours has in common with a webhook."""
    texts = json.dumps(case)
    return (
        case["version"] == "v1"
        and "decoding" not in case
        and not any(field in texts for field in (*OF_WEBHOOKS, "timeoutSeconds", "null"))
        and isinstance(case["change"].get("webhooks", []), list)
    )


@pytest.mark.parametrize("case", [case for case in RECORDED if common(case)], ids=name_of)
def test_own(case):
    """A policy of ours gets the words of a webhook of v1, at ``policies[0]…``."""
    entry = {name: value for name, value in WEBHOOK.items() if name not in OF_WEBHOOKS}
    document = {
        "apiVersion": "admission-gateway.dev/v1alpha1",
        "kind": "MutatingPolicyConfiguration",
        "metadata": {"name": "team-a"},
        "policies": [entry | {"worker": "w", "policy": "p"}],
    }
    change = {path.replace("webhooks", "policies"): value for path, value in case["change"].items()}
    _, errors = said_of(edited(document, change))
    expected = [error.replace("webhooks[", "policies[") for error in case["errors"]]
    assert [error for error in errors if not error.endswith('.worker: Not found: "w"')] == expected


def test_enough_is_recorded():
    """The table is not empty by accident: it has errors of both stages, and cases that are right."""
    assert sum(len(case.get("errors", ())) for case in RECORDED) > 200
    assert sum("decoding" in case for case in RECORDED) > 50
    assert sum(case.get("errors") == [] and "decoding" not in case for case in RECORDED) > 10
    assert sum(map(common, RECORDED)) > 60
