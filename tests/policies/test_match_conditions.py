"""matchConditions: Kubernetes' validation around the compiler's words, and what remains of those with an error."""

import pytest

from gateway.cel import match_conditions as module
from gateway.cel.condition import Condition
from gateway.policies.fields.match_conditions import MAX_COMPILED

ERROR = "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^"


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """A compiler that knows no foo; the expressions that it was given."""
    given = []

    def compile_condition(expression):
        given.append(expression)
        return Condition(expression=expression, error=ERROR if "foo" in expression else None)

    monkeypatch.setattr(module, "compile_condition", compile_condition)
    return given


def condition(expression="true", name="a"):
    """One element of matchConditions."""
    return {"name": name, "expression": expression}


def test_good_conditions(one_policy, compiled):
    """Conditions are kept in their order. They are judged without the blanks around them, and evaluated with them."""
    policy, loaded = one_policy({"matchConditions": [condition("true\n"), condition("1 == 1", "x.example.com/B")]})
    assert not loaded.errors
    assert [(each.name, each.condition.expression) for each in policy.match_conditions] == [
        ("a", "true\n"),
        ("x.example.com/B", "1 == 1"),
    ]
    assert compiled == ["true", "true\n", "1 == 1"]


def test_blanks_are_those_of_go(one_policy, compiled):
    """What Go takes for a blank is cut off; what only Python does is not."""
    one_policy({"matchConditions": [condition("\u00a0\u2003foo\u3000\x85"), condition("\x1ctrue\x1f", "b")]})
    assert compiled == ["foo", "\x1ctrue\x1f"]


def test_compile_error(one_policy):
    """The error for an invalid expression has it and the compiler's words; the condition stays, as an error."""
    policy, loaded = one_policy({"matchConditions": [condition("  foo "), condition("true", "b")]})
    (error,) = loaded.errors
    assert error.place.path == "policies[0].matchConditions[0].expression"
    assert error.message == f'Invalid value: "foo": {ERROR}'
    assert [each.condition.error for each in policy.match_conditions] == [ERROR, None]


def test_one_line(one_policy):
    """A compiler's message has several lines; an error, printed, and a fault have one."""
    policy, loaded = one_policy({"matchConditions": [condition("foo")]})
    assert str(loaded.errors[0]).endswith(r"(in container '')\n | foo\n | ^")
    assert "\n" not in policy.fault


def test_unreadable_conditions(one_policy, errors):
    """A condition that cannot be read at all is left out: the policy is called more often, never less."""
    policy, loaded = one_policy({"matchConditions": [5, condition(True), {"name": "b"}, condition(name="c")]})
    assert [each.name for each in policy.match_conditions] == ["c"]
    assert errors(loaded) == [
        'policies[0].matchConditions[0]: Invalid value: "integer": must be of type object',
        'policies[0].matchConditions[1].expression: Invalid value: "boolean": must be of type string',
        "policies[0].matchConditions[2].expression: Required value",
    ]


def test_far_too_many(one_policy, compiled):
    """Of a list that is far too long only the first are compiled; the message says how many there are."""
    _, loaded = one_policy({"matchConditions": [condition(name=f"n{i}") for i in range(2 * MAX_COMPILED)]})
    (error,) = loaded.errors
    assert error.message == f"Too many: {2 * MAX_COMPILED}: must have at most 64 items"
    assert len(compiled) == MAX_COMPILED


def test_compiled_by_the_real_compiler(one_policy, monkeypatch):
    """Without our hands in it, an expression is given to the room of conditions."""
    monkeypatch.undo()
    policy, loaded = one_policy({"matchConditions": [condition("request.operation == 'CREATE'")]})
    assert not loaded.errors
    assert policy.match_conditions[0].condition.error is None
