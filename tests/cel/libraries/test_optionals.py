"""Optionals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.libraries.optionals import is_zero
from gateway.cel.values.containers import NONE, Map, Optional
from gateway.cel.values.durations import Duration
from gateway.cel.values.timestamps import Timestamp
from tests.cel.evaluation import error, value


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("optional.of(1)", Optional(1)),
        ("optional.of(null)", Optional(None)),
        ("optional.none()", NONE),
        ("optional.of(1).value()", 1),
        ("optional.of(1).hasValue()", True),
        ("optional.none().hasValue()", False),
        ("optional.ofNonZeroValue(0)", NONE),
        ("optional.ofNonZeroValue(1)", Optional(1)),
        ("optional.ofNonZeroValue('')", NONE),
        ("optional.ofNonZeroValue(optional.none())", Optional(NONE)),
        ("optional.ofNonZeroValue(quantity('0')).hasValue()", True),
        ("optional.of(1).or(optional.of(2))", Optional(1)),
        ("optional.none().or(optional.of(2))", Optional(2)),
        ("optional.of(1).orValue(2)", 1),
        ("optional.none().orValue(2)", 2),
        ("optional.unwrap([optional.of(1), optional.none()])", [1]),
        ("[optional.of(1), optional.none()].unwrapOpt()", [1]),
        ("optional.of(dyn(1)) == optional.of(dyn(1.0))", True),
        ("optional.of(1) == optional.none()", False),
        ("{'a': 1}.?a.optMap(e, e + 1)", Optional(2)),
        ("{'a': 1}.?b.optMap(e, e + 1)", NONE),
    ],
)
def test_what_a_function_comes_to(expression, expected):
    """With a value and without one."""
    assert value(expression) == expected


def test_there_is_no_value_in_nothing():
    """Reading it is an error."""
    assert error("optional.none().value()") == "optional.none() dereference"


def test_only_optionals_can_be_unwrapped():
    """Each element is looked at."""
    assert error("optional.unwrap(a)", a=[Optional(1), 2]) == "value 2 is not optional"


@pytest.mark.parametrize(
    ("given_", "zero"),
    [
        (None, True),
        (False, True),
        (True, False),
        (0, True),
        (0.0, True),
        (1, False),
        ("", True),
        ("a", False),
        (b"", True),
        ([], True),
        ([0], False),
        ({}, True),
        (Map(), True),
        (Duration(0), True),
        (Duration(1), False),
        (Timestamp(0, 0), False),
        (Timestamp(-62_135_596_800, 0), True),
    ],
)
def test_what_is_zero(given_, zero):
    """The zero value of each kind, as in Go."""
    assert is_zero(given_) is zero


@pytest.mark.property
@given(st.none() | st.integers(-3, 3) | st.text(max_size=2) | st.booleans())
def test_a_value_survives_being_optional(given_):
    """And mapping it to itself changes nothing."""
    assert value("optional.of(a).value() == a", a=given_) is True
    assert value("optional.of(a).optMap(e, e) == optional.of(a)", a=given_) is True
    assert value("optional.of(a).optFlatMap(e, optional.of(e)) == optional.of(a)", a=given_) is True
    assert value("optional.ofNonZeroValue(a).orValue(a) == a", a=given_) is True
