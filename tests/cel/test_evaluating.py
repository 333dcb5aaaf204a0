"""Evaluating: what is touched, what it costs, where it stops."""

import pytest

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.cel.budget import LARGEST_COST
from gateway.cel.match_conditions import compile_condition
from gateway.cel.program import EvaluationError, NeedsAuthorization
from tests.cel.world import Given, worked_out

CHECK = AuthorizationCheck(verb="get", path="/x")
CHECKS_PATH = "authorizer.path('/x').check('get').allowed()"


class Untouchable:
    """Variables that must not be read."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} was read")


class Guarded(dict):
    """An object of which only some members may be looked at."""

    def __iter__(self):
        raise AssertionError("all members were looked at")

    items = keys = values = __iter__


def evaluate(expression, answers=None, **variables):
    """The outcome of a condition."""
    return compile_condition(expression).evaluate(Given(**variables), answers or {}).outcome


def test_only_variables_that_are_named_are_asked_for():
    """A condition that names nothing is evaluated without anything being worked out for it."""
    assert compile_condition("1 < 2").evaluate(Untouchable(), {}).outcome is True


def test_only_members_that_are_named_are_looked_at():
    """The size of an object does not matter: it is not traversed."""
    named = Guarded(metadata=Guarded(name="a"))
    assert evaluate("object.metadata.name == 'a' && has(object.metadata.name)", object=named) is True


def test_a_condition_that_does_not_compile_is_an_error():
    """Its error is the outcome; nothing is raised."""
    condition = compile_condition("nope")
    assert condition.evaluate(Untouchable(), {}).outcome == EvaluationError(message=condition.error)


def test_whatever_a_variable_raises_becomes_the_expressions_error():
    """Evaluating never raises."""
    assert "internal error" in compile_condition("object.a == 1").evaluate(Untouchable(), {}).outcome.message


def test_integers_beyond_64_bits_are_doubles():
    """As in the API server, which reads them as float64."""
    assert evaluate("type(object.a) == double && object.a == 1e20", object={"a": 10**20}) is True


def test_one_and_one_point_nought_are_different_types():
    """JSON's 1 is an int and 1.0 a double; they are equal."""
    given = {"a": 1, "b": 1.0}
    assert evaluate("type(object.a) == int && type(object.b) == double && object.a == object.b", object=given) is True


def test_true_is_not_one():
    """Python's true equals 1, CEL's does not: neither in a comparison, nor in a list, nor as a key."""
    given = {"a": True, "b": [1], "c": {"k": 1}}
    assert evaluate("object.a != 1 && !(object.a in object.b) && object.c != {'k': dyn(true)}", object=given) is True


# ------------------------------------------------------------------------------------------- authorizations
def test_a_check_without_an_answer_is_asked_for():
    """The outcome has the check that is needed; with the answer the condition has its value."""
    assert evaluate(CHECKS_PATH) == NeedsAuthorization(check=CHECK)
    assert evaluate(CHECKS_PATH, {CHECK: Authorization(allowed=True)}) is True
    assert evaluate(CHECKS_PATH, {CHECK: Authorization()}) is False


@pytest.mark.parametrize(
    ("expression", "outcome"),
    [
        (f"{CHECKS_PATH} && false", False),
        (f"false && {CHECKS_PATH}", False),
        (f"{CHECKS_PATH} || true", True),
        (f"[1, 2].exists(x, {CHECKS_PATH} || x == 2)", True),
        (f"[1, 2].all(x, {CHECKS_PATH} && x == 1)", False),
        (f"{CHECKS_PATH} && object.nope", NeedsAuthorization(check=CHECK)),
        (f"object.nope && {CHECKS_PATH}", NeedsAuthorization(check=CHECK)),
        (f"object.nope || {CHECKS_PATH}", NeedsAuthorization(check=CHECK)),
        (f"true ? true : {CHECKS_PATH}", True),
        (f"object.nope == {CHECKS_PATH}", EvaluationError(message="no such key: nope")),
    ],
)
def test_a_check_is_asked_for_only_if_its_answer_matters(expression, outcome):
    """What a false or a true settles is settled; an error is not, since the answer may settle it."""
    assert evaluate(expression) == outcome


