"""Quantities, as Kubernetes reads and compares them."""

import math
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.libraries.quantities import QUANTITIES, Quantity
from gateway.cel.values.faults import Fault
from tests.cel.evaluation import error, value

BY_NAME = {overload.identity: overload.call for overload in QUANTITIES.overloads}
parse, add, subtract = BY_NAME["string_to_quantity"], BY_NAME["quantity_add"], BY_NAME["quantity_sub"]
compare = BY_NAME["quantity_compare_to"]
SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2", "e+1"]

texts = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**20),
    st.just("") | st.integers(0, 10**10).map(".{}".format),
    st.sampled_from(SUFFIXES),
)
quantities = texts.map(parse)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("1", 1),
        ("-1", -1),
        ("+1", 1),
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1.5Gi", 3 * 2**29),
        ("100m", Fraction(1, 10)),
        ("1u", Fraction(1, 10**6)),
        ("1n", Fraction(1, 10**9)),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("1e-3", Fraction(1, 1000)),
        ("0.1n", Fraction(1, 10**9)),
        ("-0.1n", Fraction(-1, 10**9)),
        ("10Ei", 2**63 - 1),
        ("100E", 10**20),
        ("00012", 12),
        ("", None),
    ],
)
def test_a_quantity_comes_to_an_amount(text, amount):
    """Rounded up to nano, away from zero; binary ones stop at 2**63 - 1."""
    if amount is None:
        assert error("quantity('')").startswith("quantities must match the regular expression")
    else:
        assert parse(text).amount == amount


@pytest.mark.parametrize(
    "text",
    ["a", "1x", "1 k", " 1", "1k ", "1.2.3", "1KI", "1kk", "--1", "1e", "1e1.5", "0x1", "1Zi", "١", "1_0", "1\n"],
)
def test_what_is_no_quantity(text):
    """``isQuantity`` says so, ``quantity`` is an error."""
    assert value("isQuantity(a)", a=text) is False
    assert "quanti" in error("quantity(a)", a=text)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("quantity('1Gi').isInteger()", True),
        ("quantity('100m').isInteger()", False),
        ("quantity('5').asInteger()", 5),
        ("quantity('1k').asInteger()", 1000),
        ("quantity('100m').asApproximateFloat()", 0.1),
        ("sign(quantity('-5'))", -1),
        ("sign(quantity('0'))", 0),
        ("sign(quantity('5n'))", 1),
        ("quantity('1Gi').isGreaterThan(quantity('1G'))", True),
        ("quantity('1Gi').isLessThan(quantity('1G'))", False),
        ("quantity('1k').compareTo(quantity('1000'))", 0),
        ("quantity('1k') == quantity('1000')", True),
        ("quantity('1k').add(quantity('1')) == quantity('1001')", True),
        ("quantity('1k').add(1) == quantity('1001')", True),
        ("quantity('1k').sub(quantity('1')) == quantity('999')", True),
        ("quantity('1k').sub(1) == quantity('999')", True),
        ("quantity('9223372036854775807').add(1).isInteger()", False),
    ],
)
def test_what_a_function_comes_to(expression, expected):
    """In exact arithmetic."""
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("1" * 350, math.inf), ("-" + "1" * 350, -math.inf), ("1e400", math.inf), ("1e2", 100.0)]
)
def test_what_no_double_holds_is_infinite(text, expected):
    """As an approximation."""
    assert value("quantity(a).asApproximateFloat()", a=text) == expected


def test_a_number_needs_a_digit():
    """A point is none."""
    assert error("quantity('.e-30')") == "unable to parse numeric part of quantity"


@pytest.mark.parametrize("text", ["100m", "99999999999999999999", "1e30"])
def test_what_is_no_integer_cannot_be_one(text):
    """A fraction, or what no int64 holds."""
    assert error(f"quantity('{text}').asInteger()") == "cannot convert value to integer"


@pytest.mark.property
@given(quantities, quantities)
def test_sums_and_differences_are_exact(one, other):
    """Whatever the two are written as."""
    assert add(one, other).amount == one.amount + other.amount
    assert subtract(one, other).amount == one.amount - other.amount


@pytest.mark.property
@given(quantities, quantities)
def test_the_order_of_addition_does_not_matter(one, other):
    """And taking away what was added gives the same again."""
    assert compare(add(one, other), add(other, one)) == 0
    assert compare(subtract(add(one, other), other), one) == 0


@pytest.mark.property
@given(quantities, quantities)
def test_comparing_the_other_way_round_gives_the_opposite(one, other):
    """And equal is what compares to 0."""
    assert compare(one, other) == -compare(other, one)
    assert one.equals(other) == (compare(one, other) == 0)


@pytest.mark.property
@given(st.integers(-(2**63), 2**63 - 1))
def test_an_integer_survives_being_a_quantity(number):
    """If it has at most eighteen digits; longer ones are decimals."""
    if len(str(abs(number))) <= 18:
        assert value("quantity(string(a)).asInteger() == a", a=number) is True


@pytest.mark.property
@given(st.text(alphabet="0123456789.+-eEinumkKMGTP ", max_size=14))
def test_every_text_is_a_quantity_or_an_error(text):
    """``isQuantity`` and ``quantity`` agree."""
    found = None
    with suppress(Fault):
        found = parse(text)
    assert value("isQuantity(a)", a=text) is isinstance(found, Quantity)
