"""Our difference: it leads from before to after in every library, and says no more than what changed."""

import contextlib
import copy
import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.patching.application import apply_json_patch
from gateway.patching.difference import Operation, difference, encode_patch
from gateway.patching.equality import equal
from gateway.patching.errors import PatchError
from tests.patching.values import (
    SEEDS,
    SOME,
    applied_by_the_library,
    edited,
    objects,
    patch_for,
    strictly_equal,
    text,
    values,
)
from tests.traffic import recordings


def said(before, after):
    """A difference in short: (op, path), and the value where there is one."""
    return [
        (operation.op, operation.path) if operation.op == "remove" else (operation.op, operation.path, operation.value)
        for operation in difference(before, after)
    ]


def container(name, image="v1", **more):
    """A container as a Pod has them."""
    return {"name": name, "image": image, "imagePullPolicy": "Always", "env": [{"name": "A", "value": "1"}], **more}


MEMBERS = {
    "nothing": ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, []),
    "numbers by value": ({"a": 1, "b": [2.0]}, {"b": [2], "a": 1.0}, []),
    "true for 1": ({"a": 1}, {"a": True}, [("replace", "/a", True)]),
    "false for 0 in an array": ({"a": [0, 1]}, {"a": [False, 1]}, [("replace", "/a/0", False)]),
    "add": ({}, {"a": {"b": 1}}, [("add", "/a", {"b": 1})]),
    "add null": ({}, {"a": None}, [("add", "/a", None)]),
    "remove": ({"a": None}, {}, [("remove", "/a")]),
    "null for a value": ({"a": 1}, {"a": None}, [("replace", "/a", None)]),
    "rename": ({"a": 1}, {"b": 1}, [("remove", "/a"), ("add", "/b", 1)]),
    "another kind": ({"a": {}}, {"a": []}, [("replace", "/a", [])]),
    "deep": ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 1, "d": 3}}}, [("replace", "/a/b/d", 3)]),
    "escaped": ({"a/b": {"m~n": 1}, "~1": 1}, {"a/b": {"m~n": 2}}, [("replace", "/a~1b/m~0n", 2), ("remove", "/~01")]),
    "the empty name": ({"": 1}, {"": 2}, [("replace", "/", 2)]),
    "a name that is an index": ({"0": 1, "-": 1}, {"0": 2, "-": 1}, [("replace", "/0", 2)]),
    "emptied": ({"a": [1, 2]}, {"a": []}, [("remove", "/a/0"), ("remove", "/a/0")]),
    "another document": ({}, [], [("replace", "", [])]),
    "another simple document": ("a", "b", [("replace", "", "b")]),
}


@pytest.mark.parametrize(("before", "after", "operations"), MEMBERS.values(), ids=MEMBERS)
def test_what_changed_in_an_object(before, after, operations):
    """Each change is one operation at the deepest place that holds all of it."""
    assert said(before, after) == operations


