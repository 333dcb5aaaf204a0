"""Whatever a worker sends, the answer is a value or a PatchError."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.patching.application import apply_json_patch
from gateway.patching.difference import difference, encode_patch
from gateway.patching.errors import PatchError
from gateway.patching.merging import apply_merge_patch
from gateway.patching.parsing import parse_object
from tests.patching.values import SOME, text, values

PARSERS = {
    "JSON Patch": lambda content: apply_json_patch({"a": [1, {"b": None}]}, content),
    "merge patch": lambda content: apply_merge_patch({"a": [1, {"b": None}]}, content),
    "object": parse_object,
}
WITH = {
    "JSON Patch": b'[{"op":"add","path":"/x","value":%s}]',
    "merge patch": b'{"x":%s}',
    "object": b'{"x":%s}',
}

HOSTILE = {
    "nothing": b"",
    "truncated": b"[1,",
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
    "too large for a double": b"1e400",
    "too small for a double": b"-1e400",
    "5,000 digits": b"9" * 5_000,
    "a lone high surrogate": b'"\\ud800"',
    "a lone high surrogate in the middle": b'"\\ud800x"',
    "a lone low surrogate": b'"\\udc00"',
    "a surrogate in UTF-8": b'"\xed\xa0\x80"',
    "an overlong slash": b'"\xc0\xaf"',
    "latin-1": b'"\xe9"',
    "a control character": b'"\x00"',
    "a comment": b"1 // one",
    "a trailing comma": b"[1,]",
    "single quotes": b"'a'",
    "a leading zero": b"01",
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "100,000 arrays": b"[" * 100_000 + b"]" * 100_000,
    "100,000 objects": b'{"a":' * 100_000,
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", PARSERS)
def test_bad_json_is_refused(name, content):
    """A text that is not JSON in UTF-8, or holds a number or a nesting that cannot be held, is a PatchError."""
    for text_with_it in (content, WITH[name] % content):
        with pytest.raises(PatchError, match=rf"^the {name}: "):
            PARSERS[name](text_with_it)


UNUSUAL = {
    "beyond 64 bits": (b"123456789012345678901234567890", 123456789012345678901234567890),
    "4,000 digits": (b"9" * 4_000, 10**4_000 - 1),
    "too small to differ from 0": (b"1e-400", 0),
    "an escaped pair of surrogates": (b'"\\ud83d\\ude00"', "😀"),
    "an escaped NUL": (b'"\\u0000"', "\0"),
    "the same name twice": (b'{"a":1,"a":2}', {"a": 2}),
    "200 arrays": (b"[" * 200 + b"]" * 200, None),
}


@pytest.mark.parametrize(("content", "value"), UNUSUAL.values(), ids=UNUSUAL)
@pytest.mark.parametrize("name", PARSERS)
def test_unusual_json_is_read_and_can_be_written_again(name, content, value):
    """What is JSON is read, of two members with one name the last, and our own patch can say it to the API server."""
    result = PARSERS[name](WITH[name] % content)
    assert value is None or result["x"] == value
    patch = encode_patch(difference({}, result))
    assert apply_json_patch({}, patch) == result


def test_a_missing_half_of_a_surrogate_is_named():
    """A lone surrogate, which the parser reports as a truncated text, is called what it is."""
    with pytest.raises(PatchError, match="surrogate without its other half"):
        parse_object(b'{"a":"\\ud800"}')


@pytest.mark.parametrize(("content", "found"), [(b"null", "null"), (b"[]", "an array"), (b"1", "a number")])
def test_an_object_is_an_object(content, found):
    """A whole object that is none is refused by its kind."""
    with pytest.raises(PatchError, match=f"the object: expected a JSON object, found {found}"):
        parse_object(content)


def refusal(name, content):
    """The message with which a text is refused, empty if it is not."""
    try:
        PARSERS[name](content)
    except PatchError as error:
        return str(error)
    return ""


@pytest.mark.property
@SOME
@given(st.binary() | values().map(text), st.sampled_from(list(PARSERS)))
def test_any_bytes_give_a_value_or_a_patch_error(content, name):
    """No bytes raise anything but PatchError, whose message is one short printable line."""
    message = refusal(name, content)
    assert message.isprintable()
    assert len(message) < 2_000


OPERATIONS = st.fixed_dictionaries(
    {},
    optional={
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]) | values(),
        "path": st.sampled_from(["", "/a", "/a/0", "/a/1/b", "/a/-", "/a/1/x"]) | values(),
        "from": st.sampled_from(["", "/a", "/a/0", "/a/1/b"]) | values(),
        "value": values(),
        "extra": values(),
    },
)


@pytest.mark.property
@SOME
@given(st.lists(OPERATIONS, max_size=6))
def test_any_operations_give_a_value_or_a_patch_error(operations):
    """Operations of any shape raise nothing but PatchError."""
    assert refusal("JSON Patch", text(operations)).startswith(("", "operation "))
