"""A patch has limits, and its error has the limit and what was observed."""

import msgspec
import pytest

from gateway.depth import too_deep
from gateway.patching.application import apply_json_patch
from gateway.patching.errors import PatchError
from gateway.patching.limits import PatchLimits
from gateway.patching.merging import apply_merge_patch
from gateway.patching.parsing import parse_object
from tests.patching.values import text


def refused(document, operations, limits=None):
    """The message with which a patch is refused."""
    with pytest.raises(PatchError) as error:
        apply_json_patch(document, text(operations), limits=limits or PatchLimits())
    return str(error.value)


def nested(levels):
    """That many arrays in each other."""
    return msgspec.json.decode(b"[" * levels + b"]" * levels)


def test_as_many_operations_as_kube_apiserver_takes():
    """10,000 operations are applied, 10,001 are not."""
    operation = {"op": "add", "path": "/a", "value": 1}
    assert apply_json_patch({}, text([operation] * 10_000)) == {"a": 1}
    assert refused({}, [operation] * 10_001) == "the JSON Patch: at most 10000 operations, found 10001"


@pytest.mark.parametrize("member", ["path", "from"])
def test_a_pointer_has_as_many_tokens_as_a_document_has_levels(member):
    """A pointer of 257 tokens is refused as such, one of 256 only because nothing is there; so is one of a megabyte."""
    operation = {"op": "copy", "path": "/a", "from": "/a"}
    assert "there is no member" in refused({}, [operation | {"from": "/a" * 256}])
    message = f'"{member}": at most %d tokens in a pointer, found %d'
    assert message % (256, 257) in refused({}, [operation | {member: "/a" * 257}])
    assert message % (256, 1_000_000) in refused({}, [operation | {member: "/" * 1_000_000}])
    assert message % (2, 3) in refused({}, [operation | {member: "/a/b/c"}], PatchLimits(pointer_tokens=2))


def test_copying_adds_up():
    """What the copies of one patch copy together is measured as JSON text."""
    document = {"a": "x" * 98}
    copies = [{"op": "copy", "from": "/a", "path": f"/b{index}"} for index in range(4)]
    limits = PatchLimits(copied_bytes=300)
    assert len(apply_json_patch(document, text(copies[:3]), limits=limits)) == 4
    message = "operation 4 (copy /b3 from /a): a patch may copy 300 bytes in all, and with this operation copies 400"
    assert refused(document, copies, limits) == message


@pytest.mark.parametrize(("source", "target"), [("/a", "/a/-"), ("", "/a/-"), ("/a", "/a/0")])
def test_doubling_ends_soon(source, target):
    """Operations that double the document each time are refused after a few, and not after 2^100."""
    message = refused({"a": [1]}, [{"op": "copy", "from": source, "path": target}] * 100)
    assert "a patch may copy 200000 values in all, and would copy more" in message


def test_a_text_too_deep_is_not_parsed():
    """A patch of 100,000 open arrays is refused, as JSON Patch, merge patch and object."""
    for content in (b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 300 + b"1" + b"}" * 300):
        for parse in (
            lambda text: apply_json_patch({}, text),
            lambda text: apply_merge_patch({}, text),
            parse_object,
        ):
            with pytest.raises(PatchError, match="may nest 256 levels deep, and nest deeper"):
                parse(content)


def test_a_text_with_too_many_values_is_not_parsed():
    """A text of empty arrays is refused, as JSON Patch, merge patch and object; commas in a string are no values."""
    limits = PatchLimits(values=1000)
    few, many = (b'{"a":[' + b",".join([b"[]"] * count) + b"]}" for count in (300, 1000))
    assert len(parse_object(few, limits=limits)["a"]) == 300
    for parse in (
        lambda text: apply_json_patch({}, b'[{"op":"add","path":"","value":' + text + b"}]", limits=limits),
        lambda text: apply_merge_patch({}, text, limits=limits),
        lambda text: parse_object(text, limits=limits),
    ):
        with pytest.raises(PatchError, match=r"at most 1000 values and names of members, found [0-9]{4}"):
            parse(many)
    largest = b'{"a":"' + b"," * (3 * 1024 * 1024 - 8) + b'"}'
    assert parse_object(largest)


def test_a_document_does_not_become_too_deep_by_adding():
    """A value is refused where it would stand more than 256 levels deep, and not one level above."""
    document = {"a": nested(100)}
    place = "/a" + "/0" * 99 + "/-"
    ballast = {"op": "test", "path": "/a/0", "value": nested(99)}
    fits = {"op": "add", "path": place, "value": nested(155)}
    result = apply_json_patch(document, text([fits]))
    assert not too_deep(msgspec.json.encode(result), 256)
    assert too_deep(msgspec.json.encode(result), 255)
    message = refused(document, [ballast, fits | {"value": nested(156)}])
    assert f'the document may nest 256 levels deep, and would nest deeper at "{place[:200]}' in message


@pytest.mark.parametrize("op", ["copy", "move"])
def test_a_document_does_not_become_too_deep_by_copying_or_moving(op):
    """A value of the document is refused where it would stand more than 256 levels deep."""
    document = {"a": nested(150), "b": nested(110), "c": nested(105)}
    bottom = "/-"
    fits = {"op": op, "from": "/a", "path": "/c" + "/0" * 104 + bottom}
    assert not too_deep(msgspec.json.encode(apply_json_patch(document, text([fits]))), 256)
    assert "would nest deeper" in refused(document, [fits | {"path": "/b" + "/0" * 109 + bottom}])


def test_shifting_adds_up():
    """How many array elements are moved by insertions and removals together is limited."""
    document = {"a": list(range(100))}
    limits = PatchLimits(shifted_elements=250)
    first, last = {"op": "add", "path": "/a/0", "value": 1}, {"op": "add", "path": "/a/-", "value": 1}
    assert len(apply_json_patch(document, text([first, first] + [last] * 50), limits=limits)["a"]) == 152
    message = refused(document, [first, {"op": "remove", "path": "/a/0"}, first], limits)
    assert message.endswith(
        "a patch may move 250 array elements by one place in all, and with this operation moves 301"
    )


def test_the_deepest_document_can_be_patched():
    """All operations work at 256 levels, however deep the caller's own stack is."""

    def below(frames):
        if frames:
            return below(frames - 1)
        deep = {"a": nested(255), "b": 1}
        bottom = "/a" + "/0" * 254
        operations = [
            {"op": "test", "path": "/a/0/0", "value": nested(253)},
            {"op": "add", "path": bottom + "/0", "value": "x"},
            {"op": "copy", "from": "/a", "path": "/c"},
            {"op": "replace", "path": bottom + "/0", "value": "y"},
        ]
        return apply_json_patch(deep, text(operations))

    result = below(200)
    assert set(result) == {"a", "b", "c"}