A, B, C, SIDECAR = container("a"), container("b"), container("c"), container("sidecar", "proxy")
ARRAYS = {
    "in front": ([A, B], [SIDECAR, A, B], [("add", "/0", SIDECAR)]),
    "in the middle": ([A, B], [A, SIDECAR, B], [("add", "/1", SIDECAR)]),
    "at the end": ([A, B], [A, B, SIDECAR], [("add", "/2", SIDECAR)]),
    "the first into none": ([], [SIDECAR], [("add", "/0", SIDECAR)]),
    "removed in front": ([A, B, C], [B, C], [("remove", "/0")]),
    "removed in the middle": ([A, B, C], [A, C], [("remove", "/1")]),
    "removed at the end": ([A, B, C], [A, B], [("remove", "/2")]),
    "removed all but one": ([A, B, C], [B], [("remove", "/0"), ("remove", "/1")]),
    "one for another": (
        [A, B, C],
        [A, SIDECAR, C],
        [("replace", "/1/name", "sidecar"), ("replace", "/1/image", "proxy")],
    ),
    "the first goes last": ([A, B, C], [B, C, A], [("remove", "/0"), ("add", "/2", A)]),
    "one more of the same": ([A, B], [A, A, B], [("add", "/1", A)]),
    "one less of the same": (["x", "x", "y"], ["x", "y"], [("remove", "/1")]),
    "images rewritten": (
        [A, B],
        [container("a", "v2"), container("b", "v2")],
        [("replace", "/0/image", "v2"), ("replace", "/1/image", "v2")],
    ),
    "images rewritten and a sidecar in front": (
        [A, B],
        [SIDECAR, container("a", "v2"), container("b", "v2")],
        [("add", "/0", SIDECAR), ("replace", "/1/image", "v2"), ("replace", "/2/image", "v2")],
    ),
    "images rewritten, one removed, a sidecar in the middle": (
        [A, B, C],
        [container("b", "v2"), SIDECAR, container("c", "v2")],
        [("remove", "/0"), ("replace", "/0/image", "v2"), ("add", "/1", SIDECAR), ("replace", "/2/image", "v2")],
    ),
    "arguments": (
        ["--a", "--b", "--c"],
        ["--verbose", "--a", "--c", "--d"],
        [("add", "/0", "--verbose"), ("remove", "/2"), ("add", "/3", "--d")],
    ),
    "arrays in arrays": ([[1], [2], [3]], [[1], [2, 4], [3]], [("add", "/1/1", 4)]),
    "an element inside an inserted neighbour": (
        [container("a", env=[{"name": "A", "value": "1"}])],
        [SIDECAR, container("a", env=[{"name": "B", "value": "2"}, {"name": "A", "value": "1"}])],
        [("add", "/0", SIDECAR), ("add", "/1/env/0", {"name": "B", "value": "2"})],
    ),
}


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "not shared"])
@pytest.mark.parametrize(("before", "after", "operations"), ARRAYS.values(), ids=ARRAYS)
def test_what_changed_in_an_array(before, after, operations, shared):
    """An element put in is one add, one taken out one remove, and nothing else is rewritten; shared or read anew."""
    assert said(before, after if shared else copy.deepcopy(after)) == operations


def test_a_patched_object_differs_by_the_patch():
    """Of a patch made of plain changes in the order of the object, the difference says the same."""
    before = {"metadata": {"name": "p"}, "spec": {"containers": [container("a"), container("b")]}}
    patch = [
        {"op": "add", "path": "/metadata/labels", "value": {"team": "x"}},
        {"op": "replace", "path": "/spec/containers/0/image", "value": "v2"},
        {"op": "add", "path": "/spec/containers/0/env/0", "value": {"name": "Z"}},
        {"op": "remove", "path": "/spec/containers/1/imagePullPolicy"},
    ]
    operations = difference(before, apply_json_patch(before, text(patch)))
    assert json.loads(encode_patch(operations)) == patch


def another(case):
    """An object, another, and how the second comes about: unrelated, or from the first by a patch or by edits."""
    before, unrelated, random = case
    kind = random.choice(["unrelated", "patched", "edited", "edited"])
    if kind == "unrelated":
        return before, unrelated
    if kind == "patched":
        with contextlib.suppress(PatchError):
            return before, apply_json_patch(before, text(patch_for(random, before)))
    after = before
    for _ in range(random.randrange(6)):
        after = edited(random, after)
    return before, after if isinstance(after, dict) else {"a": after}


PAIRS = st.tuples(objects(), objects(), SEEDS).map(another)


@pytest.mark.property
@SOME
@given(PAIRS)
def test_it_leads_from_before_to_after(pair):
    """Applied by the jsonpatch library to before, the difference gives after; true stays true and 1 stays 1."""
    before, after = pair
    patch = encode_patch(difference(before, after))
    assert strictly_equal(applied_by_the_library(before, patch), after)
    assert strictly_equal(apply_json_patch(before, patch), after)


@pytest.mark.property
@SOME
@given(PAIRS)
def test_it_is_empty_exactly_if_nothing_changed(pair):
    """Two objects have no difference exactly if they are equal as JSON values, and none to their own copies."""
    before, after = pair
    assert (difference(before, after) == ()) is strictly_equal(before, after)
    assert (difference(before, after) == ()) is equal(before, after)
    assert difference(before, copy.deepcopy(before)) == ()


@pytest.mark.property
@SOME
@given(PAIRS)
def test_it_keeps_to_what_all_libraries_agree_on(pair):
    """Only add, replace and remove; no root, no ``-`` for an index; what is replaced is there, and differs."""
    before, after = pair
    for operation in difference(before, after):
        assert operation.op in {"add", "replace", "remove"}
        assert operation.path.startswith("/")
        patch = [{"op": "test", "path": operation.path, "value": operation.value}]
        if operation.op == "replace":
            with pytest.raises(PatchError, match="expected"):
                apply_json_patch(before, text(patch))
        before = apply_json_patch(before, encode_patch([operation]))


