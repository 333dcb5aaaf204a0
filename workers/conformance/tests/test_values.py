"""Patches, differences, projections, schemas, files of calls."""

import pytest

from worker_conformance import calls_file
from worker_conformance.claims import differences, projected
from worker_conformance.command import SAMPLES
from worker_conformance.expectations import Denied, Expected, of_outcome, same
from worker_conformance.findings import StartError
from worker_conformance.patches import PatchError, changed
from worker_conformance.pointers import tokens
from worker_conformance.policy_calls import MUTATING, text
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.schemas import errors

OBJECT = {"a": {"b": [1, 2, 3]}, "c/d": None}


def patched(*operations):
    return changed(OBJECT, worker_pb2.Allow(json_patch=text(list(operations))))


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "add", "path": "/a/b/-", "value": 4}, {"a": {"b": [1, 2, 3, 4]}, "c/d": None}),
        ({"op": "add", "path": "/a/b/0", "value": 0}, {"a": {"b": [0, 1, 2, 3]}, "c/d": None}),
        ({"op": "remove", "path": "/c~1d"}, {"a": {"b": [1, 2, 3]}}),
        ({"op": "replace", "path": "/a/b/1", "value": 9}, {"a": {"b": [1, 9, 3]}, "c/d": None}),
        ({"op": "move", "from": "/a/b/0", "path": "/e"}, {"a": {"b": [2, 3]}, "c/d": None, "e": 1}),
        ({"op": "copy", "from": "/a/b", "path": "/e"}, {"a": {"b": [1, 2, 3]}, "c/d": None, "e": [1, 2, 3]}),
        ({"op": "test", "path": "/a/b/0", "value": 1.0}, OBJECT),
    ],
)
def test_patches_apply_as_rfc_6902_says(operation, result):
    """Each operation does what RFC 6902 says, and does not modify its input."""
    before = {"a": {"b": [1, 2, 3]}, "c/d": None}
    assert patched(operation) == result
    assert before == OBJECT


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/a/b/4", "value": 1},
        {"op": "add", "path": "/a/b/01", "value": 1},
        {"op": "add", "path": "/a"},
        {"op": "remove", "path": "/x"},
        {"op": "remove", "path": "/a/b/-"},
        {"op": "replace", "path": "/x", "value": 1},
        {"op": "move", "from": "/a", "path": "/a/b/0"},
        {"op": "test", "path": "/a/b/0", "value": True},
        {"op": "erase", "path": "/a"},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": "/~2", "value": 1},
        7,
    ],
)
def test_what_the_rfc_forbids_does_not_apply(operation):
    """An error names the operation and the reason."""
    with pytest.raises(PatchError, match="operation 0"):
        patched(operation)


def test_a_merge_patch_removes_by_null():
    """A merge patch applies as RFC 7386 says."""
    allow = worker_pb2.Allow(merge_patch=b'{"a":{"b":null,"x":{"y":null}}}')
    assert changed(OBJECT, allow) == {"a": {"x": {}}, "c/d": None}


def test_differences_are_the_smallest_places():
    """Differences are within added containers; arrays are compared by position."""
    found = dict(differences({"a": [1, 2], "b": {"c": 1}}, {"a": [1, 3, 4], "b": {}, "d": {"e": {"f": 1}, "g": {}}}))
    assert found == {"/a/1": 3, "/a/2": 4, "/b/c": None, "/d/e/f": 1, "/d/g": {}}


def test_a_projection_keeps_places():
    """A projection has the claimed places, their parents and what every document has; arrays keep their length."""
    document = {
        "operation": "CREATE", "name": "x", "kind": {"kind": "Pod"},
        "object": {"spec": {"containers": [{"name": "a", "image": "i"}, 7]}, "metadata": {"name": "x"}},
    }  # fmt: skip
    assert projected(document, [tokens("/object/spec/containers/*/image")]) == {
        "operation": "CREATE", "kind": {"kind": "Pod"}, "object": {"spec": {"containers": [{"image": "i"}, None]}},
    }  # fmt: skip


@pytest.mark.parametrize(
    "schema",
    [b"{", b"[]", b'{"type":"text"}', b'{"required":"a"}', b'{"properties":[]}', b'{"items":{"type":1}}',
     b'{"$ref":"#/$defs/A"}', b'{"anyOf":[]}', b'{"minimum":"1"}', b'{"$schema":"http://json-schema.org/draft-07/schema#"}'],
)  # fmt: skip
def test_what_is_no_schema_is_found(schema):
    """Each error has its place."""
    assert list(errors(schema))


