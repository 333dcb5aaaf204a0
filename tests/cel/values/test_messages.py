"""Protocol buffers' well-known types stand for values."""

import pytest

from gateway.cel.values.durations import Duration
from gateway.cel.values.messages import WELL_KNOWN
from gateway.cel.values.numbers import Uint
from gateway.cel.values.timestamps import Timestamp
from tests.cel.evaluation import error, issues, value


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ("Timestamp{seconds: 1, nanos: 2}", Timestamp(1, 2)),
        ("Duration{seconds: 1, nanos: -1}", Duration(999_999_999)),
        ("BoolValue{value: true}", True),
        ("BytesValue{value: b'a'}", b"a"),
        ("DoubleValue{value: 1.5}", 1.5),
        ("FloatValue{value: 1.5}", 1.5),
        ("Int32Value{value: -2147483648}", -(2**31)),
        ("Int64Value{value: 1}", 1),
        ("StringValue{value: 'a'}", "a"),
        ("UInt32Value{value: 4294967295u}", Uint(2**32 - 1)),
        ("UInt64Value{value: 1u}", Uint(1)),
        ("Struct{fields: {'a': dyn(1), 'b': dyn([2])}}", {"a": 1.0, "b": [2.0]}),
        ("ListValue{values: [dyn(1), dyn('a'), dyn({'k': 1u})]}", [1.0, "a", {"k": 1.0}]),
    ],
)
def test_a_message_is_the_value_that_it_stands_for(members, found):
    """Nothing is left of the message itself; in Struct and ListValue all numbers are doubles."""
    made = value(f"google.protobuf.{members}")
    assert made == found
    assert type(made) is type(found)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Timestamp", Timestamp(0, 0)),
        ("Duration", Duration(0)),
        ("BoolValue", False),
        ("BytesValue", b""),
        ("DoubleValue", 0.0),
        ("Int32Value", 0),
        ("StringValue", ""),
        ("UInt64Value", Uint(0)),
        ("Struct", {}),
        ("ListValue", []),
    ],
)
def test_members_that_are_not_given_are_zero(name, found):
    """As in protocol buffers."""
    assert value(f"google.protobuf.{name}{{}}") == found


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ("Int32Value{value: 2147483648}", "integer overflow"),
        ("Int32Value{value: -2147483649}", "integer overflow"),
        ("UInt32Value{value: 4294967296u}", "unsigned integer overflow"),
        ("Duration{seconds: 9223372036854775807}", "integer overflow"),
        ("Timestamp{seconds: 253402300800}", "timestamp overflow"),
    ],
)
def test_a_number_that_does_not_fit_is_an_overflow(members, message):
    """Of the narrow wrappers and of times."""
    assert error(f"google.protobuf.{members}") == message


def test_an_optional_member_that_is_nothing_is_not_set():
    """And one that is something is."""
    assert value("google.protobuf.Int64Value{?value: optional.none()}") == 0
    assert value("google.protobuf.Int64Value{?value: optional.of(5)}") == 5


def test_an_optional_member_must_be_an_optional():
    """Of unknown type, that is found at run time."""
    assert error("google.protobuf.Int64Value{?value: a}", a=5) == (
        "cannot initialize optional entry 'value' from non-optional value 5"
    )


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("google.protobuf.Int64Value{nope: 1}", "1:32: undefined field 'nope'"),
        (
            "google.protobuf.Int64Value{value: 'a'}",
            "1:33: expected type of field 'value' is 'int' but provided type is 'string'",
        ),
        ("google.protobuf.Nope{}", "1:21: undeclared reference to 'google.protobuf.Nope' (in container '')"),
        ("int{}", "1:4: 'int' is not a message type"),
        ("a{}", "1:2: 'dyn' is not a type"),
    ],
)
def test_a_message_that_there_is_not_is_an_error(expression, problem):
    """Its name, its members and their types are checked."""
    assert issues(expression) == [problem]


def test_every_message_has_a_type_and_members():
    """All that are declared can be made."""
    assert len(WELL_KNOWN) == 13
    assert all(found.members for found in WELL_KNOWN.values())
