"""JSON Patch: each operation of RFC 6902, and each way in which one fails."""

import json

import jsonpatch
import jsonpointer
import pytest
from hypothesis import given

from gateway.patching.application import apply_json_patch
from gateway.patching.errors import PatchError
from tests.patching.values import PLAIN_SCALARS, SOME, patched, strictly_equal, text

POD = {"spec": {"containers": [{"name": "a"}, {"name": "b"}], "replicas": 1}, "metadata": {}}


def patch(*operations):
    """A JSON Patch as text."""
    return json.dumps(operations).encode()


APPLIES = {
    "add a member": ({}, {"op": "add", "path": "/a", "value": 1}, {"a": 1}),
    "add over a member": ({"a": 1}, {"op": "add", "path": "/a", "value": 2}, {"a": 2}),
    "add null": ({}, {"op": "add", "path": "/a", "value": None}, {"a": None}),
    "add before": ({"a": [1, 2]}, {"op": "add", "path": "/a/1", "value": 9}, {"a": [1, 9, 2]}),
    "add at the length": ({"a": [1]}, {"op": "add", "path": "/a/1", "value": 9}, {"a": [1, 9]}),
    "add at the end": ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 9}, {"a": [1, 9]}),
    "add the member -": ({"a": {}}, {"op": "add", "path": "/a/-", "value": 9}, {"a": {"-": 9}}),
    "add the member 01": ({"a": {}}, {"op": "add", "path": "/a/01", "value": 9}, {"a": {"01": 9}}),
    "add the empty member": ({}, {"op": "add", "path": "/", "value": 9}, {"": 9}),
    "add the document": ({"a": 1}, {"op": "add", "path": "", "value": {"b": 2}}, {"b": 2}),
    "replace the document": ({"a": 1}, {"op": "replace", "path": "", "value": [2]}, [2]),
    "replace a member": ({"a": 1}, {"op": "replace", "path": "/a", "value": 2}, {"a": 2}),
    "replace the member -": ({"-": 1}, {"op": "replace", "path": "/-", "value": 2}, {"-": 2}),
    "replace an element": ({"a": [1, 2]}, {"op": "replace", "path": "/a/0", "value": 9}, {"a": [9, 2]}),
    "replace null": ({"a": None}, {"op": "replace", "path": "/a", "value": 1}, {"a": 1}),
    "remove a member": ({"a": None, "b": 1}, {"op": "remove", "path": "/a"}, {"b": 1}),
    "remove an element": ({"a": [1, 2, 3]}, {"op": "remove", "path": "/a/1"}, {"a": [1, 3]}),
    "move a member": ({"a": 1}, {"op": "move", "from": "/a", "path": "/b"}, {"b": 1}),
    "move forward in an array": ({"a": [1, 2, 3]}, {"op": "move", "from": "/a/0", "path": "/a/2"}, {"a": [2, 3, 1]}),
    "move onto itself": ({"a": 1}, {"op": "move", "from": "/a", "path": "/a"}, {"a": 1}),
    "move the document onto itself": ({"a": 1}, {"op": "move", "from": "", "path": ""}, {"a": 1}),
    "move to the document": ({"a": {"b": 1}}, {"op": "move", "from": "/a", "path": ""}, {"b": 1}),
    "move to a name that begins alike": ({"a": {}}, {"op": "move", "from": "/a", "path": "/ab"}, {"ab": {}}),
    "copy a member": ({"a": [1]}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": [1], "b": [1]}),
    "copy null": ({"a": None}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": None, "b": None}),
    "copy into itself": ({"a": {"b": 1}}, {"op": "copy", "from": "/a", "path": "/a/c"}, {"a": {"b": 1, "c": {"b": 1}}}),
    "copy the document": ({"a": 1}, {"op": "copy", "from": "", "path": "/b"}, {"a": 1, "b": {"a": 1}}),
    "test a number": ({"a": 1.0}, {"op": "test", "path": "/a", "value": 1}, {"a": 1.0}),
    "test null": ({"a": None}, {"op": "test", "path": "/a", "value": None}, {"a": None}),
    "test the document": ({"a": [{}]}, {"op": "test", "path": "", "value": {"a": [{}]}}, {"a": [{}]}),
    "test without order": (
        {"a": {"b": 1, "c": 2}},
        {"op": "test", "path": "/a", "value": {"c": 2, "b": 1}},
        {"a": {"b": 1, "c": 2}},
    ),
    "unknown members": (
        {},
        {"op": "add", "path": "/a", "value": 1, "from": 7, "comment": [{}]},
        {"a": 1},
    ),
    "escaped": ({"a/b": 1, "m~n": 2}, {"op": "move", "from": "/a~1b", "path": "/m~0n"}, {"m~n": 1}),
}


@pytest.mark.parametrize(("before", "operation", "after"), APPLIES.values(), ids=APPLIES)
def test_what_an_operation_does(before, operation, after):
    """An operation does what RFC 6902, section 4 says."""
    assert strictly_equal(apply_json_patch(before, patch(operation)), after)


FAILS = {
    "replace nothing": ({"op": "replace", "path": "/spec/x", "value": 1}, 'there is no member "x" in /spec'),
    "replace below nothing": ({"op": "replace", "path": "/x/y", "value": 1}, 'there is no member "x" in the document'),
    "add below nothing": ({"op": "add", "path": "/metadata/labels/a", "value": 1}, 'no member "labels" in /metadata'),
    "add below a number": (
        {"op": "add", "path": "/spec/replicas/x", "value": 1},
        '/spec/replicas is a number: there is no "x" in it',
    ),
    "add below below a number": (
        {"op": "add", "path": "/spec/replicas/x/y", "value": 1},
        '/spec/replicas is a number: there is no "x" in it',
    ),
    "read below a string": (
        {"op": "test", "path": "/spec/containers/0/name/0", "value": "a"},
        'is a string: there is no "0" in it',
    ),
    "add beyond the end": (
        {"op": "add", "path": "/spec/containers/3", "value": 1},
        '/spec/containers has 2 elements, counted from 0: there is no "3"',
    ),
    "replace at the length": (
        {"op": "replace", "path": "/spec/containers/2", "value": 1},
        'has 2 elements, counted from 0: there is no "2"',
    ),
    "replace at -": (
        {"op": "replace", "path": "/spec/containers/-", "value": 1},
        '"-" is the place after the last of the 2 elements of /spec/containers',
    ),
    "remove at -": ({"op": "remove", "path": "/spec/containers/-"}, '"-" is the place after the last'),
    "test at -": ({"op": "test", "path": "/spec/containers/-", "value": None}, '"-" is the place after the last'),
    "through -": ({"op": "add", "path": "/spec/containers/-/name", "value": "c"}, '"-" is the place after the last'),
    "leading zero": (
        {"op": "add", "path": "/spec/containers/01", "value": 1},
        'expected an index of /spec/containers (0, or digits without a leading 0), found "01"',
    ),
    "negative index": ({"op": "remove", "path": "/spec/containers/-1"}, 'found "-1"'),
    "empty index": ({"op": "remove", "path": "/spec/containers/"}, 'found ""'),
    "foreign digits": ({"op": "remove", "path": "/spec/containers/١"}, 'found "١"'),
    "superscript": ({"op": "remove", "path": "/spec/containers/²"}, 'found "²"'),
    "exponent": ({"op": "remove", "path": "/spec/containers/1e0"}, 'found "1e0"'),
    "huge index": ({"op": "remove", "path": "/spec/containers/" + "9" * 5_000}, "has 2 elements"),
    "remove nothing": ({"op": "remove", "path": "/x"}, 'there is no member "x" in the document'),
    "remove the document": ({"op": "remove", "path": ""}, "the whole document cannot be removed"),
    "move nothing": ({"op": "move", "from": "/x", "path": "/y"}, 'there is no member "x"'),
    "move nothing onto itself": ({"op": "move", "from": "/x", "path": "/x"}, 'there is no member "x"'),
    "move into a child": ({"op": "move", "from": "/spec", "path": "/spec/a"}, "/spec cannot be moved into itself"),
    "move the document": ({"op": "move", "from": "", "path": "/a"}, "the document cannot be moved into itself"),
    "copy nothing": ({"op": "copy", "from": "/x", "path": "/y"}, 'there is no member "x"'),
    "test nothing": ({"op": "test", "path": "/x", "value": None}, 'there is no member "x"'),
    "test another kind": (
        {"op": "test", "path": "/spec/replicas", "value": True},
        "expected a boolean at /spec/replicas, found a number",
    ),
    "test another value": ({"op": "test", "path": "/spec/replicas", "value": 2}, "found a number that differs"),
    "unknown op": (
        {"op": "Add", "path": "/a", "value": 1},
        '"op": expected add, remove, replace, move, copy or test, found "Add"',
    ),
    "no op": ({"path": "/a", "value": 1}, 'expected a string as "op", found none'),
    "op is no string": ({"op": ["add"], "path": "/a", "value": 1}, 'expected a string as "op", found an array'),
    "no path": ({"op": "add", "value": 1}, 'expected a string as "path", found none'),
    "path is null": ({"op": "add", "path": None, "value": 1}, 'expected a string as "path", found null'),
    "path is an array": ({"op": "remove", "path": ["a"]}, 'expected a string as "path", found an array'),
    "path without slash": (
        {"op": "remove", "path": "spec"},
        'expected a JSON Pointer, which is empty or starts with "/", found "spec"',
    ),
    "path with a lone ~": ({"op": "remove", "path": "/~2"}, 'in which "~" is followed by 0 or 1'),
    "no value": ({"op": "add", "path": "/a"}, 'expected a value as "value", found none'),
    "no value to replace": ({"op": "replace", "path": "/spec"}, 'expected a value as "value", found none'),
    "no value to test": ({"op": "test", "path": "/spec"}, 'expected a value as "value", found none'),
    "no from": ({"op": "copy", "path": "/a"}, 'expected a string as "from", found none'),
    "from is a number": ({"op": "move", "from": 1, "path": "/a"}, 'expected a string as "from", found a number'),
    "from without slash": ({"op": "move", "from": "a", "path": "/a"}, "expected a JSON Pointer"),
}


@pytest.mark.parametrize(("operation", "message"), FAILS.values(), ids=FAILS)
def test_how_an_operation_fails(operation, message):
    """What RFC 6902 does not allow is a PatchError that says what was expected and what was found."""
    with pytest.raises(PatchError) as error:
        apply_json_patch(POD, patch(operation))
    assert message in str(error.value)


MALFORMED = {
    "null": (b"null", "the JSON Patch: expected `array`, got `null`"),
    "an object": (b'{"op":"remove","path":"/a"}', "the JSON Patch: expected `array`, got `object`"),
    "an array of numbers": (b"[1]", "the JSON Patch: expected `object`, got `int` - at `$[0]`"),
    "nothing": (b"", "the JSON Patch: expected JSON in UTF-8"),
    "two texts": (b"[][]", "the JSON Patch: expected JSON in UTF-8"),
}


@pytest.mark.parametrize(("content", "message"), MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_patch(content, message):
    """A text that is not an array of operations is a PatchError."""
    with pytest.raises(PatchError) as error:
        apply_json_patch({}, content)
    assert str(error.value).startswith(message)


def test_an_error_names_the_operation():
    """Number from 1, op, path and from stand in front of what is wrong."""
    first = {"op": "add", "path": "/a", "value": 1}
    with pytest.raises(PatchError, match=r'^operation 2 \(replace /spec/x\): there is no member "x" in /spec$'):
        apply_json_patch(POD, patch(first, {"op": "replace", "path": "/spec/x", "value": 1}))
    with pytest.raises(PatchError, match=r"^operation 1 \(move /y from /x\): "):
        apply_json_patch(POD, patch({"op": "move", "path": "/y", "from": "/x"}))
    with pytest.raises(PatchError, match=r'^operation 3: expected a string as "op", found none$'):
        apply_json_patch(POD, patch(first, first, {}))


def test_an_error_has_no_value_and_stays_short():
    """A message holds no value of the object, nothing unprintable, and no megabyte that a worker put into a path."""
    secret = {"data": {"key": "c2VjcmV0"}}
    with pytest.raises(PatchError) as error:
        apply_json_patch(secret, patch({"op": "test", "path": "/data/key", "value": "guess"}))
    assert "c2VjcmV0" not in str(error.value)
    with pytest.raises(PatchError) as error:
        apply_json_patch(secret, patch({"op": "x" * 10**6, "path": "/" + "\x1b\n\u202e" * 10**5}))
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 2_000


def test_no_operations_are_no_change():
    """``[]`` gives the document itself."""
    assert apply_json_patch(POD, b" [ ] ") is POD


def test_later_operations_see_what_earlier_ones_did():
    """Operations apply in order, each to what the one before it left."""
    operations = [
        {"op": "add", "path": "/list", "value": []},
        {"op": "add", "path": "/list/-", "value": {"n": 1}},
        {"op": "add", "path": "/list/0", "value": {"n": 0}},
        {"op": "test", "path": "/list/1/n", "value": 1},
        {"op": "move", "from": "/list/1/n", "path": "/n"},
        {"op": "remove", "path": "/list/0"},
    ]
    assert apply_json_patch({}, patch(*operations)) == {"list": [{}], "n": 1}


def test_of_duplicate_members_the_last_counts():
    """An operation with two ``op`` or two ``path`` means the last, as the gateway reads all JSON."""
    content = b'[{"op":"remove","op":"add","path":"/x","path":"/a","value":1,"value":2}]'
    assert apply_json_patch({}, content) == {"a": 2}


def by_the_library(document, content):
    """What the jsonpatch library makes of a patch; None where it refuses (with a TypeError if "-" names no element)."""
    try:
        return jsonpatch.apply_patch(document, content.decode())
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError):
        return None


@pytest.mark.property
@SOME
@given(patched(PLAIN_SCALARS))
def test_it_does_what_the_library_does(case):
    """Where the jsonpatch library applies a patch, so do we with the same result; where it refuses, so do we."""
    document, operations = case
    expected = by_the_library(document, text(operations))
    try:
        result = apply_json_patch(document, text(operations))
    except PatchError:
        assert expected is None
    else:
        assert strictly_equal(result, expected)
