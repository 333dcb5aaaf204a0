"""What is worked out when planning, and costs nothing later."""

import pytest

from tests.cel.evaluation import ENVIRONMENT, cost, issues, value


@pytest.mark.parametrize(
    "expression",
    [
        *("1", "[1, 2, 3]", "{'a': [1]}", "int('5')", "duration('1h')", "timestamp(0)", "string(1.5)"),
        *("1 in []", "type(1)", "int"),
    ],
)
def test_constants_cost_nothing(expression):
    """Lists and maps of constants, conversions of a constant, names of types."""
    assert cost(expression) == 0


@pytest.mark.parametrize("expression", ["1 + 2", "'a' + 'b'", "size('a')", "[a]", "int(string(a))"])
def test_other_constant_expressions_are_worked_out_each_time(expression):
    """As in cel-go."""
    assert cost(expression, a=1) > 0


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("int('x')", "type conversion error from 'string' to 'int'"),
        ("uint(-1)", "unsigned integer overflow"),
        ("bool('maybe')", "type conversion error from 'string' to 'bool'"),
        ("double('x')", "type conversion error from 'string' to 'double'"),
        ("string(b'\\xff')", "invalid UTF-8 in bytes, cannot convert to string"),
        ("a.find('(')", "error parsing regexp: missing closing ): `(`"),
        ("a[null]", "invalid qualifier type: types.Null"),
        ("{b'a': 1}", "internal error: runtime error: hash of unhashable type types.Bytes"),
    ],
)
def test_a_constant_part_without_a_value_is_an_error(expression, message):
    """Of the whole expression, even where it would not be reached."""
    assert issues(expression) == [f"program instantiation failed: {message}"]
    assert issues(f"true || ({expression}) == a") == [f"program instantiation failed: {message}"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a in [1, 2]", True),
        ("a in [1u, 2u]", True),
        ("a in [1.0]", True),
        ("a in ['x']", False),
        ("a in [true]", False),
        ("a in []", False),
        ("b in ['x', 'y']", True),
        ("b in {'x': 1}", True),
    ],
)
def test_membership_in_a_constant_list_is_that_in_any(expression, expected):
    """It is only faster: the same value as in a list that is not constant."""
    assert value(expression, a=1, b="x") is expected
    assert value(expression.replace("[", "dyn([").replace("]", "])"), a=1, b="x") is expected


def test_membership_in_a_constant_list_costs_the_same_however_long_it_is():
    """The item, and nothing else."""
    assert cost("a in [1, 2]", a=1) == cost(f"a in {list(range(100))}", a=1) == 1


def test_a_message_type_that_a_message_literal_cannot_make_is_an_error():
    """The checker knows it, the values do not."""
    assert issues("net.IP{}") == ["1:7: 'net.IP' is not a message type"]


def test_one_program_can_be_evaluated_many_times():
    """Nothing is left of one evaluation in the next."""
    program = ENVIRONMENT.compile("a.map(e, optional.of(e).optMap(f, f + b)).size()")
    assert [program.evaluate({"a": [1] * n, "b": n}).outcome for n in (3, 0, 2)] == [3, 0, 2]


def test_the_same_error_comes_each_time():
    """A kept error is not kept for ever."""
    program = ENVIRONMENT.compile("optional.of(a.x).optMap(e, e).value()")
    assert program.evaluate({"a": {"x": 1}}).outcome == 1
    assert program.evaluate({"a": {}}).outcome.message == "no such key: x"
    assert program.evaluate({"a": {"x": 2}}).outcome == 2
