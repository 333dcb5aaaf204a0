"""What a patch does not touch is shared with the document; what is shared is never written."""

import contextlib
import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.patching.application import apply_json_patch
from gateway.patching.errors import PatchError
from gateway.patching.merging import apply_merge_patch
from gateway.patching.parsing import parse_pointer
from tests.patching.values import SOME, found, objects, patched, places, strictly_equal, text, values


@pytest.mark.property
@SOME
@given(patched())
def test_the_document_is_never_written(case):
    """A document is the same after a patch, whether it applied or failed in the middle."""
    document, operations = case
    untouched = copy.deepcopy(document)
    with contextlib.suppress(PatchError):
        apply_json_patch(document, text(operations))
    assert strictly_equal(document, untouched)


@pytest.mark.property
@SOME
@given(objects(), values())
def test_a_merge_never_writes_the_document(document, merge):
    """A document is the same after a merge patch."""
    untouched = copy.deepcopy(document)
    with contextlib.suppress(PatchError):
        apply_merge_patch(document, text(merge))
    assert strictly_equal(document, untouched)


@pytest.mark.property
@SOME
@given(objects().flatmap(lambda document: st.tuples(st.just(document), st.sampled_from(places(document)))))
def test_what_is_not_on_the_way_is_the_same_object(case):
    """After one write, every container that is not on the way to it is the very one of the document."""
    document, written = case
    operation = {
        "op": "replace",
        "path": "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in written),
    }
    result = apply_json_patch(document, text([operation | {"value": {"new": []}}]))
    for place in places(document):
        if place[: len(written)] != written and place != written[: len(place)]:
            assert found(result, place) is found(document, place)


def test_a_failing_patch_leaves_nothing_behind():
    """Operations before a failing one leave no trace in the document."""
    document = {"a": {"b": [1]}}
    patch = b'[{"op":"add","path":"/a/b/0","value":0},{"op":"remove","path":"/a/b"},{"op":"remove","path":"/x"}]'
    with pytest.raises(PatchError):
        apply_json_patch(document, patch)
    assert document == {"a": {"b": [1]}}


COPIES = {
    "write the copy": ([["copy", "/a", "/b"], ["add", "/b/c/n", 2]], {"a": {"c": {"n": 1}}, "b": {"c": {"n": 2}}}),
    "write the source": ([["copy", "/a", "/b"], ["add", "/a/c/n", 2]], {"a": {"c": {"n": 2}}, "b": {"c": {"n": 1}}}),
    "written, copied, written": (
        [["add", "/a/c/n", 2], ["copy", "/a", "/b"], ["add", "/a/c/n", 3], ["add", "/b/c/n", 4]],
        {"a": {"c": {"n": 3}}, "b": {"c": {"n": 4}}},
    ),
    "part of what was written": (
        [["add", "/a/c/n", 2], ["copy", "/a/c", "/b"], ["add", "/a/c/n", 3]],
        {"a": {"c": {"n": 3}}, "b": {"n": 2}},
    ),
    "copied from inside what was copied": (
        [["add", "/a/c/n", 2], ["copy", "/a", "/b"], ["copy", "/b/c", "/d"], ["add", "/d/n", 5], ["add", "/b/c/n", 6]],
        {"a": {"c": {"n": 2}}, "b": {"c": {"n": 6}}, "d": {"n": 5}},
    ),
    "copied, moved, written": (
        [["add", "/a/c/n", 2], ["copy", "/a", "/b"], ["move", "/b", "/d"], ["add", "/d/c/n", 7]],
        {"a": {"c": {"n": 2}}, "d": {"c": {"n": 7}}},
    ),
    "the document into itself": (
        [["copy", "", "/b"], ["add", "/a/c/n", 2], ["add", "/b/a/c/n", 3]],
        {"a": {"c": {"n": 2}}, "b": {"a": {"c": {"n": 3}}}},
    ),
    "a value of the patch, copied and written": (
        [["add", "/v", {"w": {"n": 0}}], ["copy", "/v", "/u"], ["add", "/u/w/n", 8], ["add", "/v/w/m", 9]],
        {"a": {"c": {"n": 1}}, "v": {"w": {"n": 0, "m": 9}}, "u": {"w": {"n": 8}}},
    ),
}


@pytest.mark.parametrize(("steps", "expected"), COPIES.values(), ids=COPIES)
def test_a_copy_goes_its_own_way(steps, expected):
    """After ``copy``, writing in one of the two places does not change the other."""
    operations = [
        {"op": op, "path": last, "from": first} if op in {"copy", "move"} else {"op": op, "path": first, "value": last}
        for op, first, last in steps
    ]
    assert apply_json_patch({"a": {"c": {"n": 1}}}, text(operations)) == expected


def test_what_two_patches_made_is_not_entangled():
    """A document in which one object stands twice, after a copy, can be patched in one place alone."""
    twice = apply_json_patch({"a": {"c": {"n": 1}}}, b'[{"op":"copy","from":"/a","path":"/b"}]')
    assert twice["a"] is twice["b"]
    once = apply_json_patch(twice, b'[{"op":"add","path":"/b/c/n","value":2}]')
    assert once == {"a": {"c": {"n": 1}}, "b": {"c": {"n": 2}}}
    assert twice == {"a": {"c": {"n": 1}}, "b": {"c": {"n": 1}}}


def test_a_container_is_copied_at_most_once():
    """Many writes below one container leave one copy of it, and of nothing else."""
    document = {"a": {str(index): {"n": index} for index in range(100)}, "b": {}}
    result = apply_json_patch(
        document, text([{"op": "add", "path": f"/a/{index}/n", "value": 0} for index in range(50)])
    )
    assert result["b"] is document["b"]
    assert all(result["a"][str(index)] is document["a"][str(index)] for index in range(50, 100))


def test_pointers_are_remembered_without_being_shared_by_error():
    """The same path means the same place in every patch, also just after another one failed on it."""
    for value in range(3):
        assert apply_json_patch({"a/b": 0}, text([{"op": "add", "path": "/a~1b", "value": value}])) == {"a/b": value}
        with pytest.raises(PatchError):
            apply_json_patch({}, text([{"op": "remove", "path": "/a~1b"}]))
    assert parse_pointer("/a~1b") == ("a/b",)
