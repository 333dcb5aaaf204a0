"""``writes``: pointers over the object, not over the request."""

import pytest

from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes


def test_granted(one_policy):
    """Any place of the object may be granted, but for what kind of object it is; nothing is protected then."""
    pointers = ["/metadata/labels", "/spec/*/x", "/metadata/finalizers", "/status", "/object", "/*/labels"]
    policy, loaded = one_policy({"writes": pointers})
    assert not loaded.errors
    assert policy.writes == Writes(granted=PointerSet(tuple(each[1:].split("/")) for each in pointers))


def test_nothing(one_policy):
    """An empty list grants nothing, which is less than no list."""
    assert one_policy({"writes": []})[0].writes == Writes(granted=PointerSet())
    assert one_policy()[0].writes == Writes.DEFAULT


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        (
            "",
            (
                'Invalid value: "": would be the whole object, its kind included; leave writes out for everything that '
                "a policy can be trusted with, or name members"
            ),
        ),
        ("/kind", 'Invalid value: "/kind": what kind of object it is cannot be changed; remove it'),
        ("/apiVersion/a", 'Invalid value: "/apiVersion/a": what kind of object it is cannot be changed; remove it'),
        (
            "/*",
            'Invalid value: "/*": every member of the object includes apiVersion and kind; name the members instead',
        ),
        (
            "metadata",
            (
                'Invalid value: "metadata": must be a JSON Pointer (RFC 6901), which starts with "/", such as '
                '"/metadata/labels"'
            ),
        ),
        ([], 'Invalid value: "array": must be of type string'),
    ],
)
def test_errors(one_policy, errors, pointer, expected):
    """Each error is reported at its element, and with any of them nothing may be changed."""
    policy, loaded = one_policy({"writes": [pointer, "/spec"]})
    assert errors(loaded) == [f"policies[0].writes[0]: {expected}"]
    assert policy.writes == Writes(granted=PointerSet())


@pytest.mark.parametrize(
    ("pointer", "message"),
    [
        (
            "/object/metadata/labels",
            (
                "/object/metadata/labels looks like an input: writes are places in the object itself; if that is what "
                "is meant, write /metadata/labels"
            ),
        ),
        (
            "/object",
            (
                "/object looks like an input: writes are places in the object itself; if that is what is meant, write "
                "its members, such as /metadata/labels"
            ),
        ),
        (
            "/oldObject/spec",
            (
                "/oldObject/spec looks like an input: the old object cannot be changed, and writes are places in the "
                "object itself; if that is what is meant, write /spec"
            ),
        ),
    ],
)
def test_inputs_for_writes(one_policy, pointer, message):
    """A pointer that looks like an input is a warning with the right spelling: some kinds do have such members."""
    policy, loaded = one_policy({"writes": [pointer]})
    assert not loaded.errors
    assert [(each.place.path, each.message) for each in loaded.warnings] == [("policies[0].writes[0]", message)]
    assert policy.writes.granted.covers(tuple(pointer[1:].split("/")))


def test_overlaps(one_policy):
    """Overlaps and duplicates are reported as those of inputs are."""
    _, loaded = one_policy({"writes": ["/spec", "/spec/a", "/spec"]})
    assert [error.message for error in loaded.errors] == ['Duplicate value: "/spec"']
    _, loaded = one_policy({"writes": ["/spec", "/spec/a"]})
    assert [each.message for each in loaded.warnings] == [
        "/spec/a lies in /spec, which is wider and wins; remove one of them"
    ]


@pytest.mark.parametrize("spec", [{"webhook": {"url": "https://hooks.example.com"}}, {"hook": {"path": "/hooks/a.sh"}}])
def test_what_runs_today_keeps_its_rights(load_documents, worker, policy, configuration, spec):
    """A webhook or a hook that moves here may change what it could change before, unless writes say less."""
    moved = {"metadata.name": "moved", "spec": spec}
    entries = policy({"worker": "moved"}), policy({"name": "b.team-a.example.com", "worker": "moved", "writes": []})
    loaded = load_documents(worker(moved), configuration(*entries))
    assert not loaded.errors
    assert loaded.mutating[0].writes == Writes.EVERYTHING
    assert loaded.mutating[1].writes == Writes(granted=PointerSet())
