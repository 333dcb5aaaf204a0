"""int, uint and double: their limits, and how they compare."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.values.numbers import (
    INT64_DIGITS,
    LARGEST_INT,
    LARGEST_UINT,
    SMALLEST_INT,
    Uint,
    adapted,
    compare_numbers,
    is_number,
    lossless,
)

ints = st.integers(SMALLEST_INT, LARGEST_INT)
uints = st.integers(0, LARGEST_UINT).map(Uint)
doubles = st.floats(allow_nan=False)
numbers = ints | uints | doubles


def test_a_uint_is_shown_with_its_letter():
    """``1u``."""
    assert repr(Uint(1)) == "1u"


@pytest.mark.parametrize("value", [SMALLEST_INT, -1, 0, LARGEST_INT, Uint(LARGEST_UINT), True, 1.5, "x", None])
def test_what_is_a_value_of_cel_stays_itself(value):
    """Only integers that no int64 can hold are something else."""
    assert adapted(value) is value


@pytest.mark.parametrize(
    ("value", "found"),
    [(2**63, 2.0**63), (-(2**63) - 1, -(2.0**63)), (10**308, 1e308), (10**400, math.inf), (-(10**400), -math.inf)],
    ids=["2**63", "-2**63-1", "10**308", "10**400", "-10**400"],
)
def test_an_integer_beyond_64_bits_is_a_double(value, found):
    """As encoding/json reads it into an interface; what no double can hold is infinite."""
    assert adapted(value) == found
    assert type(adapted(value)) is float


@pytest.mark.parametrize(("value", "found"), [(1, True), (Uint(1), True), (1.0, True), (True, False), ("1", False)])
def test_true_is_no_number(value, found):
    """To Python it is one."""
    assert is_number(value) is found


@pytest.mark.property
@given(numbers, numbers)
def test_comparing_the_other_way_round_gives_the_opposite(one, other):
    """For numbers of any kinds."""
    assert compare_numbers(one, other) == -compare_numbers(other, one)


@pytest.mark.property
@given(numbers)
def test_a_number_equals_itself(value):
    """All but NaN, which is compared before."""
    assert compare_numbers(value, value) == 0


@pytest.mark.property
@given(ints | uints, ints | uints, ints | uints)
def test_the_order_of_integers_is_transitive(one, two, three):
    """int and uint are compared exactly. (Between integers and doubles it is not: those are compared as doubles.)"""
    if compare_numbers(one, two) <= 0 and compare_numbers(two, three) <= 0:
        assert compare_numbers(one, three) <= 0


def test_an_integer_and_a_double_are_compared_as_doubles():
    """2**53 + 1 has no double of its own."""
    assert compare_numbers(2**53 + 1, 2.0**53) == 0
    assert compare_numbers(2**53 + 1, 2**53) == 1


@pytest.mark.parametrize(
    ("value", "found"), [(1.0, 1), (-0.0, 0), (1.5, None), (math.nan, None), (math.inf, None), (2.0**70, 2**70)]
)
def test_only_a_whole_double_is_an_integer(value, found):
    """Infinity and NaN are none."""
    assert lossless(value) == found


def test_every_number_of_so_many_digits_is_an_int64():
    """And not every one that has one more."""
    assert 10**INT64_DIGITS - 1 <= LARGEST_INT
    assert 10 ** (INT64_DIGITS + 1) - 1 > LARGEST_INT
