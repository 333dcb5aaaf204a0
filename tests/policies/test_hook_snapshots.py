"""The objects of hooks' snapshots among the documents: complete, unique, limited; or rejected."""

import json

import pytest

from gateway.policies import hook_snapshots
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": {"b": 1, "a": [2.5]}}


def hook(name="hook", *kinds):
    target = {"path": "hook.sh", "snapshotsOf": [{"apiVersion": version, "kind": kind} for version, kind in kinds]}
    api = "admission-gateway.dev/v1alpha1"
    return {"apiVersion": api, "kind": "Worker", "metadata": {"name": name}, "spec": {"hook": target}}


def named(name, **metadata):
    return POD | {"metadata": {"name": name, **metadata}}


def test_objects_are_assigned_to_the_hooks_that_need_them(load_documents):
    """In a canonical form."""
    loaded = load_documents(hook("one", ("v1", "Pod")), POD, hook("two", ("v1", "Node"), ("v1", "Pod")), hook("three"))
    assert loaded.errors == ()
    canonical = json.dumps(POD, sort_keys=True, separators=(",", ":")).encode()
    assert {name: worker.hook.objects for name, worker in loaded.workers.items()} == {
        "one": (canonical,),
        "two": (canonical,),
        "three": (),
    }


def test_order_and_files_do_not_matter(load_documents):
    """Equal objects are equal bytes."""
    one = load_documents(hook("h", ("v1", "Pod")), named("a"), named("b"))
    other = load_documents(
        {"apiVersion": "v1", "kind": "List", "items": [named("b"), named("a")]}, hook("h", ("v1", "Pod"))
    )
    assert one.workers["h"].hook == other.workers["h"].hook


@pytest.mark.parametrize("kind", ["pod", "Pods", "pods", "POD"])
def test_kinds_are_named_as_in_shell_operator(load_documents, kind):
    """In any letter case, by their plural, without a version."""
    (worker,) = load_documents(hook("h", ("", kind)), POD).workers.values()
    assert len(worker.hook.objects) == 1


def test_another_version_is_another_kind(load_documents):
    """Unless the version is omitted."""
    loaded = load_documents(hook("h", ("v2", "Pod")), POD)
    assert loaded.fatal


def test_an_object_that_no_hook_needs_is_rejected(load_documents):
    """It would have no effect."""
    loaded = load_documents(hook("h", ("v1", "Node")), POD)
    assert 'no matches for kind "Pod" in version "v1"' in str(loaded.errors[0])
    assert loaded.fatal


def test_namespaces_have_two_uses(load_documents, namespace):
    """Labels for selectors, and objects of snapshots."""
    loaded = load_documents(hook("h", ("v1", "Namespace")), namespace())
    assert loaded.namespaces["prod"]["tier"] == "gold"
    assert len(loaded.workers["h"].hook.objects) == 1


@pytest.mark.parametrize(
    ("objects", "path"),
    [
        ([POD, POD], "metadata.name"),
        ([POD | {"metadata": {}}], "metadata.name"),
        ([POD | {"metadata": {"name": 1}}], "metadata.name"),
        ([{"apiVersion": "v1", "kind": "Pod"}], "metadata.name"),
    ],
)
def test_ambiguous_objects_are_fatal(load_documents, objects, path):
    """Equal names, or no name."""
    loaded = load_documents(hook("h", ("v1", "Pod")), *objects)
    assert [error.place.path for error in loaded.errors] == [path]
    assert loaded.fatal


def test_the_same_name_elsewhere_is_another_object(load_documents):
    """In another namespace, or of another kind."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "p"}}
    loaded = load_documents(hook("h", ("v1", "Pod"), ("v1", "Node")), POD, named("p", namespace="m"), node)
    assert loaded.errors == ()
    assert len(loaded.workers["h"].hook.objects) == 3


def test_values_that_json_does_not_have_are_rejected():
    """With their path."""
    pod = b"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {x: .nan}\n"
    worker = json.dumps(hook("h", ("v1", "Pod"))).encode()
    loaded = load([SourceText(name="a.json", content=worker), SourceText(name="b.yaml", content=pod)])
    assert [error.place.path for error in loaded.errors] == ["spec.x"]


def test_the_size_of_objects_is_limited(load_documents, monkeypatch):
    """Of one hook's objects together; the first that exceeds it is reported, once."""
    monkeypatch.setattr(hook_snapshots, "MAX_SNAPSHOT_BYTES", 250)
    loaded = load_documents(hook("h", ("v1", "Pod")), *(named(f"p{number}") for number in range(9)))
    assert [error.message[:9] for error in loaded.errors] == ["Too large"]
    assert loaded.fatal


@pytest.mark.parametrize(
    ("kinds", "path"),
    [
        ({}, "spec.hook.snapshotsOf"),
        ([1], "spec.hook.snapshotsOf[0]"),
        ([{"apiVersion": "v1"}], "spec.hook.snapshotsOf[0].kind"),
        ([{"kind": "Pod", "name": "a"}], "spec.hook.snapshotsOf[0].name"),
        ([{"kind": "Pod"}] * 65, "spec.hook.snapshotsOf"),
    ],
)
def test_validation_of_kinds(load_documents, errors, kinds, path):
    """Each error has its path; the Worker is omitted."""
    document = hook("h")
    document["spec"]["hook"]["snapshotsOf"] = kinds
    loaded = load_documents(document)
    assert [error.split(": ")[0] for error in errors(loaded)] == [path]
    assert loaded.workers == {}
