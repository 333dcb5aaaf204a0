"""JSON Merge Patch, RFC 7386."""

import copy
import json

import pytest
from hypothesis import given

from gateway.patching.errors import PatchError
from gateway.patching.merging import apply_merge_patch
from tests.patching.values import SOME, objects, strictly_equal, text

# RFC 7386, appendix A: original, patch, result; those whose patch is an object.
EXAMPLES = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("document", "patch", "result"), EXAMPLES)
def test_the_examples_of_the_rfc(document, patch, result):
    """Each example of RFC 7386, appendix A comes out as the RFC says."""
    assert apply_merge_patch(document, text(patch)) == result


@pytest.mark.parametrize("content", [b"null", b"[]", b"1", b'"a"', b"true"])
def test_only_an_object_merges(content):
    """A merge patch that would replace the whole object is refused."""
    with pytest.raises(PatchError, match="the merge patch: expected a JSON object, found "):
        apply_merge_patch({}, content)


def test_what_is_left_alone_is_shared():
    """Containers that a merge patch does not name are the document's own, and an array is never merged."""
    document = {"a": {"b": {"c": 1}, "d": [1]}, "e": {"f": []}}
    result = apply_merge_patch(document, b'{"a":{"d":[2]}}')
    assert result == {"a": {"b": {"c": 1}, "d": [2]}, "e": {"f": []}}
    assert result["a"]["b"] is document["a"]["b"]
    assert result["e"] is document["e"]


@pytest.mark.parametrize("patch", [{}, {"a": {}}, {"a": {"b": 1.0, "x": None}}, {"c": [True]}, {"x": None}])
def test_a_merge_that_changes_nothing_gives_the_document(patch):
    """A merge patch that says only what is so already gives the document itself."""
    document = {"a": {"b": 1}, "c": [True]}
    assert apply_merge_patch(document, text(patch)) is document


def test_true_takes_the_place_of_1():
    """A value that Python holds for equal, and JSON does not, is written."""
    assert apply_merge_patch({"a": 1, "b": [0]}, b'{"a":true,"b":[false]}') == {"a": True, "b": [False]}
    assert apply_merge_patch({"a": 1}, b'{"a":true}')["a"] is True


def literally(target, patch):
    """MergePatch as RFC 7386, section 2 writes it."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = literally(target.get(name), value)
    return target


@pytest.mark.property
@SOME
@given(objects(), objects())
def test_it_is_the_function_of_the_rfc(document, patch):
    """The result is what the pseudocode of the RFC gives, and merging again changes nothing."""
    result = apply_merge_patch(document, text(patch))
    assert strictly_equal(result, literally(copy.deepcopy(document), json.loads(text(patch))))
    assert apply_merge_patch(result, text(patch)) is result
