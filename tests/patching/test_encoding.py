"""JSON text as Go writes it: what encoding/json wrote for the same values."""

import json

import pytest
from hypothesis import given

from gateway.patching.encoding import compacted, encoded
from tests.patching.values import strictly_equal, values

GO = [
    (None, "null"),
    (True, "true"),
    (-1, "-1"),
    (1.0, "1"),
    (-0.0, "-0"),
    (1.5, "1.5"),
    (1e-5, "0.00001"),
    (1e-6, "0.000001"),
    (1e-7, "1e-7"),
    (1.25e-10, "1.25e-10"),
    (1e16, "10000000000000000"),
    (1.5e20, "150000000000000000000"),
    (1e21, "1e+21"),
    (1e100, "1e+100"),
    (5e-324, "5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
    ("<&>", '"\\u003c\\u0026\\u003e"'),
    ("\u2028\u2029é😀\x7f", '"\\u2028\\u2029é😀\x7f"'),
    ('"\\\b\f\n\r\t\x01', '"\\"\\\\\\b\\f\\n\\r\\t\\u0001"'),
    ({"b": [1.0, {"<": 1e21}], "a": []}, '{"a":[],"b":[1,{"\\u003c":1e+21}]}'),
    ({"é": 1, "z": 2, "Z": 3, "": 4, "😀": 5, "\uffff": 6}, '{"":4,"Z":3,"z":2,"é":1,"\uffff":6,"😀":5}'),
]


@pytest.mark.parametrize(("value", "text"), GO, ids=lambda each: repr(each)[:40])
def test_values(value, text):
    """Escapes, numbers and the order of members are Go's."""
    assert encoded(value).decode() == text


def test_compacted():
    """Blanks between tokens go, blanks in strings stay."""
    text = b' { "a b" :\n[ 1 ,\t"\\" x\\\\" , " " ]\r} '
    assert compacted(text) == b'{"a b":[1,"\\" x\\\\"," "]}'


@pytest.mark.property
@given(values())
def test_the_text_means_the_value(value):
    """Read again, it is the same value."""
    assert strictly_equal(json.loads(encoded(value)), value)
