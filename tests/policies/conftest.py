"""A configuration that is right, to be made wrong in one place at a time."""

import copy
import json

import pytest

from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText

GROUP = "admission-gateway.dev/v1alpha1"

POLICY = {
    "name": "labels.team-a.example.com",
    "worker": "labels",
    "rules": [{"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}],
    "sideEffects": "None",
}
WORKER = {
    "apiVersion": GROUP,
    "kind": "Worker",
    "metadata": {"name": "labels"},
    "spec": {"grpc": {"target": "dns:///labels.policies.svc:50051", "tls": {}}},
}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod", "labels": {"tier": "gold"}}}


def _edited(base, changes):
    """A copy in which the members at dotted paths are set, or taken away where the new value is ``...``."""
    base = copy.deepcopy(base)
    for path, value in changes.items():
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        owner = base
        for step in steps:
            owner = owner[step]
        if value is ...:
            del owner[last]
        else:
            owner[last] = value
    return base


@pytest.fixture
def worker():
    """The Worker document, with changes."""
    return lambda changes=None: _edited(WORKER, changes or {})


@pytest.fixture
def policy():
    """A policy entry, with changes."""
    return lambda changes=None: _edited(POLICY, changes or {})


@pytest.fixture
def namespace():
    """The Namespace document, with changes."""
    return lambda changes=None: _edited(NAMESPACE, changes or {})


@pytest.fixture
def configuration():
    """A configuration document with these policies."""
    return lambda *policies, phase="Mutating", name="team-a": {
        "apiVersion": GROUP,
        "kind": f"{phase}PolicyConfiguration",
        "metadata": {"name": name},
        "policies": list(policies),
    }


@pytest.fixture
def load_documents():
    """Loads documents, each from a JSON file of its own named 0.json, 1.json and so on."""

    def load_all(*documents):
        contents = [json.dumps(document).encode() for document in documents]
        return load([SourceText(name=f"{i}.json", content=content) for i, content in enumerate(contents)])

    return load_all


@pytest.fixture
def load_text():
    """Loads one text."""

    def load_one(text, name="policies.yaml"):
        content = text if isinstance(text, bytes) else text.encode()
        return load([SourceText(name=name, content=content, directory="/etc/policies")])

    return load_one


@pytest.fixture
def errors():
    """``PATH: MESSAGE`` of each error."""
    return lambda configuration: [f"{error.place.path}: {error.message}" for error in configuration.errors]


@pytest.fixture
def one_policy(load_documents, worker, policy, configuration):
    """Loads one changed policy beside its Worker; the policy as it was read, and the configuration."""

    def load_policy(changes=None, phase="Mutating"):
        loaded = load_documents(worker(), configuration(policy(changes), phase=phase))
        (read,) = loaded.mutating + loaded.validating
        return read, loaded

    return load_policy
