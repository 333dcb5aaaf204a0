"""JSON is decoded into values of any type in one place, where a float costs little, and means the same."""

import ast
import math
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway
from gateway import json_values
from gateway.documents.documents import DocumentBuilder
from gateway.json_values import VALUES, decoder_of
from gateway.patching.application import PatchDialect, apply_json_patch
from gateway.patching.merging import apply_merge_patch
from gateway.patching.parsing import parse_object
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from tests.world import request

ROOMS = (
    "review",
    "patching",
    "documents",
    "engine",
    "scopes",
    "matching",
    "telemetry/masking.py",
    "telemetry/redaction.py",
)
FLOAT = b"1.7976931348623157e+308"
COUNT = 50

DIGITS = st.text("0123456789", min_size=1, max_size=30)
NUMBERS = st.builds(
    "{}{}.{}{}".format,
    st.sampled_from(["", "-"]),
    DIGITS.map(lambda digits: digits.lstrip("0") or "0"),
    DIGITS,
    st.sampled_from(["", "e0", "E5", "e-5", "e+300", "e308", "e-310", "e-324", "e400", "e-400", "e99999999999"]),
)


def outcome(decode, text):
    """The type and the text of a value, or its error in the decoder's words."""
    try:
        value = decode(text)
    except msgspec.DecodeError as error:
        return type(error), str(error)
    return type(value), repr(value)


@pytest.mark.property
@given(NUMBERS | st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.integers().map(str))
def test_a_number_means_what_it_means_to_msgspec(number):
    """The same double, to the sign of zero; the same error for what no double holds."""
    for text in (number.encode(), b'{"a":[%s]}' % number.encode()):
        assert outcome(VALUES.decode, text) == outcome(msgspec.json.decode, text)


@pytest.mark.parametrize(
    "text",
    [
        b"1.0",
        b"-0.0",
        b"-0",
        b"1e400",
        b"-1e400",
        b"1.",
        b".5",
        b"1e",
        b"01",
        b"0e99",
        b"1" * 30,
        b"1" * 4_300,
        b"1" * 4_301,
    ],
)
def test_every_corner_is_msgspecs(text):
    """Integers stay integers, and what is no JSON is the same error."""
    assert outcome(VALUES.decode, text) == outcome(msgspec.json.decode, text)
    assert outcome(decoder_of(list[float]).decode, b"[%s]" % text) == outcome(
        msgspec.json.Decoder(list[float]).decode, b"[%s]" % text
    )


def test_infinity_is_refused():
    """No text of a number becomes one that JSON cannot hold."""
    with pytest.raises(msgspec.ValidationError, match="Number out of range"):
        VALUES.decode(b"[1e400]")
    assert math.isfinite(VALUES.decode(FLOAT))


def hooked(work):
    """How many floats the hook has read in ``work``."""
    floats = 0

    def called(frame, event, _argument):
        nonlocal floats
        floats += event == "call" and frame.f_code is json_values._float.__code__

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return floats


def _of_request(name):
    floats = b"[%s]" % b",".join([FLOAT] * COUNT)
    about = request({"metadata": {"name": "p"}})
    about.members = {**about.members, name: msgspec.Raw(b'{"spec":%s}' % floats)}
    return about


ARRAY = b"[%s]" % b",".join([FLOAT] * COUNT)
ADD = b'[{"op":"add","path":"/a","value":%s}]' % ARRAY
PART = Inputs(places=PointerSet([("options", "spec", "*")]))
READERS = {
    "object": lambda: _of_request("object").object,
    "oldObject": lambda: _of_request("oldObject").old_object,
    "options": lambda: _of_request("options").options,
    "a part of options": lambda: DocumentBuilder(_of_request("options")).of(PART, None, changed=False),
    "a whole object": lambda: parse_object(b'{"a":%s}' % ARRAY),
    "a merge patch": lambda: apply_merge_patch({}, b'{"a":%s}' % ARRAY),
    "a JSON Patch": lambda: apply_json_patch({}, ADD),
    "a JSON Patch of a webhook": lambda: apply_json_patch({}, ADD, dialect=PatchDialect.KUBERNETES),
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_of_values_reads_floats_with_the_hook(reader):
    """msgspec's own parser, which takes up to 20 us for a float, reads none."""
    assert hooked(READERS[reader]) >= COUNT


def test_there_is_no_other_decoder_of_values():
    """In the rooms that read objects and patches, each decoder of msgspec names a type, or is made in one place."""
    root = Path(gateway.__file__).parent
    found = []
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")) if (root / room).is_dir() else [root / room]:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in {
                    "msgspec.json.Decoder",
                    "msgspec.json.decode",
                }:
                    types = [*node.args[node.func.attr == "decode" :], *(each.value for each in node.keywords)]
                    if not types or "Any" in ast.unparse(types[0]):
                        found.append(f"{path.relative_to(root)}:{node.lineno}")
    assert found == []
