"""JSON Patch as kube-apiserver's library reads it: the outcomes are those of evanphx/json-patch v4.13 itself.

Those that the library and the RFC do not share are listed here, one by one, with what becomes of them for a worker.
"""

import contextlib
import copy
import json
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.patching import nodes
from gateway.patching.application import PatchDialect, apply_json_patch
from gateway.patching.difference import difference, encode_patch
from gateway.patching.errors import PatchError
from gateway.patching.limits import PatchLimits
from tests.patching.values import SEEDS, SOME, edited, objects, patched, strictly_equal, text, values

QUIRKS = Path(__file__).parents[1] / "conformance" / "cases" / "json_patch_quirks.jsonl"
_, *CASES = map(json.loads, QUIRKS.read_bytes().splitlines())
DIVERGING = [case for case in CASES if case["diverges"]]


def kubernetes(document, patch, **options):
    """The document after a patch of an existing webhook."""
    written = patch if isinstance(patch, bytes) else text(patch)
    return apply_json_patch(document, written, dialect=PatchDialect.KUBERNETES, **options)


def outcome(document, patch, dialect):
    """ok or error."""
    try:
        apply_json_patch(document, patch, dialect=dialect)
    except PatchError:
        return "error"
    return "ok"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_known_corner_is_the_librarys(case):
    """In all forty recorded cases the outcome is the library's, and so is the document."""
    document, patch = case["doc"].encode(), case["patch"].encode()
    if case["kubernetes"] == "error":
        with pytest.raises(PatchError):
            kubernetes(msgspec.Raw(document), patch)
    else:
        assert strictly_equal(kubernetes(msgspec.Raw(document), patch), json.loads(case["observed"]["output"]))


@pytest.mark.parametrize("case", DIVERGING, ids=lambda case: case["name"])
def test_where_the_library_and_the_standard_differ_a_worker_has_the_standard(case):
    """In the corners where they differ a worker's patch has the RFC's outcome, whatever the library does."""
    got = outcome(msgspec.json.decode(case["doc"]), case["patch"].encode(), PatchDialect.RFC_6902)
    assert case["rfc6902"].startswith(got) or got in case["rfc6902"]


OTHERS = {
    "add at index -1": ({"a": [1]}, {"op": "add", "path": "/a/-1", "value": 2}, {"a": [1, 2]}),
    "remove index -1": ({"a": [1, 2]}, {"op": "remove", "path": "/a/-1"}, {"a": [1]}),
    "add without value": ({}, {"op": "add", "path": "/a"}, {"a": None}),
    "replace without value": ({"a": 1}, {"op": "replace", "path": "/a"}, {"a": None}),
    "~2 in a pointer": ({"a": {}}, {"op": "add", "path": "/a/~2", "value": 1}, {"a": {"~2": 1}}),
}
"""With the ten recorded cases that diverge these are the fifteen known differences."""


@pytest.mark.parametrize(("document", "operation", "after"), OTHERS.values(), ids=OTHERS.keys())
def test_the_other_known_differences(document, operation, after):
    """A webhook's patch has the library's outcome, a worker's is an error."""
    assert len(DIVERGING) + len(OTHERS) == 15
    assert strictly_equal(kubernetes(document, [operation]), after)
    assert outcome(document, text([operation]), PatchDialect.RFC_6902) == "error"