def test_what_is_asked_about_is_all_there():
    """A check has everything in the expression, and its user."""
    resource = "group('apps').resource('deployments').subresource('scale').namespace('n').name('a')"
    selectors = "fieldSelector('a=b').labelSelector('c=d')"
    outcome = evaluate(f"authorizer.serviceAccount('ns', 'sa').{resource}.{selectors}.check('list').allowed()")
    assert outcome.check == AuthorizationCheck(
        verb="list",
        service_account=("ns", "sa"),
        group="apps",
        resource="deployments",
        subresource="scale",
        namespace="n",
        name="a",
        field_selector="a=b",
        label_selector="c=d",
    )


def test_the_requests_own_resource():
    """authorizer.requestResource is the resource, namespace and name that the request is about."""
    assert evaluate("authorizer.requestResource.check('delete').allowed()").check == AuthorizationCheck(
        verb="delete", group="apps", resource="deployments", namespace="prod", name="web-1"
    )


def test_an_answer_with_an_error_is_not_allowed_and_says_so():
    """errored() and error() report it."""
    answers = {CHECK: Authorization(error="unavailable")}
    decision = CHECKS_PATH.removesuffix(".allowed()")
    assert evaluate(CHECKS_PATH, answers) is False
    assert evaluate(f"{decision}.errored() && {decision}.error() == 'unavailable'", answers) is True


def test_two_checks_are_affordable_and_three_are_not():
    """A check costs 350,000 of a million."""
    answers = {CHECK: Authorization(allowed=True)}
    assert evaluate(f"{CHECKS_PATH} && {CHECKS_PATH}", answers) is True
    assert "cost limit exceeded" in evaluate(f"{CHECKS_PATH} && {CHECKS_PATH} && {CHECKS_PATH}", answers).message


# -------------------------------------------------------------------------------------------------- budgets
@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(900).all(x, lists.range(900).all(y, x + y >= 0))",
        "lists.range(1000000000).size() > 1",
        "lists.range(3000).distinct().size() == 1",
        "lists.range(999999).map(x, 'aaaaaaaaaaaaaaaaaaaa').join('bbbbbbbbbbbbbbbb') != ''",
        "true || lists.range(1000000000).size() > 1 ? lists.range(1000000000).size() > 1 : true",
    ],
)
def test_what_costs_too_much_is_an_error(expression):
    """Kubernetes' limit and Kubernetes' words; nothing in the expression makes up for it."""
    assert evaluate(f"({expression}) || true") == EvaluationError(
        message="operation cancelled: actual cost limit exceeded"
    )


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(100000).all(x, object == oldObject)",
        "lists.range(90000).filter(x, '%s'.format([object]) == '').size() == 0",
        "lists.range(50000).all(x, dyn(object.text) + dyn(object.text) != '')",
        "lists.range(90000).all(x, [object.list].indexOf([]) == -1)",
    ],
)
def test_what_costs_little_and_takes_long_is_an_error(expression):
    """Work that Kubernetes' counting does not know of is counted as well, and stops."""
    large = {"list": ["a"] * 3000, "text": "a" * 300_000}
    assert evaluate(expression, object=large, oldObject=dict(large)) == EvaluationError(message="operation interrupted")


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+$b", "(a?){500}a{500}b"])
def test_regular_expressions_take_linear_time(pattern):
    """What takes a backtracking engine for ever is soon done."""
    assert evaluate(f"object.text.matches('{pattern}')", object={"text": "a" * 5000}) is False


def test_a_cost_is_reported_with_each_outcome():
    """The conditions of a webhook have a budget together."""
    evaluation = compile_condition("object.spec.replicas == 3").evaluate(Given(), {})
    assert (evaluation.outcome, evaluation.cost) == (True, 4)


def test_a_cost_beyond_the_limit_is_reported_too():
    """Kubernetes takes it from the webhook's budget."""
    evaluation = compile_condition("lists.range(900).all(x, lists.range(900).all(y, true))").evaluate(Given(), {})
    assert evaluation.cost > LARGEST_COST


def test_a_chain_that_doubles_at_every_link_ends():
    """optMap works its target out twice, so a chain of them is exponential: in compiling, and in evaluating."""
    chain = "optional.of(1)" + ".optMap(x, x)" * 40 + ".hasValue()"
    assert "recursion" in compile_condition(chain).error
    assert worked_out("optional.of('aaaa')" + ".optMap(x, x + x)" * 12 + ".hasValue()").kind == "value"
