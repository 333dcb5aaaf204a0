"""Objects beside the policies, of which the snapshots of hooks are made: complete, once, bounded; or refused."""

import json

import pytest

from gateway.policies import hook_snapshots
from gateway.policies.configuration import load
from gateway.policies.document import SourceText

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": {"b": 1, "a": [2.5]}}


def hook(name="hook", *kinds):
    target = {"path": "hook.sh", "snapshotsOf": [{"apiVersion": version, "kind": kind} for version, kind in kinds]}
    api = "admission-gateway.dev/v1alpha1"
    return {"apiVersion": api, "kind": "Worker", "metadata": {"name": name}, "spec": {"hook": target}}


def named(name, **metadata):
    return POD | {"metadata": {"name": name, **metadata}}


def test_objects_go_to_those_that_ask_for_them(load_documents):
    """In a canonical form, whatever else the hook asks for."""
    loaded = load_documents(hook("one", ("v1", "Pod")), POD, hook("two", ("v1", "Node"), ("v1", "Pod")), hook("three"))
    assert loaded.errors == ()
    canonical = json.dumps(POD, sort_keys=True, separators=(",", ":")).encode()
    assert {name: worker.hook.objects for name, worker in loaded.workers.items()} == {
        "one": (canonical,),
        "two": (canonical,),
        "three": (),
    }


def test_order_and_files_mean_nothing(load_documents):
    """The same objects are the same bytes."""
    one = load_documents(hook("h", ("v1", "Pod")), named("a"), named("b"))
    other = load_documents(
        {"apiVersion": "v1", "kind": "List", "items": [named("b"), named("a")]}, hook("h", ("v1", "Pod"))
    )
    assert one.workers["h"].hook == other.workers["h"].hook


@pytest.mark.parametrize("kind", ["pod", "Pods", "pods", "POD"])
def test_kinds_are_named_as_shell_operator_takes_them(load_documents, kind):
    """In any case, by their plural, without a version."""
    (worker,) = load_documents(hook("h", ("", kind)), POD).workers.values()
    assert len(worker.hook.objects) == 1


def test_another_version_is_another_kind(load_documents):
    """Unless none is named."""
    loaded = load_documents(hook("h", ("v2", "Pod")), POD)
    assert loaded.fatal


def test_what_nobody_asks_for_is_refused(load_documents):
    """Nobody may believe it to be in force."""
    loaded = load_documents(hook("h", ("v1", "Node")), POD)
    assert 'no matches for kind "Pod" in version "v1"' in str(loaded.errors[0])
    assert loaded.fatal


def test_namespaces_are_both(load_documents, namespace):
    """Labels for selectors, and objects for those hooks that ask for them."""
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
def test_objects_that_leave_open_what_is_there_are_fatal(load_documents, objects, path):
    """Twice the same, or without a name."""
    loaded = load_documents(hook("h", ("v1", "Pod")), *objects)
    assert [error.place.path for error in loaded.errors] == [path]
    assert loaded.fatal


def test_the_same_name_elsewhere_is_another_object(load_documents):
    """In another namespace, or of another kind."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "p"}}
    loaded = load_documents(hook("h", ("v1", "Pod"), ("v1", "Node")), POD, named("p", namespace="m"), node)
    assert loaded.errors == ()
    assert len(loaded.workers["h"].hook.objects) == 3


def test_what_json_cannot_say_is_refused():
    """Where it stands."""
    pod = b"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {x: .nan}\n"
    worker = json.dumps(hook("h", ("v1", "Pod"))).encode()
    loaded = load([SourceText(name="a.json", content=worker), SourceText(name="b.yaml", content=pod)])
    assert [error.place.path for error in loaded.errors] == ["spec.x"]


def test_objects_are_bounded(load_documents, monkeypatch):
    """One hook's together; the first that is too much is told, once."""
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
def test_validation_of_kinds(load_documents, mistakes, kinds, path):
    """Each mistake has its path; the Worker is left out."""
    document = hook("h")
    document["spec"]["hook"]["snapshotsOf"] = kinds
    loaded = load_documents(document)
    assert [mistake.split(": ")[0] for mistake in mistakes(loaded)] == [path]
    assert loaded.workers == {}
