"""Evaluating: what is read, what comes out, what it costs."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.cel.environment import Environment
from gateway.cel.libraries.authorizer import Authorizer
from gateway.cel.program import Evaluation, EvaluationError, NeedsAuthorization

ENVIRONMENT = Environment({"a": "dyn", "b": "dyn", "authorizer": "kubernetes.authorization.Authorizer"})


class Recording(dict):
    """An activation that notes what is read."""

    def __init__(self, **values):
        super().__init__(values)
        self.read = []

    def __getitem__(self, name):
        self.read.append(name)
        return super().__getitem__(name)


def test_an_evaluation_is_an_outcome_and_a_cost():
    """As values."""
    assert ENVIRONMENT.compile("a + 1").evaluate({"a": 1}) == Evaluation(outcome=2, cost=2)


def test_only_variables_that_are_named_are_read_and_each_once():
    """However often they are named."""
    activation = Recording(a=1, b=2)
    ENVIRONMENT.compile("a + a == 2 || a == 5").evaluate(activation)
    assert activation.read == ["a"]


@pytest.mark.parametrize("activation", [{}, {"b": 1}])
def test_a_variable_that_is_not_given_is_an_error(activation):
    """Nothing is raised."""
    assert ENVIRONMENT.compile("a == 1").evaluate(activation) == Evaluation(
        outcome=EvaluationError(message="internal error: KeyError: 'a'"), cost=0
    )


def test_an_activation_is_not_changed():
    """Nor is anything in it."""
    activation = {"a": [3, 1, 2], "b": {"k": [1]}}
    ENVIRONMENT.compile("a.sort() + b.k + [a.size()]").evaluate(activation)
    assert activation == {"a": [3, 1, 2], "b": {"k": [1]}}


def test_what_python_raises_is_an_error_of_the_expression():
    """As cel-go does with a panic."""

    class Broken(dict):
        def get(self, key, default=None):
            raise OSError("no")

    outcome = ENVIRONMENT.compile("'x' in a").evaluate({"a": Broken(x=1)}).outcome
    assert outcome == EvaluationError(message="internal error: OSError: no")


def test_a_missing_answer_is_asked_for():
    """With it, the expression has its value."""
    program = ENVIRONMENT.compile("authorizer.path('/x').check('get').allowed()")
    check = AuthorizationCheck(verb="get", path="/x")
    assert program.evaluate({"authorizer": Authorizer({})}).outcome == NeedsAuthorization(check=check)
    assert program.evaluate({"authorizer": Authorizer({check: Authorization(allowed=True)})}).outcome is True


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_a_limit_is_the_largest_cost(limit):
    """What costs three is affordable with three."""
    outcome = ENVIRONMENT.compile("a.b.c").evaluate({"a": {"b": {"c": 1}}}, limit=limit).outcome
    assert (outcome == 1) == (limit >= 3)


def test_an_error_beyond_the_limit_is_that_of_the_limit():
    """What was said after the budget was spent does not count."""
    outcome = ENVIRONMENT.compile("a.b.c.nope").evaluate({"a": {"b": {"c": {}}}}, limit=1).outcome
    assert outcome.message == "operation cancelled: actual cost limit exceeded"


def test_a_program_can_be_evaluated_by_many_at_once():
    """It holds nothing of an evaluation."""
    program = ENVIRONMENT.compile("a.map(e, optional.of(e).optMap(f, f + b)).size()")
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda n: program.evaluate({"a": [1] * n, "b": n}).outcome, range(200))
        assert list(found) == list(range(200))


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "x", b"x", [1], {"a": 1}])
def test_a_value_comes_out_as_it_went_in(value):
    """Nothing is converted."""
    assert ENVIRONMENT.compile("a").evaluate({"a": value}).outcome == value
