"""matchConditions: which outcome wins, what is said of errors, and what expressions see."""

import pytest

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.cel.budget import OUT_OF_BUDGET
from gateway.cel.match_conditions import compile_condition
from gateway.cel.program import EvaluationError, NeedsAuthorization
from gateway.matching.conditions import Variables
from gateway.matching.outcomes import Matched, NotMatched, Undecidable, Unknown
from gateway.matching.pipeline import Facts
from gateway.policies.model import EVERYTHING, MatchCondition, Requirement, Selector
from gateway.reasons import Reason
from tests.matching.lookup import matching
from tests.world import condition, policy, request, when_authorized

BROKEN = EvaluationError(message="no such key: nope")
CHECK = AuthorizationCheck(verb="get", resource="pods")
OTHER = AuthorizationCheck(verb="list", resource="pods")
NEEDS = when_authorized(CHECK)


def judged(*conditions, on=None, authorizations=None, current=None, **fields):
    about = on or request()
    chosen = policy("a", **({"rules": (EVERYTHING,)} | fields), match_conditions=conditions)
    facts = Facts(authorizations=authorizations or {})
    return matching(chosen, about, facts, current=None if current is None else lambda: current)


def test_all_true_is_matched():
    """ "All of the following conditions must be true"."""
    assert isinstance(judged(condition(True), condition(True)), Matched)


@pytest.mark.parametrize("other", [True, BROKEN, NEEDS], ids=["true", "error", "authorization"])
@pytest.mark.parametrize("last", [False, True])
def test_a_false_beats_everything_wherever_it_stands(other, last):
    """ "If any condition false, skip calling webhook always": no error is reported, no authorization called."""
    pair = [condition(False, "no"), condition(other, "other")]
    assert judged(*(pair[::-1] if last else pair)) == NotMatched(why="matchConditions: no")


@pytest.mark.parametrize("first", [True, False, BROKEN, NEEDS], ids=["true", "false", "error", "authorization"])
def test_conditions_that_cost_too_much_together_are_an_error(first):
    """ "running out of cost budget": 2,500,000 for a webhook, whatever its conditions say."""
    dear = [condition(first, cost=1_000_000), condition(True, cost=1_000_000), condition(True, cost=500_001)]
    result = judged(*dear)
    assert result.reason is Reason.CONDITION_ERROR
    assert result.message.endswith(f" is forbidden: {OUT_OF_BUDGET}")


def test_conditions_may_cost_all_of_the_budget():
    """The limit itself is within it."""
    dear = [condition(True, cost=1_000_000), condition(True, cost=1_000_000), condition(False, "no", cost=500_000)]
    assert judged(*dear) == NotMatched(why="matchConditions: no")


@pytest.mark.parametrize("order", [1, -1])
def test_an_authorization_is_called_for_in_spite_of_an_error(order):
    """Its answer may be a false, which beats the error: so nothing depends on what was known before."""
    pair = [condition(BROKEN), condition(NEEDS)][::order]
    assert judged(*pair) == NeedsAuthorization(check=CHECK)
    assert isinstance(judged(*pair, authorizations={CHECK: Authorization()}), NotMatched)
    assert isinstance(judged(*pair, authorizations={CHECK: Authorization(allowed=True)}), Undecidable)


def test_an_authorization_is_called_for_and_then_used():
    """First the lack of it, then what it says."""
    assert judged(condition(NEEDS)) == NeedsAuthorization(check=CHECK)
    assert isinstance(judged(condition(NEEDS), authorizations={CHECK: Authorization(allowed=True)}), Matched)
    assert isinstance(judged(condition(NEEDS), authorizations={CHECK: Authorization()}), NotMatched)


def test_an_unknown_authorization_is_an_error_and_not_a_no():
    """Although ``allowed()`` would be false for it: a policy for those who may not would be passed by."""
    failed = judged(condition(NEEDS), authorizations={CHECK: Unknown(message="not in a cluster")})
    assert failed.reason is Reason.CONDITION_ERROR
    assert failed.message.endswith("expression 'scripted' resulted in error: not in a cluster")


def test_several_authorizations_are_called_one_after_the_other():
    """Each brings the next."""
    both = condition(NEEDS), condition(when_authorized(OTHER))
    assert judged(*both, authorizations={CHECK: Authorization(allowed=True)}) == NeedsAuthorization(check=OTHER)


@pytest.mark.parametrize("fields", [{"object_selector"}, {"rules"}, {"namespace_selector"}])
def test_conditions_are_evaluated_only_after_all_of_that(fields):
    """They are not evaluated for a policy whose rules do not match, or that is unknown."""
    never = condition(lambda *_: pytest.fail("evaluated"))
    selector = Selector(requirements=(Requirement(key="x", operator="Exists"),))
    values = {"object_selector": selector, "namespace_selector": selector, "rules": ()}
    judged(never, **{field: values[field] for field in fields})


# ----------------------------------------------------------------------------------------------------- words


