"""Texts and numbers as Go prints them."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.values.strconv import go_double, go_quoted, plain_double


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", '""'),
        ("a b", '"a b"'),
        ('"', r'"\""'),
        ("\\", r'"\\"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\0\x7f", r'"\x00\x7f"'),
        ("é日", '"é日"'),
        ("\u200b", r'"\u200b"'),
        ("\U000e0001", r'"\U000e0001"'),
        ("\udcff", r'"\xff"'),
    ],
)
def test_a_text_is_quoted_as_go_quotes_it(text, quoted):
    """What is not printable is escaped, a byte that is no UTF-8 as that byte."""
    assert go_quoted(text) == quoted


@pytest.mark.property
@given(st.text())
def test_a_quoted_text_stands_on_one_printable_line(text):
    """Whatever it holds."""
    assert go_quoted(text).isprintable()


@pytest.mark.property
@given(st.text(alphabet=st.characters(codec="utf-8", categories=("L", "N", "P"))))
def test_a_printable_text_is_quoted_as_json_quotes_it(text):
    """Backslashes and quotation marks are escaped, and nothing else."""
    assert json.loads(go_quoted(text)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (100000.0, "100000"),
        (1e6, "1e+06"),
        (1234567.0, "1.234567e+06"),
        (1e21, "1e+21"),
        (1e-4, "0.0001"),
        (1e-5, "1e-05"),
        (1.5e300, "1.5e+300"),
        (5e-324, "5e-324"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_a_double_is_printed_as_go_prints_it(value, text):
    """``%g`` with the shortest digits; an exponent has at least two."""
    assert go_double(value) == text


@pytest.mark.property
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_read_as_it_was_printed(value):
    """With an exponent and without one."""
    assert float(go_double(value)) == value
    assert float(plain_double(value)) == value


@pytest.mark.property
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_plain_double_has_no_exponent(value):
    """However large or small it is."""
    assert "e" not in plain_double(value).lower()