def test_a_schema_is_accepted():
    """A schema with all keywords that SDKs write is valid."""
    schema = b'{"$ref":"#/$defs/A","$defs":{"A":{"type":["object","null"],"properties":{"b":true},"required":["b"]}}}'
    assert list(errors(schema)) == []


def test_calls_are_read_from_yaml(tmp_path):
    """YAML is read with JSON's types (a date is a string), and without the uid."""
    path = tmp_path / "calls.yaml"
    path.write_text("- {policy: a, phase: mutating, settings: {d: 2024-01-01}, request: {uid: x, operation: CREATE}}")
    (call,) = calls_file.read(path).ordinary
    assert (call.policy, call.phase, call.settings) == ("a", MUTATING, b'{"d":"2024-01-01"}')
    assert call.document == {"operation": "CREATE"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "neither YAML nor JSON"),
        ("a: 1", r"must be a list .* Expected `array`"),
        ("- {policy: a, phase: both, request: {}}", r"Invalid enum value 'both' - at `\$\[0\].phase`"),
        ("- {policy: a, phase: mutating, request: {}, extra: 1}", "unknown field `extra`"),
        ("- {policy: a, phase: mutating}", "request is missing"),
        ("- {policy: a, phase: mutating, request: {}, expected: {}}", "exactly one of allow, deny and errors"),
        (
            "- {policy: a, phase: mutating, request: {}, expected: {allow: {}, errors: [{pointer: '', message: x}]}}",
            "exactly one of allow, deny and errors",
        ),
    ],
)
def test_a_file_that_is_wrong_is_said_where(tmp_path, content, message):
    """An error names the file, the entry and what is expected."""
    path = tmp_path / "calls.yaml"
    path.write_text(content)
    with pytest.raises(StartError, match=message):
        calls_file.read(path)


def test_a_line_that_is_wrong_is_said_with_its_number(tmp_path):
    """An error in JSON Lines names the line."""
    path = tmp_path / "calls.jsonl"
    path.write_text('{"policy":"a","phase":"mutating","request":{}}\n{"policy":"a"}\n')
    with pytest.raises(StartError, match="line 2: Object missing required field `phase`"):
        calls_file.read(path)


def test_lines_are_called_to_the_letter(tmp_path):
    """Each line is an entry; its numbers and settings stay as they are written."""
    path = tmp_path / "calls.jsonl"
    path.write_text(
        '{"policy":"a","phase":"mutating","settings":{"n": 1E2},"request":{"uid":"x","n":[1.0, 1e400]},'
        '"expected":{"allow":{}}}\n'
    )
    calls = calls_file.read(path)
    (call,) = calls.expected
    assert (call.settings, call.document) == (b'{"n": 1E2}', b'{"n":[1.0, 1e400]}')
    assert len(calls.ordinary) == 1


def allowed(patch, *warnings):
    return of_outcome(worker_pb2.Outcome(allow=worker_pb2.Allow(json_patch=patch), warnings=warnings))


def test_a_change_is_compared_as_it_is_written():
    """Outcomes differ in the order of members, in digits and warnings, but not in white space."""
    one = allowed(b'[{"a":1.0,"b":[2]}]')
    assert same(one, allowed(b'[ {"a": 1.0, "b": [2]} ]'))
    for other in (b'[{"b":[2],"a":1.0}]', b'[{"a":1,"b":[2]}]', b'[{"a":"1.0","b":[2]}]', b"[]", b""):
        assert not same(one, allowed(other)), other
    assert not same(one, allowed(b'[{"a":1.0,"b":[2]}]', "warned"))
    assert not same(one, of_outcome(worker_pb2.Outcome(allow=worker_pb2.Allow(object=b'[{"a":1.0,"b":[2]}]'))))


def test_a_denial_without_a_code_is_forbidden():
    """An outcome becomes an expectation with the contract's defaults; a failure becomes none."""
    expected = Expected(deny=Denied("no", 403, "Forbidden"))
    assert same(expected, of_outcome(worker_pb2.Outcome(deny=worker_pb2.Deny(message="no"))))
    assert not same(expected, of_outcome(worker_pb2.Outcome(deny=worker_pb2.Deny(message="no", code=403))))
    assert not same(expected, of_outcome(worker_pb2.Outcome(failure=worker_pb2.Failure(message="no"))))


def test_the_samples_recording_is_in_the_package():
    """The samples have each policy, verdicts of each kind and invalid settings."""
    recorded = calls_file.read(SAMPLES).expected
    assert {call.policy for call in recorded} == {
        *("required-labels", "no-privileged", "default-labels", "default-resources", "image-registry", "sidecar")
    }
    assert len(recorded) > 700
    assert sum(bool(call.expected.errors) for call in recorded) > 20
    assert sum(call.expected.deny is not None for call in recorded) > 50
