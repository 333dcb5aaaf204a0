"""Values in messages, as Go prints them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.values import types
from gateway.cel.values.containers import NONE, Optional, made_of
from gateway.cel.values.display import display, go_type_name
from gateway.cel.values.durations import Duration
from gateway.cel.values.numbers import Uint
from gateway.cel.values.timestamps import Timestamp


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (Uint(1), "1"),
        (1.0, "1"),
        (1e6, "1e+06"),
        (math.nan, "NaN"),
        (None, "NULL_VALUE"),
        ("a", "a"),
        (b"ab", "[97 98]"),
        ([], "[]"),
        ([1, "a", [True]], "[1, a, [true]]"),
        ({}, "{}"),
        ({"a": 1, "b": [2]}, "{a: 1, b: [2]}"),
        (made_of([(1, "x")]), "{1: x}"),
        (NONE, "optional.none()"),
        (Optional(None), "optional(NULL_VALUE)"),
        (Optional([1]), "optional([1])"),
        (types.INT, "int"),
    ],
)
def test_a_value_is_printed_as_go_prints_it(value, text):
    """``%v``."""
    assert display(value) == text


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1, "types.Int"),
        (Uint(1), "types.Uint"),
        (1.0, "types.Double"),
        (True, "types.Bool"),
        ("", "types.String"),
        (b"", "types.Bytes"),
        (None, "types.Null"),
        ([], "*types.baseList"),
        ({}, "*types.baseMap"),
        (types.INT, "*types.Type"),
        (NONE, "*types.Optional"),
        (Duration(0), "types.Duration"),
        (Timestamp(0, 0), "types.Timestamp"),
    ],
)
def test_a_type_has_the_name_that_go_has_for_it(value, name):
    """``%T``."""
    assert go_type_name(value) == name


@pytest.mark.property
@given(st.recursive(st.none() | st.integers() | st.text() | st.binary(), st.lists, max_leaves=30))
def test_a_message_repeats_at_most_ten_thousand_characters(value):
    """Whatever the value is."""
    assert len(display(value)) <= 10_001


@pytest.mark.parametrize("value", ["x" * 50_000, b"x" * 50_000, ["x" * 9_000] * 2, {"k": "x" * 20_000}])
def test_a_long_value_is_cut(value):
    """And says so with an ellipsis."""
    assert len(display(value)) == 10_001
    assert display(value)[-1] == "…"
