"""Expressions with variables of any type, in one call: their value, their error, their cost, their issues."""

from gateway.cel.environment import CompileError, Environment
from gateway.cel.program import EvaluationError

ENVIRONMENT = Environment(dict.fromkeys("abcxyz", "dyn"))
"""The variables a, b, c, x, y and z, all dyn."""


def evaluate(expression, **variables):
    """The outcome and the cost."""
    return ENVIRONMENT.compile(expression).evaluate(variables)


def value(expression, **variables):
    """The value, which there must be."""
    outcome = evaluate(expression, **variables).outcome
    assert not isinstance(outcome, EvaluationError), outcome.message
    return outcome


def error(expression, **variables):
    """The message of the error, which there must be."""
    outcome = evaluate(expression, **variables).outcome
    assert isinstance(outcome, EvaluationError), outcome
    return outcome.message


def cost(expression, **variables):
    """What it costs, whatever comes of it."""
    return evaluate(expression, **variables).cost


def issues(expression, environment=ENVIRONMENT):
    """What the compiler says: place and message of each problem, or the whole text where there is no place."""
    try:
        environment.compile(expression)
    except CompileError as wrong:
        lines = str(wrong).removeprefix("compilation failed: ").splitlines()
        return [line.removeprefix("ERROR: <input>:") for line in lines if not line.startswith(" | ")]
    return []
