"""Calls of functions: which implementation, and what becomes of wrong arguments."""

import pytest

from gateway.cel.program import EvaluationError
from tests.cel.evaluation import ENVIRONMENT, cost, error, value


@pytest.mark.parametrize(
    ("expression", "variables", "message"),
    [
        ("a.lowerAscii()", {"a": 1}, "no such overload: lowerAscii(int)"),
        ("a.replace('x', 'y')", {"a": [1]}, "no such overload: replace(list, string, string)"),
        ("a.join()", {"a": [1]}, "no such overload: join(list)"),
        ("a.join()", {"a": {}}, "no such overload: join(map)"),
        ("string(a)", {"a": []}, "no such overload: string(list)"),
        ("int(a)", {"a": None}, "no such overload: int(null_type)"),
        ("a.getHours()", {"a": "x"}, "no such overload: getHours(string)"),
        ("a.size()", {"a": 1}, "no such overload: size"),
        ("a.size()", {"a": True}, "no such overload: size"),
        ("a.startsWith('x')", {"a": 1}, "no such overload"),
        ("'x'.startsWith(a)", {"a": 1}, "no such overload"),
        ("a.matches('x')", {"a": 1}, "no such overload"),
        ("a.matches(b)", {"a": 1, "b": "x"}, "no such overload: matches"),
        ("a.matches(b)", {"a": "x", "b": 1}, "no such overload"),
        ("quantity(a)", {"a": 1}, "no such overload: quantity(int)"),
    ],
)
def test_an_argument_of_the_wrong_type_is_an_error(expression, variables, message):
    """The checker could not know. The function is named, unless it looks at its arguments itself."""
    assert error(expression, **variables) == message


@pytest.mark.parametrize(
    ("variable", "expected"), [(1, "1"), (1.5, "1.5"), (True, "true"), ("a", "a"), (b"a", "a"), (None, None)]
)
def test_of_several_overloads_the_first_that_fits_is_called(variable, expected):
    """By the values' types."""
    if expected is None:
        assert error("string(a)", a=variable) == "no such overload: string(null_type)"
    else:
        assert value("string(a)", a=variable) == expected


def test_only_the_first_element_of_a_list_is_looked_at():
    """As in cel-go: the function finds the others."""
    assert error("a.join()", a=["x", 1]) == "join: invalid input: 1"
    assert error("a.join()", a=["x", True]) == "join: invalid input: true"


def test_the_first_error_is_the_calls():
    """Arguments are worked out from left to right."""
    assert error("a.x + a.y", a={}) == "no such key: x"
    assert error("a.x.replace(a.y, a.z)", a={}) == "no such key: x"


def test_a_call_with_an_error_costs_as_much_as_cel_go_counts():
    """Of two arguments it works out both, and counts the call; of three it does not."""
    assert cost("a.x + b.y", a={}, b={"y": 1}) == 5
    assert cost("a.x.replace(b.y, b.y)", a={}, b={"y": "z"}) == 2


@pytest.mark.parametrize(
    "expression",
    [
        *("a.x.contains(a.y)", "a.x.matches(a.y)", "a.x in a.y", "sets.contains(a.x, a.y)", "a.x < a.y"),
        *("size(a.x)", "a.x.sort()", "a.x.join(a.y)", "lists.range(a.x)", "a.x.distinct()", "a.x.indexOf(a.y)"),
        *("a.x.sum()",),
    ],
)
def test_an_error_in_an_argument_never_becomes_another_one(expression):
    """Whatever the call would cost, and however that is counted."""
    assert error(expression, a={}) == "no such key: x"


def test_a_function_may_end_the_whole_evaluation():
    """``||`` cannot make up for it."""
    program = ENVIRONMENT.compile("lists.range(100000000).size() > 0 || true")
    assert program.evaluate({}).outcome == EvaluationError(message="operation cancelled: actual cost limit exceeded")
