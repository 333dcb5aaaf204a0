"""Compiling: what is an error, and its text."""

import pytest

from gateway.cel.match_conditions import compile_condition
from gateway.cel.parser import syntax_errors as wording
from tests.cel.world import worked_out


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        (
            "request.uid == ''",
            "compilation failed: ERROR: <input>:1:8: undefined field 'uid'\n | request.uid == ''\n | .......^",
        ),
        ("object.spec.paused", "must evaluate to bool but got dyn"),
        ("[1]", "must evaluate to bool but got list(int)"),
        (
            "1 == 1.0",
            (
                "compilation failed: ERROR: <input>:1:3: found no matching overload for '_==_' applied to "
                "'(int, double)'\n | 1 == 1.0\n | ..^"
            ),
        ),
        ("int('x') == 1", "program instantiation failed: type conversion error from 'string' to 'int'"),
        (
            "object.`a` == 1",
            "compilation failed: ERROR: <input>:1:8: unsupported syntax: '`'\n | object.`a` == 1\n | .......^",
        ),
    ],
)
def test_errors_are_reported_in_the_api_servers_words(expression, error):
    """Position, first line and the marked place are those of kube-apiserver."""
    assert compile_condition(expression).error == error


def test_all_errors_are_reported_at_once_in_the_order_of_the_text():
    """Every error has its line and column, the first in the text first."""
    error = compile_condition("b == 1 &&\n a == 2 && 1 == 'x'").error
    assert [
        line.split(": ")[1] for line in error.removeprefix("compilation failed: ").splitlines() if "ERR" in line
    ] == [
        "<input>:1:1",
        "<input>:2:2",
        "<input>:2:14",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "math.abs(1) == 1",
        "base64.encode(b'a') == 'x'",
        "cel.bind(x, 1, x == 1)",
        "'a'.reverse() == 'a'",
        "params == null",
    ],
)
def test_what_kubernetes_does_not_have_is_an_error(name):
    """Libraries of CEL that kube-apiserver does not enable, and variables of other policies, are not there."""
    assert compile_condition(name).error.startswith("compilation failed: ")


def test_wide_characters_are_marked_with_wide_dots():
    """The mark stands below its place also where characters are as wide as two."""
    error = compile_condition("'日本' == 1").error
    assert error.splitlines()[-1] == " | .．．..^"


@pytest.mark.parametrize("count", [250, 251, 252])
def test_operators_nest_as_deep_as_in_kubernetes(count):
    """251 terms of a sum are accepted; 252 are not."""
    found = worked_out("+".join(["1"] * count))
    assert found.kind == ("value" if count < 252 else "compile")


@pytest.mark.parametrize(
    ("opening", "closing"), [("(", ")"), ("[", "]"), ("int(", ")"), ("-(", ")"), ("true?1:(", ")")]
)
def test_endless_nesting_is_an_error_and_no_crash(opening, closing):
    """Thousands of levels are refused, whatever nests."""
    condition = compile_condition(opening * 5000 + "1" + closing * 5000)
    assert "recursion" in condition.error


def test_a_thousand_alternatives_are_not_deep():
    """Chains of && and || are kept as balanced trees."""
    assert compile_condition(" || ".join(["object.kind == 'x'"] * 1000)).error is None


def test_a_text_that_is_too_long_is_an_error():
    """100,000 code points are the limit."""
    assert compile_condition("'" + "a" * 100_000 + "' == ''").error == (
        "compilation failed: ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100008, limit 100000"
    )


def test_without_the_package_syntax_errors_have_our_own_words(monkeypatch):
    """A text that is no CEL has an error with its place, also without cel-go's words."""
    monkeypatch.setattr("gateway.cel.parser.syntax_errors._environment", lambda: None)
    compile_condition.cache_clear()
    error = compile_condition("object.a == ").error
    compile_condition.cache_clear()
    assert error.startswith("compilation failed: ERROR: <input>:1:13: Syntax error: mismatched input '<EOF>'")


def test_the_package_is_here():
    """These tests run with the package: else most of them would say nothing."""
    assert wording._environment() is not None
