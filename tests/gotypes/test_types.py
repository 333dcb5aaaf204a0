"""JSON values and the types of Kubernetes: what Go's decoder takes, and its errors."""

import pytest

from gateway.gotypes.places import DecodeError
from gateway.gotypes.types import BOOL, INT32, INT64, STRING, STRING_MAP, STRINGS, TIME, Bytes, ListOf, Struct, read

THING = Struct("v1.Thing", {"name": STRING, "labels": STRING_MAP, "parts": ListOf(Struct("v1.Part", {"n": INT32}))})


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ("x", STRING),
        (True, BOOL),
        (-(2**31), INT32),
        (2**63 - 1, INT64),
        (["a"], STRINGS),
        ({"a": "b"}, STRING_MAP),
        ({}, THING),
    ],
    ids=repr,
)
def test_the_right_type_is_itself(value, shape):
    """A value of the right type comes back as it is."""
    assert read(value, shape) == value


def test_null_is_taken_everywhere():
    """null says nothing, at every level."""
    assert read(None, THING) is None
    assert read({"name": None, "labels": None, "parts": [None, {"n": None}]}, THING) == {"parts": [{}, {}]}


def test_unknown_members_are_ignored():
    """What the type does not know is left out, and another case is another name."""
    assert read({"Name": 5, "unknown": [], "name": "n"}, THING) == {"name": "n"}


@pytest.mark.parametrize(
    ("value", "field", "expected", "found"),
    [
        ({"name": 1}, "name", "a string", "a number"),
        ({"labels": {"a.b/c": True}}, "labels[a.b/c]", "a string", "a boolean"),
        ({"parts": [{}, {"n": "1"}]}, "parts[1].n", "an integer", "a string"),
        ({"parts": [{"n": 1.0}]}, "parts[0].n", "an integer", "the number 1.0"),
        ({"parts": [{"n": True}]}, "parts[0].n", "an integer", "a boolean"),
        ({"parts": {}}, "parts", "an array", "an object"),
        ([], "", "an object", "an array"),
    ],
    ids=repr,
)
def test_an_error_says_where_and_what(value, field, expected, found):
    """The path in Kubernetes' notation, what was expected, what was found."""
    with pytest.raises(DecodeError) as caught:
        read(value, THING)
    assert (caught.value.field, caught.value.expected, caught.value.found) == (field, expected, found)


def test_an_error_is_bounded_and_repeats_no_value():
    """A key and a number are cut; a string is never repeated, since it may be a secret."""
    with pytest.raises(DecodeError) as caught:
        read({"labels": {"k" * 1000: 1}}, THING)
    assert len(caught.value.field) < 100
    with pytest.raises(DecodeError) as caught:
        read({"parts": [{"n": 10**1000}]}, THING)
    assert len(str(caught.value)) < 200
    with pytest.raises(DecodeError) as caught:
        read("secret", THING)
    assert "secret" not in f"{caught.value} {caught.value.found}"


# What Go's time.Parse(time.RFC3339, ...) took and refused.
TIMES = [
    "2024-01-02T03:04:05Z",
    "2024-01-02T03:04:05.123456789Z",
    "2024-01-02T03:04:05,1+01:00",
    "2024-01-02T3:04:05Z",
    "0000-02-29T00:00:00Z",
    "2024-01-02T03:04:05-24:60",
]
NO_TIMES = [
    "",
    "x",
    "2024-02-30T03:04:05Z",
    "2023-02-29T03:04:05Z",
    "2024-13-02T03:04:05Z",
    "2024-01-02t03:04:05z",
    "2024-01-02T24:00:00Z",
    "2024-01-02T23:59:60Z",
    "2024-01-02T03:04:05+25:00",
    "2024-01-02T03:04:05+01:61",
    "2024-01-02T03:04:05",
    "2024-01-02 03:04:05Z",
    "24-01-02T03:04:05Z",
    "2024-1-02T03:04:05Z",
    "2024-01-02T03:4:05Z",
    "2024-01-02T03:04:05.Z",
    "2024-01-02T03:04:05Z\n",
    "٢٠٢٤-01-02T03:04:05Z",
]


@pytest.mark.parametrize("text", TIMES)
def test_a_time(text):
    """A time is one that Go reads, with all that it permits."""
    assert read(text, TIME) == text


@pytest.mark.parametrize("value", [*NO_TIMES, 5, {}, True])
def test_no_time(value):
    """Everything else is none."""
    with pytest.raises(DecodeError):
        read(value, TIME)


def test_bytes():
    """[]byte is base64 or an array of bytes."""
    assert (read("QQ==", Bytes()), read([65, None], Bytes()), read("", Bytes())) == (b"A", b"A\x00", b"")
    for wrong in ("Q", "QQ", [256], [-1], ["A"], {}):
        with pytest.raises(DecodeError):
            read(wrong, Bytes())
