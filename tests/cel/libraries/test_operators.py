"""Arithmetic and order."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.cel.libraries import operators
from gateway.cel.values.durations import Duration
from gateway.cel.values.faults import Aborted, Fault
from gateway.cel.values.numbers import Uint
from gateway.cel.values.timestamps import Timestamp
from tests.cel.evaluation import error, value

ints = st.integers(-(2**63), 2**63 - 1)
uints = st.integers(0, 2**64 - 1).map(Uint)


def tried(operation, *operands):
    """The value, or the message of the error."""
    try:
        return operation(*operands)
    except Fault as fault:
        return fault.message


@pytest.mark.property
@given(ints, ints)
def test_integers_are_exact_or_an_overflow(one, other):
    """They never wrap around."""
    for operation, exact in (
        (operators.add, one + other),
        (operators.subtract, one - other),
        (operators.multiply, one * other),
    ):
        found = tried(operation, one, other)
        assert found == (exact if -(2**63) <= exact < 2**63 else "integer overflow")


@pytest.mark.property
@given(uints, uints)
def test_unsigned_integers_are_exact_or_an_overflow(one, other):
    """Below zero, too."""
    exact = [int(one) + int(other), int(one) - int(other), int(one) * int(other)]
    for operation, expected in zip((operators.add, operators.subtract, operators.multiply), exact, strict=True):
        found = tried(operation, one, other)
        assert found == (expected if 0 <= expected < 2**64 else "unsigned integer overflow")
        assert isinstance(found, Uint | str)


@pytest.mark.property
@given(ints, ints)
def test_a_quotient_and_its_rest_give_the_number_again(one, other):
    """Division is towards zero, and the rest has the sign of the number."""
    assume(other != 0 and not (one == -(2**63) and other == -1))
    quotient, rest = operators.divide(one, other), operators.modulo(one, other)
    assert quotient * other + rest == one
    assert abs(rest) < abs(other)
    assert rest == 0 or (rest < 0) == (one < 0)


@pytest.mark.property
@given(st.floats(), st.floats())
def test_dividing_doubles_is_never_an_error(one, other):
    """It is infinite, or NaN."""
    assert isinstance(operators.divide(one, other), float)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("7 / -2", -3),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("7u / 2u", Uint(3)),
        ("1.0 / 0.0", math.inf),
        ("-1.0 / 0.0", -math.inf),
        ("1.0 / -0.0", -math.inf),
        ("'a' + 'b'", "ab"),
        ("b'a' + b'b'", b"ab"),
        ("[1] + [2]", [1, 2]),
        ("duration('1h') + duration('1m')", Duration(3660 * 10**9)),
        ("duration('1h') - duration('1m')", Duration(3540 * 10**9)),
        ("timestamp(0) + duration('1s')", Timestamp(1, 0)),
        ("duration('1s') + timestamp(0)", Timestamp(1, 0)),
        ("timestamp(1) - duration('1s')", Timestamp(0, 0)),
        ("timestamp(5) - timestamp(2)", Duration(3 * 10**9)),
        ("-(5)", -5),
        ("-(5.0)", -5.0),
        ("-a", -1),
        ("!true", False),
        ("-b", Duration(-5)),
    ],
)
def test_what_an_operator_comes_to(expression, expected):
    """For operands of each kind."""
    found = value(expression, a=1, b=Duration(5))
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("9223372036854775807 + 1", "integer overflow"),
        ("-9223372036854775808 - 1", "integer overflow"),
        ("9223372036854775807 * 2", "integer overflow"),
        ("-9223372036854775808 / -1", "integer overflow"),
        ("-9223372036854775808 % -1", "integer overflow"),
        ("-(-9223372036854775808)", "integer overflow"),
        ("0u - 1u", "unsigned integer overflow"),
        ("18446744073709551615u + 1u", "unsigned integer overflow"),
        ("1 / 0", "division by zero"),
        ("1u / 0u", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("1u % 0u", "modulus by zero"),
        ("duration('2562047h') + duration('2562047h')", "integer overflow"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "timestamp overflow"),
        ("timestamp('0001-01-01T00:00:00Z') - duration('1s')", "timestamp overflow"),
        ("timestamp('9999-12-31T00:00:00Z') - timestamp('0001-01-01T00:00:00Z')", "integer overflow"),
        ("a + 1", "no such overload: _+_"),
        ("a - 1", "no such overload: _-_"),
        ("a * 1", "no such overload: _*_"),
        ("a / 1", "no such overload: _/_"),
        ("a % 1", "no such overload: _%_"),
        ("b + 1", "no such overload"),
        ("b - 1", "no such overload"),
        ("b * 1", "no such overload"),
        ("1 + b", "no such overload"),
        ("1 - b", "no such overload"),
        ("1 * b", "no such overload"),
        ("1 / b", "no such overload"),
        ("1 % b", "no such overload"),
        ("[1] + b", "no such overload"),
        ("timestamp(0) - b", "no such overload"),
        ("duration('1s') + b", "no such overload"),
        ("-a", "no such overload: -_"),
        ("-b", "no such overload"),
        ("!a", "no such overload"),
        ("a < 1", "no such overload: _<_"),
        ("1 < b", "no such overload"),
        ("a >= 1", "no such overload: _>=_"),
        ("1 in b", "no such overload"),
    ],
)
def test_what_is_an_error(expression, message):
    """A kind that has no such operator is named; operands that do not go together are not."""
    assert error(expression, a=None, b="x") == message


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 < 2", True),
        ("1 < 1.5", True),
        ("1u < 2", True),
        ("2.5 > 1u", True),
        ("1 <= 1.0", True),
        ("1 >= 1u", True),
        ("'a' < 'b'", True),
        ("'a' < 'B'", False),
        ("b'a' < b'b'", True),
        ("false < true", True),
        ("duration('1s') < duration('1m')", True),
        ("timestamp(0) < timestamp(1)", True),
        ("dyn(1) in [1.0]", True),
        ("'a' in {'a': 1}", True),
        ("'b' in {'a': 1}", False),
    ],
)
def test_order_and_membership(expression, expected):
    """Numbers of all kinds have one order."""
    assert value(expression) is expected


@pytest.mark.parametrize(("size", "largest"), [(33 * 1024 * 1024, 32 * 1024 * 1024), (11, 10)])
def test_what_would_be_too_large_is_not_made(size, largest):
    """The evaluation ends before."""
    with pytest.raises(Aborted, match="actual cost limit exceeded"):
        operators.too_large(size, largest)


@pytest.mark.parametrize(("given_", "expected"), [("é", 1), (b"abc", 3), ([1, 2], 2), ({"a": 1}, 1)])
def test_the_size_of_a_text_counts_code_points(given_, expected):
    """Of the others bytes, elements and entries."""
    assert operators.size(given_) == expected
