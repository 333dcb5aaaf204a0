"""The operators that do not need all their operands, and aggregates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.environment import Environment
from gateway.cel.program import EvaluationError
from tests.cel.evaluation import ENVIRONMENT, cost, error, issues, value

OUTCOMES = ["true", "false", "a.nope"]


def outcome(expression):
    found = ENVIRONMENT.compile(expression).evaluate({"a": {}, "b": 1}).outcome
    return "error" if isinstance(found, EvaluationError) else found


def kleene(one, other, settling):
    """Three-valued logic: an error unless the other side settles it."""
    if settling in {one, other}:
        return settling == "true"
    return "error" if "a.nope" in {one, other} else settling != "true"


@pytest.mark.parametrize("one", OUTCOMES)
@pytest.mark.parametrize("other", OUTCOMES)
@pytest.mark.parametrize(("operator", "settling"), [("||", "true"), ("&&", "false")])
def test_a_side_that_settles_it_settles_it(one, other, operator, settling):
    """On whichever side, and whatever the other is."""
    assert outcome(f"{one} {operator} {other}") == kleene(one, other, settling)


def test_of_two_errors_the_first_is_kept():
    """From left to right."""
    assert error("a.x || a.y", a={}) == "no such key: x"


def test_what_is_no_bool_is_an_error_that_may_be_made_up_for():
    """As any other."""
    assert error("b && true", b=1) == "no such overload"
    assert value("b || true", b=1) is True


@pytest.mark.property
@given(st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=6))
def test_all_and_exists_are_chains_of_and_and_or(outcomes):
    """Over the elements: the same value, or an error in the same cases."""
    tests = "[{}]".format(", ".join(str(index) for index in range(len(outcomes))))
    body = " : ".join([*(f"e == {i} ? {each}" for i, each in enumerate(outcomes)), "false"])
    assert outcome(f"{tests}.all(e, {body})") == outcome(" && ".join(outcomes))
    assert outcome(f"{tests}.exists(e, {body})") == outcome(" || ".join(outcomes))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true ? 1 : a.nope", 1),
        ("false ? a.nope : 2", 2),
        ("optional.of(1).or(a.nope).value()", 1),
        ("optional.of(1).orValue(a.nope)", 1),
        ("optional.none().or(optional.of(2)).value()", 2),
        ("optional.none().orValue(2)", 2),
        ("a.nope == 1 || true", True),
        ("[a.?nope, a.?nope].size()", 2),
    ],
)
def test_what_is_not_needed_is_not_worked_out(expression, expected):
    """So it cannot be an error."""
    assert value(expression, a={}) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[1, 2]", [1, 2]),
        ("[?optional.of(1), ?optional.none(), 2]", [1, 2]),
        ("{'a': 1}", {"a": 1}),
        ("{?'a': optional.of(1), ?'b': optional.none()}", {"a": 1}),
        ("{'a': 1, ?'a': optional.none()}", {}),
        ("{'a': 1, 'a': 2}", {"a": 2}),
    ],
)
def test_optional_parts_appear_if_they_have_a_value(expression, expected):
    """In lists and in maps. An optional entry without a value takes an earlier one away."""
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("{a.nope: 1}", "no such key: nope"),
        ("[a.nope]", "no such key: nope"),
    ],
)
def test_an_error_in_a_part_is_the_aggregates(expression, message):
    """There is no list with an error in it."""
    assert error(expression, a={}) == message


@pytest.mark.parametrize("one", ["1", "a.nope", "'x'", "quantity('1')"])
@pytest.mark.parametrize("other", ["1", "a.nope", "'x'", "quantity('1')"])
def test_different_is_not_equal_or_there_was_an_error_in_the_comparison(one, other):
    """An error of an operand is one of both; an error of comparing makes them different."""
    equal, different = outcome(f"dyn({one}) == dyn({other})"), outcome(f"dyn({one}) != dyn({other})")
    if "a.nope" in {one, other}:
        assert equal == different == "error"
    else:
        assert different is (equal is not True)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[b]", 11),
        ("[1, 2]", 0),
        ("{'x': b}", 31),
        ("{'x': 1}", 0),
        ("google.protobuf.Int64Value{value: 1}", 40),
        ("b == 1", 2),
        ("b == 1 && b == 1", 4),
        ("b == 1 || b == 1", 2),
        ("true", 0),
    ],
)
def test_what_it_costs(expression, expected):
    """A list 10, a map 30, a message 40; constants nothing; what is not worked out nothing."""
    assert cost(expression, b=1) == expected


DECLARED = Environment({"o": "optional_type(int)", "p": "a.Pod"}, messages={"a.Pod": {"name": "string"}})


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[?o]", "cannot initialize optional list element from non-optional value 5"),
        ("{?'k': o}", "cannot initialize optional entry 'k' from non-optional value 5"),
        ("a.Pod{name: 'x'}", "unknown type 'a.Pod'"),
    ],
)
def test_a_value_that_is_not_what_was_declared_is_an_error(expression, message):
    """Nor can a message of the environment be made: it only comes from outside."""
    assert DECLARED.compile(expression).evaluate({"o": 5}).outcome == EvaluationError(message=message)


def test_the_name_of_a_message_is_no_value():
    """It can be made of nothing."""
    assert issues("type(p) == a.Pod", DECLARED) == ["program instantiation failed: reference to undefined type: a.Pod"]
