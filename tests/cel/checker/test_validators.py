"""What is said of an expression that is well typed: constants, aggregates, format strings."""

import pytest

from tests.cel.evaluation import issues


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("duration('x') == a", "1:10: invalid duration argument"),
        ("duration('') == a", "1:10: invalid duration argument"),
        ("timestamp('x') == a", "1:11: invalid timestamp argument"),
        ("timestamp(253402300800) == a", "1:11: invalid timestamp argument"),
        ("timestamp('2023-02-29T00:00:00Z') == a", "1:11: invalid timestamp argument"),
        ("'a'.matches('(')", "1:13: invalid matches argument"),
        ("string(a).matches('[z-a]')", "1:19: invalid matches argument"),
        ("matches('(', string(a))", "1:9: invalid matches argument"),
    ],
)
def test_a_constant_that_cannot_be_is_an_error(expression, problem):
    """At the constant. Of the global ``matches`` it is the text that cel-go looks at."""
    assert issues(expression) == [problem]


@pytest.mark.parametrize(
    "expression",
    [
        "duration('1h') == a",
        "timestamp(0) == a",
        "timestamp('2024-02-29T00:00:00Z') == a",
        "'a'.matches('a+')",
        "duration(string(a)) == b",
        "'a'.matches(string(a))",
        "timestamp(int(a)) == b",
    ],
)
def test_other_constants_and_what_is_no_constant_are_fine(expression):
    """What is worked out later is looked at later."""
    assert issues(expression) == []


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("[1, 'a']", "1:5: expected type 'int' but found 'string'"),
        ("[1, 'a', true]", "1:5: expected type 'int' but found 'string'"),
        ("[a, 1]", "1:5: expected type 'dyn' but found 'int'"),
        ("[[1], ['a']]", "1:7: expected type 'list(int)' but found 'list(string)'"),
        ("{'a': 1, 'b': 'c'}", "1:15: expected type 'int' but found 'string'"),
        ("{'a': 1, 2: 3}", "1:10: expected type 'string' but found 'int'"),
        ("[null, 1]", "1:8: expected type 'null' but found 'int'"),
        ("[?a]", "1:3: expected type 'optional_type(dyn)' but found 'dyn'"),
        ("{?'x': a}", "1:8: expected type 'optional_type(dyn)' but found 'dyn'"),
    ],
)
def test_an_aggregate_has_one_type(expression, problem):
    """Also where dyn would permit more."""
    assert issues(expression) == [problem]


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 2]",
        "[a, b]",
        "[dyn(1), dyn('a')]",
        "[[], []]",
        "{'a': 1, 'b': 2}",
        "[?optional.of(1), 2]",
        "[a.b, c]",
        "'%s %d'.format(['a', 1])",
        "{'x': [1]}",
        "[{}, {}]",
    ],
)
def test_aggregates_of_one_type_are_fine(expression):
    """And the arguments of a format string may be of any."""
    assert issues(expression) == []


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        (
            "'%d'.format(['a'])",
            "1:14: error during formatting: decimal clause can only be used on integers, was given string",
        ),
        ("'%s'.format([])", "1:12: index 0 out of range"),
        ("'%s'.format([1, 2])", "1:12: too many arguments supplied to string.format (expected 1, got 2)"),
        ("'%'.format([1])", "1:11: unexpected end of string"),
        (
            "'%q'.format([1])",
            '1:12: could not parse formatting clause: unrecognized formatting clause "q"',
        ),
        (
            "'%s'.format([url('/')])",
            (
                "1:17: error during formatting: string clause can only be used on strings, bools, bytes, ints, "
                "doubles, maps, lists, types, durations, and timestamps, was given kubernetes.URL"
            ),
        ),
    ],
)
def test_a_format_string_goes_with_its_arguments(expression, problem):
    """Where both are written out."""
    assert issues(expression) == [problem]


@pytest.mark.parametrize(
    "expression",
    ["'%d'.format([a])", "string(a).format([1])", "'%d'.format(a)", "'%s'.format([{'k': [1]}])", "'%%'.format([])"],
)
def test_a_format_string_of_what_is_not_known_is_fine(expression):
    """It may still fail at run time."""
    assert issues(expression) == []


def test_constants_are_said_before_aggregates_and_format_strings():
    """Each kind of error in the order of cel-go's validators, then all by their place."""
    found = issues("[1, 'a'] == a || '%d'.format(['a']) == a || duration('x') == a")
    assert [each.partition(" ")[2] for each in found] == [
        "expected type 'int' but found 'string'",
        "error during formatting: decimal clause can only be used on integers, was given string",
        "invalid duration argument",
    ]