# (document, patch, document after, or None for an error): each run through the library itself.
CORNERS = {
    "-1 appends": ({"a": [1]}, [{"op": "add", "path": "/a/-1", "value": 2}], {"a": [1, 2]}),
    "-2 is before the last": ({"a": [1]}, [{"op": "add", "path": "/a/-2", "value": 2}], {"a": [2, 1]}),
    "-3 is before the first": ({"a": [1]}, [{"op": "add", "path": "/a/-3", "value": 2}], None),
    "remove -1": ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1]}),
    "test -1": ({"a": [1, 2]}, [{"op": "test", "path": "/a/-1", "value": 2}], {"a": [1, 2]}),
    "a sign": ({"a": [1, 2]}, [{"op": "remove", "path": "/a/+0"}], {"a": [2]}),
    "minus nothing": ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-0"}], {"a": [2]}),
    "- is only for adding": ({"a": [1]}, [{"op": "replace", "path": "/a/-", "value": 2}], None),
    "no index": ({"a": [1]}, [{"op": "add", "path": "/a/x", "value": 2}], None),
    "a blank": ({"a": [1]}, [{"op": "remove", "path": "/a/ 0"}], None),
    "too many digits": ({"a": [1]}, [{"op": "remove", "path": "/a/" + "9" * 5000}], None),
    "in zeros": ({"a": [1]}, [{"op": "remove", "path": "/a/" + "0" * 5000}], {"a": []}),
    "no slash": ({"a": 1}, [{"op": "add", "path": "a", "value": 2}], None),
    "before the first slash": ({"a": 1}, [{"op": "add", "path": "x/b", "value": 2}], {"a": 1, "b": 2}),
    "replace adds": ({}, [{"op": "replace", "path": "/a", "value": 1}], {"a": 1}),
    "replace in an array does not": ({"a": []}, [{"op": "replace", "path": "/a/0", "value": 1}], None),
    "no value": ({"a": 1}, [{"op": "replace", "path": "/a"}], {"a": None}),
    "copy of nothing": ({"a": {}}, [{"op": "copy", "from": "/a/x", "path": "/b"}], {"a": {}, "b": None}),
    "move of nothing": ({"a": {}}, [{"op": "move", "from": "/a/x", "path": "/b"}], None),
    "root replaced": ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 1}}], {"b": 1}),
    "root replaced by a scalar": ({"a": 1}, [{"op": "replace", "path": "", "value": 1}], None),
    "root without value": ({"a": 1}, [{"op": "replace", "path": ""}], None),
    "root removed": ({"a": 1}, [{"op": "remove", "path": ""}], None),
    "root tested": ({"a": [1]}, [{"op": "test", "path": "", "value": {"a": [1]}}], {"a": [1]}),
    "test for null finds nothing": ({}, [{"op": "test", "path": "/a"}], {}),
    "test of null": ({"a": None}, [{"op": "test", "path": "/a", "value": None}], {"a": None}),
    "test of an array with null": ({"a": [None]}, [{"op": "test", "path": "/a", "value": [None]}], None),
    "test of an object with null": (
        {"a": {"b": None}},
        [{"op": "test", "path": "/a", "value": {"b": None}}],
        {"a": {"b": None}},
    ),
    "an added null is another one": (
        {"a": {}},
        [{"op": "add", "path": "/a/b", "value": None}, {"op": "test", "path": "/a", "value": {"b": None}}],
        None,
    ),
    "order of members": ({"a": {"x": 1, "y": 2}}, [{"op": "test", "path": "/a", "value": {"y": 2, "x": 1}}], ...),
    "Go escapes <": ({"a": "<"}, [{"op": "test", "path": "/a", "value": "<"}], None),
    "op in another case": ({"a": 1}, [{"op": "Add", "path": "/a", "value": 2}], None),
    "path is a number": ({"a": 1}, [{"op": "remove", "path": 1}], None),
    "an operation is null": ({"a": 1}, [None], None),
    "atomic": ({"a": 1}, [{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/a"}], None),
}


@pytest.mark.parametrize(("document", "patch", "after"), CORNERS.values(), ids=CORNERS.keys())
def test_corners(document, patch, after):
    """Each corner has the library's outcome, and the document given is as it was."""
    before = copy.deepcopy(document)
    if after is None:
        with pytest.raises(PatchError):
            kubernetes(document, patch)
    else:
        assert strictly_equal(kubernetes(document, patch), document if after is ... else after)
    assert strictly_equal(document, before)


@pytest.mark.parametrize(
    ("document", "value", "equal"),
    [
        (b"1", b"1", True),
        (b"1.0", b"1", False),
        (b"1e2", b"1e2", True),
        (b'"\\u0041"', b'"A"', False),
        (b'{"x": [1, 2]}', b'{"x":[1,2]}', True),
        (b'{"x":1.0}', b'{"x":1}', False),
        (b"[]", b"{}", False),
        (b"true", b"1", False),
    ],
)
def test_a_test_compares_texts(document, value, equal):
    """Objects and arrays are compared by their parts, all else by its text."""
    whole = msgspec.Raw(b'{"a":' + document + b"}")
    patch = b'[{"op":"test","path":"/a","value":' + value + b"}]"
    if equal:
        assert strictly_equal(kubernetes(whole, patch), msgspec.json.decode(whole))
    else:
        with pytest.raises(PatchError, match="test failed"):
            kubernetes(whole, patch)


@pytest.mark.parametrize("patch", [b"[]", b"null", b" [ ] "])
def test_an_empty_patch_changes_nothing(patch):
    """An empty patch: the document is the very same."""
    document = {"a": [1]}
    assert kubernetes(document, patch) is document


@pytest.mark.parametrize("patch", [b"", b"{}", b"1", b"[1]", b'[{"op":"add"', b"[" * 300 + b"]" * 300])
def test_what_is_no_patch(patch):
    """What does not decode into a list of operations is an error."""
    with pytest.raises(PatchError, match="the JSON Patch"):
        kubernetes({}, patch)


@pytest.mark.parametrize("value", [b"1e999", b'"\xff"', b'"\\ud800"', b'{"a":1e999}', b"9" * 5000, b"01", b"nul"])
def test_a_value_that_is_none(value):
    """A value that cannot be represented is an error of the patch, wherever it stands."""
    for operation in ("add", "test", "copy"):
        patch = f'[{{"op":"{operation}","path":"/x","from":"/a","value":'.encode() + value + b"}]"
        with pytest.raises(PatchError, match="the JSON Patch"):
            kubernetes({"a": 1, "x": 1}, patch)


@pytest.mark.parametrize("document", [1, "x", True, None])
def test_a_document_is_an_object_or_an_array(document):
    """Nothing can be patched into a scalar."""
    with pytest.raises(PatchError, match="expected a JSON object or array"):
        kubernetes(document, [{"op": "add", "path": "/a", "value": 1}])


def test_an_error_names_the_operation():
    """The number, the operation, the path, and then the library's words."""
    patch = [{"op": "add", "path": "/b", "value": 1}, {"op": "remove", "path": "/c/d"}]
    with pytest.raises(PatchError) as caught:
        kubernetes({"c": {}}, patch)
    assert str(caught.value) == ('operation 2 (remove /c/d): Unable to remove nonexistent key: "d": missing value')


def test_what_a_patch_does_not_touch_is_shared():
    """The result shares with the document all but the containers on the way to what changed."""
    document = {"a": {"b": {"c": 1}, "d": [1]}, "e": {"f": {}}}
    after = kubernetes(document, [{"op": "add", "path": "/a/b/c", "value": 2}, {"op": "test", "path": "/e/f/x"}])
    assert after == {"a": {"b": {"c": 2}, "d": [1]}, "e": {"f": {}}}
    assert after["a"]["d"] is document["a"]["d"]
    assert after["e"] is document["e"]


@pytest.mark.parametrize(
    ("patch", "limits", "reported"),
    [
        ([{"op": "test", "path": "/x"}] * 3, {"operations": 2}, "at most 2 operations, found 3"),
        ([{"op": "test", "path": "/x/y/z"}], {"pointer_tokens": 2}, "at most 2 tokens in a pointer, found 3"),
        ([{"op": "add", "path": "/a/b", "value": [[]]}], {"depth": 3}, "may nest 3 levels deep"),
        ([{"op": "copy", "from": "/long", "path": "/b"}], {"copied_bytes": 10}, "may copy 10 bytes in all"),
        ([{"op": "move", "from": "/long", "path": "/list/0"}], {"shifted_elements": 2}, "may move 2 array elements"),
        ([{"op": "move", "from": "/long", "path": "/a/b"}], {"copied_bytes": 10}, "may copy 10 bytes in all"),
        ([{"op": "test", "path": "/pair", "value": {"y": 2, "x": 3}}], {"compared_values": 1}, "may compare 1 values"),
    ],
    ids=str,
)
def test_limits(patch, limits, reported):
    """The limits of patches hold in this dialect too."""
    document = {"a": {}, "long": "x" * 20, "list": [1, 2, 3], "pair": {"x": 1, "y": 2}}
    with pytest.raises(PatchError, match=reported):
        kubernetes(document, patch, limits=PatchLimits(**limits))


def test_copying_the_document_into_itself_ends():
    """A patch that doubles the document again and again ends at the limit."""
    patch = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 9_999
    with pytest.raises(PatchError):
        kubernetes({"a": [[1]]}, patch)


def test_no_copy_is_parsed_again(monkeypatch):
    """What a copy costs is its text: the bytes that are parsed do not grow with what was copied before."""
    parsed = []
    decoder = SimpleNamespace(decode=lambda text: parsed.append(len(bytes(text))) or msgspec.json.decode(text))
    monkeypatch.setattr(nodes, "VALUES", decoder)
    patch = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 100
    with pytest.raises(PatchError, match="a patch may copy"):
        kubernetes({"a": [[1]]}, patch)
    assert sum(parsed) < 1000


@pytest.mark.property
@SOME
@given(objects(), SEEDS)
def test_our_own_difference_has_no_corners(before, random):
    """What goes out means the same to the library as to the standard: it leads from before to after in both."""
    after = before
    for _ in range(3):
        after = edited(random, after)
    if isinstance(after, dict):
        patch = encode_patch(difference(before, after))
        for dialect in PatchDialect:
            assert strictly_equal(apply_json_patch(before, patch, dialect=dialect), after)


@pytest.mark.property
@SOME
@given(patched())
def test_outside_of_the_corners_the_dialects_agree(drawn):
    """What both take without a test leads to the same document; neither changes the one given."""
    document, operations = drawn
    patch = text([operation for operation in operations if operation["op"] != "test"])
    before = copy.deepcopy(document)
    results = []
    for dialect in PatchDialect:
        try:
            results.append(apply_json_patch(document, patch, dialect=dialect))
        except PatchError:
            return
        assert strictly_equal(document, before)
    assert strictly_equal(*results)


@pytest.mark.property
@given(
    values(),
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x", None]),
                "path": st.sampled_from(["", "/", "/a", "/a/b", "/a/0", "/a/-1", "a", "/~2", 5]),
                "from": st.sampled_from(["", "/a", "/a/0", None]),
                "value": values(),
            },
        ),
        max_size=4,
    ),
)
def test_any_patch_applies_or_is_an_error(document, operations):
    """Whatever the document and the patch are, there is a result or a PatchError."""
    try:
        kubernetes(document, operations)
    except PatchError as error:
        message = str(error)
    else:
        message = ""
    assert len(message) < 2000


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_large_value_is_compared_like_a_small_one(size):
    """By its text: escaped as Go would write it, a test finds what was added, and else only the same text again."""
    plain, raw, escaped = "x" * size, "<" * size, "\\u003c" * size
    patches = {
        (plain, plain): True,
        (raw, raw): True,
        (escaped, escaped): True,
        (raw, escaped): False,
    }
    for (added, tested), is_equal in patches.items():
        content = (
            f'[{{"op":"add","path":"/a","value":{{"b":"{added}"}}}},{{"op":"test","path":"/a/b","value":"{tested}"}}]'
        ).encode()
        limits = PatchLimits(compared_bytes=2_000_000)
        if is_equal:
            after = apply_json_patch({}, content, dialect=PatchDialect.KUBERNETES, limits=limits)
            assert after == {"a": {"b": json.loads(f'"{added}"')}}
        else:
            with pytest.raises(PatchError):
                apply_json_patch({}, content, dialect=PatchDialect.KUBERNETES, limits=limits)


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_value_may_nest_as_deep_as_the_document_at_its_place(size):
    """Large or not."""
    value = json.dumps(["x" * size])
    for levels, allowed in ((252, True), (253, False)):
        nested = "[" * levels + value + "]" * levels
        content = f'[{{"op":"add","path":"/a/b/c","value":{nested}}}]'.encode()
        with contextlib.nullcontext() if allowed else pytest.raises(PatchError, match="deep"):
            apply_json_patch({"a": {"b": {}}}, content, dialect=PatchDialect.KUBERNETES)