@pytest.mark.property
@SOME
@given(PAIRS)
def test_it_changes_neither(pair):
    """Neither of the two objects is written."""
    copies = copy.deepcopy(pair)
    difference(*pair)
    assert all(map(strictly_equal, pair, copies))


ELEMENTS = st.lists(values(), min_size=1, max_size=40, unique_by=lambda value: json.dumps(value, sort_keys=True))


@pytest.mark.property
@SOME
@given(ELEMENTS, SEEDS, st.booleans())
def test_insertions_are_as_many_adds(elements, random, shared):
    """An array of distinct elements, from which some were left out before, differs by one add for each, and back."""
    distinct = [value for index, value in enumerate(elements) if not any(equal(value, e) for e in elements[:index])]
    before = [value for value in distinct if random.random() < 0.7]
    after = distinct if shared else copy.deepcopy(distinct)
    inserted = len(distinct) - len(before)
    assert [operation.op for operation in difference(before, after)] == ["add"] * inserted
    assert [operation.op for operation in difference(after, before)] == ["remove"] * inserted


@pytest.mark.parametrize("size", [30, 300, 3_000])
@pytest.mark.parametrize("make", [int, "--{}".format, lambda n: {"n": n}, lambda n: container(f"c{n}")])
def test_insertions_into_long_arrays(size, make):
    """That holds for arrays of any length: of numbers, of strings, of objects that share all their members but one."""
    random = Random(size)
    before = [make(n) for n in range(size)]
    after = copy.deepcopy(before)
    for n in range(20):
        after.insert(random.randrange(len(after)), make(size + n))
    assert [operation.op for operation in difference(before, after)] == ["add"] * 20
    assert [operation.op for operation in difference(after, before)] == ["remove"] * 20


def test_an_array_that_would_cost_the_api_server_too_much_is_replaced_whole():
    """Where adding one by one would make kube-apiserver copy an array of 100,000 a thousand times, it is said whole."""
    before = {"a": list(range(100_000)), "b": 1}
    after = {"a": [-1] * 1_000 + before["a"], "b": 2}
    assert said(before, after) == [("replace", "/a", after["a"]), ("replace", "/b", 2)]


@pytest.mark.parametrize("kind", ["objects", "arrays", "both"])
def test_the_deepest_documents_can_be_compared(kind):
    """256 levels are compared, shared or not, however deep the caller's own stack is."""

    def nested(leaf):
        for level in range(255):
            array = kind == "arrays" or (kind == "both" and level % 2)
            leaf = [{"n": 1} if kind == "both" else [1], leaf, [2]] if array else {"a": leaf, "n": 1}
        return {"a": leaf}

    def below(frames):
        if frames:
            return below(frames - 1)
        return difference(nested(1), nested(2)), difference(nested([1]), nested([1]))

    changed, unchanged = below(150)
    assert [operation.op for operation in changed] == ["replace"]
    assert unchanged == ()


@pytest.mark.parametrize("recording", recordings(), ids=lambda recording: recording.name)
def test_recorded_objects(recording):
    """For every recorded object, policies' usual changes are said in as many operations as there were changes."""
    request = json.loads(recording.body)["request"]
    before = request["object"] or request["oldObject"]
    if before is None:
        pytest.skip("no object in this request")
    after = copy.deepcopy(before)
    after.setdefault("metadata", {}).setdefault("annotations", {})["example.com/touched"] = "yes"
    after["metadata"]["managedFields"] = [{"manager": "gateway"}, *after["metadata"].get("managedFields", [])]
    operations = difference(before, after)
    assert len(operations) == 2 - ("metadata" not in before)
    assert all(operation.op == "add" for operation in operations)
    assert strictly_equal(applied_by_the_library(before, encode_patch(operations)), after)


def test_a_patch_is_compact_json():
    """The patch document has no blanks, no value for remove, and null where null is meant."""
    operations = (
        Operation(op="add", path="/a~1b", value={"é": [1, None]}),
        Operation(op="remove", path="/c"),
        Operation(op="replace", path="/d", value=None),
    )
    assert encode_patch(operations).decode() == (
        '[{"op":"add","path":"/a~1b","value":{"é":[1,null]}},{"op":"remove","path":"/c"},{"op":"replace","path":"/d","value":null}]'
    )
    assert encode_patch(()) == b"[]"
