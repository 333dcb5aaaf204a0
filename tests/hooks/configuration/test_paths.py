"""shell-operator's paths: which of them lead to an entry."""

import json

from gateway.hooks.configuration.paths import HookPath, hook_entries
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Phase
from gateway.registration.entries import make_entries

API = "admission-gateway.dev/v1alpha1"
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


def worker(name, **spec):
    return {"apiVersion": API, "kind": "Worker", "metadata": {"name": name}, "spec": spec}


HOOK = worker("hook", hook={"path": "hook.sh"})
GRPC = worker("grpc", grpc={"target": "unix:a.sock", "command": ["a"]})


def policies(phase, *names, worker="hook", **fields):
    common = {"worker": worker, "rules": [RULE], "sideEffects": "None", "isolate": True} | fields
    kind, metadata = f"{phase}PolicyConfiguration", {"name": "hooks"}
    made = [{"name": name} | common for name in names]
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "policies": made}


def paths(*documents):
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}).encode()
    configuration = load([SourceText(name="a.json", content=content)])
    assert configuration.errors == ()
    return dict(hook_entries(configuration, make_entries(configuration)))


def test_each_binding_has_its_path():
    """In its phase, by its id."""
    found = paths(HOOK, policies("Mutating", "a.example.com"), policies("Validating", "b.example.com", "c.example.com"))
    assert found == {
        HookPath("hooks", "a-example-com"): (Phase.MUTATING, "a.example.com"),
        HookPath("hooks", "b-example-com"): (Phase.VALIDATING, "b.example.com"),
        HookPath("hooks", "c-example-com"): (Phase.VALIDATING, "c.example.com"),
    }


def test_only_isolated_policies_of_hooks_have_a_path():
    """Other policies share their entries, or are no hooks."""
    assert paths(HOOK, policies("Mutating", "a.example.com", isolate=False)) == {}
    assert paths(GRPC, policies("Mutating", "a.example.com", worker="grpc")) == {}


def test_an_ambiguous_id_has_no_path():
    """Two names with one id, and one name in both phases."""
    names = ("a.b.example.com", "a-b.example.com", "c.example.com")
    assert list(paths(HOOK, policies("Mutating", *names))) == [HookPath("hooks", "c-example-com")]
    assert paths(HOOK, policies("Mutating", "a.example.com"), policies("Validating", "a.example.com")) == {}


def test_a_policy_without_rules_has_no_path():
    """It is never called."""
    assert paths(HOOK, policies("Mutating", "a.example.com", rules=[])) == {}
