"""``format``: clauses and what they write."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cel.evaluation import ENVIRONMENT, error, value


def formatted(clause, argument):
    return value(f"'{clause}'.format([a])", a=argument)


@pytest.mark.parametrize(
    ("clause", "argument", "text"),
    [
        ("%s", "a", "a"),
        ("%s", 1, "1"),
        ("%s", 1.5, "1.5"),
        ("%s", True, "true"),
        ("%s", None, "null"),
        ("%s", b"a", "a"),
        ("%s", [1, "a", None, True, 1.5, b"b"], '[1, "a", null, true, 1.500000, b"b"]'),
        ("%s", {"b": 1, "a": [2]}, '{"a":[2], "b":1}'),
        ("%s", [math.nan, math.inf, -math.inf], '["NaN", "+Inf", "-Inf"]'),
        ("%s", [], "[]"),
        ("%s", {}, "{}"),
        ("%d", 5, "5"),
        ("%d", -5, "-5"),
        ("%f", 1.5, "1.500000"),
        ("%.1f", 1.25, "1.2"),
        ("%.0f", 2.5, "2"),
        ("%f", 1234567.0, "1,234,567.000000"),
        ("%f", -0.0, "0.000000"),
        ("%f", math.nan, "NaN"),
        ("%f", math.inf, "∞"),
        ("%f", -math.inf, "-∞"),
        ("%f", "Infinity", "∞"),
        ("%e", 1234.5, "1.234500×10⁰³"),
        ("%e", math.nan, "   NaN"),
        ("%e", math.inf, "     ∞"),
        ("%e", 0.00123, "1.230000×10⁻⁰³"),
        ("%b", 5, "101"),
        ("%b", True, "1"),
        ("%b", -5, "-101"),
        ("%x", 255, "ff"),
        ("%X", 255, "FF"),
        ("%x", "hi", "6869"),
        ("%x", b"\xff", "ff"),
        ("%o", 8, "10"),
        ("100%% %s", "x", "100% x"),
        ("%s", "%d", "%d"),
    ],
)
def test_what_a_clause_writes(clause, argument, text):
    """Texts within lists and maps are quoted, and maps in the order of their keys."""
    assert formatted(clause, argument) == text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'%s'.format([duration('1h')])", "3600s"),
        ("'%s'.format([[duration('1s')]])", '[duration("1s")]'),
        ("'%s'.format([timestamp(0)])", "1970-01-01T00:00:00Z"),
        ("'%s'.format([[timestamp(0)]])", '[timestamp("1970-01-01T00:00:00Z")]'),
        ("'%s'.format([int])", "int"),
        ("'%s'.format([{1: true}])", "{1:true}"),
        ("'%s and %s'.format(['a', 'b'])", "a and b"),
        ("'%s'.format([5u])", "5"),
        ("''.format([])", ""),
    ],
)
def test_values_of_cels_own_types(expression, text):
    """Times, types, and maps whose keys are no texts."""
    assert value(expression) == text


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("%d", ["a"], "error during formatting: decimal clause can only be used on integers, was given string"),
        ("%d", [True], "error during formatting: decimal clause can only be used on integers, was given bool"),
        ("%f", [1], "error during formatting: fixed-point clause can only be used on doubles, was given int"),
        ("%e", [1], "error during formatting: scientific clause can only be used on doubles, was given int"),
        ("%f", ["x"], "error during formatting: fixed-point clause can only be used on doubles, was given string"),
        ("%o", ["a"], "error during formatting: octal clause can only be used on integers, was given string"),
        ("%s", [], "index 0 out of range"),
        (
            "%s",
            [b"\xff"],
            (
                'error during formatting: could not convert argument "invalid UTF-8 in bytes, cannot convert to string"'
                " to string"
            ),
        ),
        ("%s %s", ["a"], "index 1 out of range"),
        ("%", ["a"], "unexpected end of string"),
        ("%q", ["a"], 'could not parse formatting clause: unrecognized formatting clause "q"'),
        ("%S", ["a"], 'could not parse formatting clause: unrecognized formatting clause "S"'),
        (
            "%.",
            ["a"],
            (
                "could not parse formatting clause: error while parsing precision: could not find end of precision "
                "specifier"
            ),
        ),
        (
            "%.f",
            ["a"],
            (
                "could not parse formatting clause: error while parsing precision: error while converting precision to "
                'integer: strconv.Atoi: parsing "": invalid syntax'
            ),
        ),
    ],
)
def test_what_cannot_be_written_is_an_error(text, arguments, message):
    """In cel-go's words."""
    assert error("string(a).format(b)", a=text, b=arguments) == message


@pytest.mark.parametrize("inner", ["optional.of(1)", "url('/')", "quantity('1')"])
def test_some_values_have_no_text(inner):
    """Opaque ones, within lists too."""
    assert "was given" in error(f"string(a).format([dyn({inner})])", a="%s")
    assert "no formatting function for" in error(f"string(a).format([[dyn({inner})]])", a="%s")


@pytest.mark.property
@given(st.text(max_size=20))
def test_a_text_is_written_as_it_is(text):
    """And twice where there are two clauses."""
    assert formatted("%s", text) == text
    assert value("'%s%s'.format([a, a])", a=text) == text * 2


@pytest.mark.property
@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_are_those_of_python(number):
    """In each base."""
    assert formatted("%d %%", number) == f"{number} %"
    assert formatted("%x", number) == f"{number:x}"
    assert formatted("%o", number) == f"{number:o}"
    assert formatted("%b", number) == f"{number:b}"


@pytest.mark.property
@given(
    st.text(alphabet="%sdfexXob.0129 q", max_size=12),
    st.lists(st.none() | st.integers() | st.text(max_size=3), max_size=3),
)
def test_every_format_string_gives_a_text_or_an_error(text, arguments):
    """And never an exception of Python's."""
    outcome = ENVIRONMENT.compile("string(a).format(b)").evaluate({"a": text, "b": arguments}).outcome
    assert "internal error" not in getattr(outcome, "message", "")