def test_an_error_is_reported_in_the_api_servers_words():
    """NewForbidden, with the client's own resource and name; the details that go with it."""
    result = judged(condition(BROKEN, expression="object.nope == 1"), on=request(name="c24"))
    assert result.reason is Reason.CONDITION_ERROR
    assert result.message == (
        """pods "c24" is forbidden: expression 'object.nope == 1' resulted in error: no such key: nope"""
    )
    assert result.details == {"name": "c24", "kind": "pods"}
    assert result.ignorable


@pytest.mark.parametrize(
    ("members", "begins"),
    [
        ({}, "pods is forbidden: "),
        ({"name": 'a"b\x07\u00e9\u0085'}, 'pods "a\\"b\\aé\\u0085" is forbidden: '),
        (
            {"name": "x", "requestResource": {"group": "extensions", "version": "v1", "resource": "deployments"}},
            'deployments.extensions "x" is forbidden: ',
        ),
    ],
    ids=["no name", "an odd name", "the original resource"],
)
def test_which_policy_an_error_is_about(members, begins):
    """As Go writes it."""
    assert judged(condition(BROKEN), on=request(**members)).message.startswith(begins)


def test_several_errors_are_an_aggregate():
    """utilerrors.NewAggregate: in brackets, in order, each once."""
    one, two = condition(BROKEN, expression="one"), condition(BROKEN, expression="two")
    message = judged(one, two, one, on=request(name="p")).message
    assert message == (
        "pods \"p\" is forbidden: [expression 'one' resulted in error: no such key: nope, "
        "expression 'two' resulted in error: no such key: nope]"
    )
    assert "[" not in judged(one, one, on=request(name="p")).message


def test_a_condition_that_does_not_compile_is_an_error_of_each_request():
    """Stored before the API server knew it was wrong, or written for another version."""
    wrong = condition(BROKEN, error="compilation failed: ERROR: <input>:1:1: undeclared reference")
    assert judged(wrong).message == (
        "pods is forbidden: compilation error: compilation failed: ERROR: <input>:1:1: undeclared reference"
    )


# ------------------------------------------------------------------------------------------- what they see


def test_the_request_is_as_create_admission_request_makes_it():
    """The delivered kind, the client's own resource; what is empty is absent; neither uid nor objects."""
    on = request(
        kind={"group": "apps", "version": "v1", "kind": "Deployment"},
        resource={"group": "apps", "version": "v1", "resource": "deployments"},
        requestKind={"group": "extensions", "version": "v1beta1", "kind": "Deployment"},
        requestResource={"group": "extensions", "version": "v1beta1", "resource": "deployments"},
        userInfo={"username": "alice", "uid": "", "groups": ["a"], "extra": {}},
        options={"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    )
    original = {"group": "extensions", "version": "v1beta1", "resource": "deployments"}
    assert Variables(on, lambda: None, {}).request == {
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": original,
        "requestKind": {"group": "extensions", "version": "v1beta1", "kind": "Deployment"},
        "requestResource": original,
        "namespace": "t",
        "operation": "CREATE",
        "userInfo": {"username": "alice", "groups": ["a"]},
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }


def test_subresource_name_and_null_options_appear_when_they_are_there():
    """A CONNECT: subResource twice, a name, options that are null."""
    on = request(subResource="exec", name="p", operation="CONNECT", options=None)
    seen = Variables(on, lambda: None, {}).request
    assert (seen["subResource"], seen["requestSubResource"], seen["name"]) == ("exec", "exec", "p")
    assert seen["options"] is None


def test_the_variable_request_is_made_once_for_all_policies():
    """When the first expression names it."""
    on, shown = request(), {}
    others = [Variables(on, lambda: None, shown) for _ in range(3)]
    assert not shown
    assert all(each.request is shown for each in others)
    assert shown == Variables(on, lambda: None, {}).request


def test_the_object_is_the_one_as_it_is_now():
    """After the policies before this one; the old one is what came."""
    update = request(operation="UPDATE", oldObject={"metadata": {"name": "old"}})
    seen = []
    judged(
        condition(lambda variables, _: seen.append((variables.object, variables.old_object)) or True),
        on=update,
        current={"metadata": {"labels": {"now": "1"}}},
    )
    assert seen == [({"metadata": {"labels": {"now": "1"}}}, {"metadata": {"name": "old"}})]


def cel(*expressions):
    made = [compile_condition(expression) for expression in expressions]
    return [MatchCondition(name=f"c{index}", condition=each) for index, each in enumerate(made)]


EXPRESSIONS = [
    ("request.operation == 'CREATE'", True),
    ("request.kind.kind == 'Pod' && request.resource.resource == 'pods'", True),
    ("has(request.subResource)", False),
    ("object.metadata.name == 'p'", True),
    ("oldObject == null", True),
    ("request.dryRun == true", False),
]


@pytest.mark.parametrize(("expression", "true"), EXPRESSIONS)
def test_real_expressions(expression, true):
    """CEL over the same variables."""
    assert isinstance(judged(*cel(expression)), Matched if true else NotMatched)


def test_a_real_error_is_an_error():
    """An absent member has no value."""
    result = judged(*cel("object.nope == 1"))
    assert (result.reason, "object.nope == 1" in result.message) == (Reason.CONDITION_ERROR, True)
