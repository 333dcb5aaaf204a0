"""Regular expressions, in RE2's syntax and in linear time."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.libraries.regexes import pattern_error
from gateway.cel.program import EvaluationError
from tests.cel.evaluation import ENVIRONMENT, error, value


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'abc'.matches('b')", True),
        ("'abc'.matches('^b')", False),
        ("matches('abc', 'c$')", True),
        ("'日本'.matches('^..$')", True),
        ("'a\\nb'.matches('a.b')", False),
        ("'a\\nb'.matches('(?s)a.b')", True),
        ("'ABC'.matches('(?i)abc')", True),
        ("'abc 123'.find('[0-9]+')", "123"),
        ("'abc'.find('[0-9]+')", ""),
        ("'123 abc 456'.findAll('[0-9]+')", ["123", "456"]),
        ("'123 abc 456'.findAll('[0-9]+', 1)", ["123"]),
        ("'123 abc 456'.findAll('[0-9]+', 0)", []),
        ("'123 abc 456'.findAll('[0-9]+', -1)", ["123", "456"]),
        ("'abc'.findAll('x*')", ["", "", "", ""]),
        ("'axb'.findAll('x*')", ["", "x", ""]),
    ],
)
def test_what_a_function_comes_to(expression, expected):
    """Empty matches that touch the one before are left out, as in Go."""
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "missing closing ): `(`"),
        (")", "unexpected ): `)`"),
        ("[", "missing closing ]: `[`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("\\q", "invalid escape sequence: `\\q`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("\\C", "invalid escape sequence: `\\C`"),
    ],
)
def test_what_is_no_pattern_is_an_error_in_the_words_of_go(pattern, message):
    """As a constant it is a compile error, as a variable an evaluation error."""
    assert pattern_error(pattern) == f"error parsing regexp: {message}"
    assert error("'x'.matches(a)", a=pattern) == f"error parsing regexp: {message}"
    assert error("'x'.find(a)", a=pattern) == f"Illegal regex: error parsing regexp: {message}"


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+$b", "(a|a?)+$b", "(.*)(.*)(.*)(.*)(.*)[^a]$"])
def test_no_pattern_takes_long(pattern):
    """A backtracking engine would not come back."""
    assert value("a.matches(b)", a="a" * 20_000, b=pattern) is False


@pytest.mark.property
@given(st.text(alphabet="ab(|)*+?[]^$.{1,}\\dw-", max_size=16), st.text(alphabet="ab1-", max_size=30))
def test_every_pattern_matches_or_not_or_is_an_error(pattern, text):
    """And never anything else, whatever it is made of."""
    outcome = ENVIRONMENT.compile("a.matches(b)").evaluate({"a": text, "b": pattern}).outcome
    assert isinstance(outcome, bool | EvaluationError)
    if isinstance(outcome, EvaluationError):
        assert outcome.message.startswith("error parsing regexp: ")


@pytest.mark.property
@given(st.text(alphabet="ab.*+", max_size=6), st.text(alphabet="ab.*+", max_size=12))
def test_an_escaped_text_matches_where_it_is_contained(part, text):
    """Nothing in it means anything but itself."""
    assert value("a.matches(b)", a=text, b=re.escape(part)) is (part in text)
