"""Conversions between types."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.values.durations import Duration
from gateway.cel.values.numbers import Uint
from gateway.cel.values.timestamps import Timestamp
from tests.cel.evaluation import error, value


@pytest.mark.parametrize(
    ("function", "given_", "expected"),
    [
        ("int", "5", 5),
        ("int", "+5", 5),
        ("int", "-9223372036854775808", -(2**63)),
        ("int", "0005", 5),
        ("int", 1.9, 1),
        ("int", -1.9, -1),
        ("int", Uint(5), 5),
        ("int", Timestamp(5, 9), 5),
        ("int", Duration(5), 5),
        ("uint", "5", Uint(5)),
        ("uint", 5, Uint(5)),
        ("uint", 1.9, Uint(1)),
        ("double", "1.5", 1.5),
        ("double", "1e3", 1000.0),
        ("double", "1_000.5", 1000.5),
        ("double", "0x1.8p1", 3.0),
        ("double", "inf", math.inf),
        ("double", "-Infinity", -math.inf),
        ("double", 5, 5.0),
        ("double", Uint(5), 5.0),
        ("bool", "true", True),
        ("bool", "T", True),
        ("bool", "0", False),
        ("string", 1.5, "1.5"),
        ("string", 1e21, "1e+21"),
        ("string", True, "true"),
        ("string", Uint(5), "5"),
        ("string", b"a", "a"),
        ("string", Duration(1_500_000_000), "1.5s"),
        ("string", Timestamp(0, 0), "1970-01-01T00:00:00Z"),
        ("bytes", "é", "é".encode()),
        ("duration", "1h", Duration(3600 * 10**9)),
        ("timestamp", "1970-01-01T00:00:01Z", Timestamp(1, 0)),
        ("timestamp", 5, Timestamp(5, 0)),
        ("dyn", 5, 5),
    ],
)
def test_what_a_value_becomes(function, given_, expected):
    """By its type; a fraction is dropped."""
    found = value(f"{function}(a)", a=given_)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("function", "given_", "message"),
    [
        ("int", "x", "type conversion error from 'string' to 'int'"),
        ("int", "", "type conversion error from 'string' to 'int'"),
        ("int", "1.5", "type conversion error from 'string' to 'int'"),
        ("int", "0x1", "type conversion error from 'string' to 'int'"),
        ("int", "9223372036854775808", "type conversion error from 'string' to 'int'"),
        ("int", "1" * 5000, "type conversion error from 'string' to 'int'"),
        ("int", "١", "type conversion error from 'string' to 'int'"),
        ("int", 1e30, "integer overflow"),
        ("int", math.nan, "integer overflow"),
        ("int", Uint(2**63), "integer overflow"),
        ("uint", "-1", "type conversion error from 'string' to 'uint'"),
        ("uint", "18446744073709551616", "type conversion error from 'string' to 'uint'"),
        ("uint", -1, "unsigned integer overflow"),
        ("uint", -1.0, "unsigned integer overflow"),
        ("uint", 1e30, "unsigned integer overflow"),
        ("double", "x", "type conversion error from 'string' to 'double'"),
        ("double", "1e999", "type conversion error from 'string' to 'double'"),
        ("double", "0x1p99999", "type conversion error from 'string' to 'double'"),
        ("double", "", "type conversion error from 'string' to 'double'"),
        ("double", "1__0", "type conversion error from 'string' to 'double'"),
        ("bool", "yes", "type conversion error from 'string' to 'bool'"),
        ("string", b"\xff", "invalid UTF-8 in bytes, cannot convert to string"),
        ("duration", "1", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("duration", 1, "type conversion error from 'int' to 'google.protobuf.Duration'"),
        ("timestamp", "x", "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
        ("timestamp", 10**15, "timestamp overflow"),
    ],
)
def test_what_cannot_be_converted_is_an_error(function, given_, message):
    """A text that is none, and a number that does not fit."""
    assert error(f"{function}(a)", a=given_) == message


@pytest.mark.property
@given(st.integers(-(2**63), 2**63 - 1))
def test_an_int_survives_being_a_string(number):
    """And one that is not negative survives being a uint."""
    assert value("int(string(a)) == a", a=number) is True
    if number >= 0:
        assert value("int(uint(a)) == a", a=number) is True


@pytest.mark.property
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_survives_being_a_string(number):
    """The shortest digits are enough."""
    assert value("double(string(a)) == a", a=number) is True


@pytest.mark.property
@given(st.text(max_size=20))
def test_a_string_survives_being_bytes(text):
    """As UTF-8."""
    assert value("string(bytes(a)) == a", a=text) is True


@pytest.mark.property
@given(st.text(alphabet="0123456789+-.eExXpPinfaNtrue_ ", max_size=12))
def test_every_text_is_a_number_or_an_error(text):
    """And never one of Python's own: it has other texts for numbers."""
    for function in ("int", "uint", "double", "bool", "duration", "timestamp"):
        found = value(f"[a].map(e, {function}(e)).size() == 1 || true", a=text)
        assert found is True


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("type(a) == int", True),
        ("type(type(a)) == type", True),
        ("type([a]) == list", True),
        ("type({'x': a}) == map", True),
        ("type(null) == null_type", True),
        ("type(duration('1s')) == google.protobuf.Duration", True),
        ("type(optional.none()) == optional_type", True),
        ("type(ip('::1')) == net.IP", True),
        ("type(a) == uint", False),
    ],
)
def test_types_are_values(expression, expected):
    """They can be compared."""
    assert value(expression, a=1) is expected
