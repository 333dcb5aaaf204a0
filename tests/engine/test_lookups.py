"""Facts that matching lacks: looked up once for a whole review, and waited for no longer than a policy's own time."""

import pytest

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.cel.match_conditions import compile_condition
from gateway.engine.answer_source import Source
from gateway.engine.decision import Outcome
from gateway.engine.engine import Engine
from gateway.engine.steps import AuthorizationLookup, EvaluationLookup
from gateway.engine.verdicts import Allow
from gateway.matching.outcomes import Unknown
from gateway.policies.model import FailurePolicy, MatchCondition, Phase, ReinvocationPolicy, Requirement, Selector
from gateway.reasons import Reason
from tests.world import QUADRATIC, World, condition, decide, label, large, plan, policy, request, when_authorized

CHECK = AuthorizationCheck(verb="get", resource="pods", group="apps", subresource="log", name="p")
MAY = condition(when_authorized(CHECK))
PROD = Selector(requirements=(Requirement(key="env", operator="In", values=("prod",)),))
YES = {CHECK: Authorization(allowed=True)}
IGNORE = {"failure_policy": FailurePolicy.IGNORE}
NEVER = float("inf")
LONG = MatchCondition(name="long", condition=compile_condition(QUADRATIC))
VALIDATING = {"phase": Phase.VALIDATING}


@pytest.mark.parametrize(
    ("authorization", "called", "outcome"),
    [
        (Authorization(allowed=True), ["a"], Outcome.ALLOWED),
        (Authorization(allowed=False), [], Outcome.ALLOWED),
        (Unknown(message="not in a cluster"), [], Outcome.FAILED),
    ],
    ids=["allowed", "not allowed", "unknown"],
)
def test_an_authorization_is_called_for_and_matching_goes_on(authorization, called, outcome):
    """Matched, not matched, or an error of the condition."""
    decision, world = decide(
        [policy("a", match_conditions=(MAY,))], {"a": Allow()}, authorizations={CHECK: authorization}
    )
    assert world.called() == called
    assert decision.outcome is outcome


def test_an_call_for_an_authorization_carries_the_requests_user():
    """authorizer means the user of the request unless the check names a service account."""
    on = request(userInfo={"username": "alice", "groups": ["dev"], "extra": {"scopes": ["x"]}})
    _, world = decide([policy("a", match_conditions=(MAY,))], {"a": Allow()}, on=on, authorizations=YES)
    (lookup,) = world.lookups
    assert isinstance(lookup, AuthorizationLookup)
    assert (lookup.check, lookup.user.username, lookup.user.groups) == (CHECK, "alice", ["dev"])
    assert lookup.user.extra == {"scopes": ["x"]}


def test_a_check_is_called_once_for_a_whole_review():
    """Two policies at once, and a second round: one lookup."""
    pair = [policy(name, index=index, match_conditions=(MAY,), **VALIDATING) for index, name in enumerate("ab")]
    _, world = decide(pair, {"a": Allow(), "b": Allow()}, authorizations=YES)
    assert (len(world.lookups), world.called()) == (1, ["a", "b"])
    chain = [
        policy("a", match_conditions=(MAY,), reinvocation_policy=ReinvocationPolicy.IF_NEEDED),
        policy("b", index=1),
    ]
    _, world = decide(chain, {"a": Allow(), "b": label("x")}, authorizations=YES)
    assert (len(world.lookups), world.called()) == (1, ["a", "b", "a"])


def test_other_checks_and_namespaces_are_other_facts():
    """No answer is used for another check."""
    other = AuthorizationCheck(verb="list", resource="pods")
    both = (MAY, condition(when_authorized(other)))
    chosen = policy("a", match_conditions=both, namespace_selector=PROD)
    allowed = {CHECK: Authorization(allowed=True), other: Authorization(allowed=True)}
    _, world = decide([chosen], {"a": Allow()}, authorizations=allowed, namespaces={"t": {"env": "prod"}})
    assert [type(lookup).__name__ for lookup in world.lookups] == [
        "NamespaceLookup",
        "AuthorizationLookup",
        "AuthorizationLookup",
    ]
    assert world.called() == ["a"]


def test_no_authorization_is_called_where_another_condition_is_false():
    """It could change nothing."""
    _, world = decide([policy("a", match_conditions=(MAY, condition(False)))], {})
    assert world.lookups == []


LATE = [
    ({"namespace_selector": PROD}, Reason.NAMESPACE_UNKNOWN, "namespace 't'"),
    ({"match_conditions": (MAY,)}, Reason.CONDITION_ERROR, "get pods.apps/log 'p'"),
]


@pytest.mark.parametrize(("fields", "reason", "about"), LATE)
def test_a_lookup_that_never_ends_is_a_failure_in_time(fields, reason, about):
    """The policy's own time bounds it, and the failure says what was not known."""
    decision, _ = decide([policy("a", timeout=1.0, **fields)], {}, lookup_latency=NEVER)
    assert decision.ended - decision.started == 1.0
    assert decision.calls[0].answer.reason is reason
    assert about in decision.calls[0].answer.message


@pytest.mark.parametrize(("fields", "reason", "about"), LATE)
def test_a_lookup_that_is_late_goes_to_failure_policy(fields, reason, about):
    """A failed lookup does not mean that the namespace is missing."""
    decision, _ = decide([policy("a", timeout=1.0, **fields, **IGNORE)], {}, lookup_latency=NEVER)
    assert decision.response.allowed
    assert decision.calls[0].failed_open


@pytest.mark.parametrize(("fields", "reason", "about"), LATE)
def test_a_lookup_at_the_end_of_the_budget_is_the_budgets(fields, reason, about):
    """Whose time it was."""
    decision, _ = decide([policy("a", timeout=5.0, **fields)], {}, lookup_latency=NEVER, budget=2.0)
    assert decision.calls[0].answer.reason is Reason.BUDGET_EXHAUSTED
    assert about in decision.calls[0].answer.message


def test_a_lookup_that_is_under_way_is_not_made_again():
    """A later turn joins it, and its result serves every policy that still waits."""
    chain = [
        policy(name, index=index, timeout=1.0, match_conditions=(MAY,), **IGNORE) for index, name in enumerate("abc")
    ]
    decision, world = decide(chain, {"b": Allow(), "c": Allow()}, lookup_latency=1.5, authorizations=YES)
    assert len(world.lookups) == 1
    assert world.called() == ["b", "c"]
    assert decision.calls[0].answer.reason is Reason.CONDITION_ERROR


def test_the_time_of_a_lookup_is_not_the_workers():
    """timeoutSeconds begins anew when the worker is called."""
    _, world = decide(
        [policy("a", timeout=1.0, match_conditions=(MAY,))], {"a": Allow()}, lookup_latency=0.9, authorizations=YES
    )
    assert [(when, policy_call.deadline) for when, policy_call in world.calls] == [(100.9, 101.9)]


def test_in_the_second_round_a_late_lookup_concerns_only_who_is_marked():
    """A policy that would not be called again does not fail open."""
    other = AuthorizationCheck(verb="list", resource="pods")
    now_another = condition(
        lambda variables, known: (
            when_authorized(other)(variables, known) if variables.object["metadata"]["labels"] else True
        )
    )
    world = World(behaviours={"a": Allow(), "b": label("one")}, lookup_latency=NEVER)
    chain = [policy("a", timeout=1.0, match_conditions=(now_another,), **IGNORE), policy("b", index=1)]
    decision = world.decide(Engine(request(), plan(*chain), ends=200.0))
    assert len(world.lookups) == 1
    assert [(call.round, call.policy.policy) for call in decision.calls] == [(0, "a"), (0, "b")]
    assert decision.response.warnings == ()


def test_when_the_api_server_hangs_up_what_is_found_changes_nothing():
    """No policy waits any more."""
    engine = Engine(request(), plan(policy("a", match_conditions=(MAY,))), ends=200.0)
    (lookup,) = engine.start(100.0).lookups
    (waiting,) = engine.abandoned(100.5).decision.calls
    assert (waiting.answer, waiting.call, waiting.source) == (None, None, Source.NONE)
    step = engine.found(lookup.id, Authorization(allowed=True), 101.0)
    assert (step.calls, step.decision) == ((), None)


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("prefetch", [False, True])
@pytest.mark.parametrize(
    ("expression", "called"), [(QUADRATIC, ["a", "b"]), (f"!({QUADRATIC})", []), (f"{QUADRATIC} && object.nope", None)]
)
def test_a_long_evaluation_is_finished_by_the_driver(phase, prefetch, expression, called):
    """Once for both policies, and the review goes on with its result."""
    long = MatchCondition(name="long", condition=compile_condition(expression))
    pair = [policy(name, index=index, match_conditions=(long,), phase=phase) for index, name in enumerate("ab")]
    decision, world = decide(pair, {"a": Allow(), "b": Allow()}, on=large(), prefetch=prefetch)
    assert [type(lookup) for lookup in world.lookups] == [EvaluationLookup]
    if called is None:
        assert decision.calls[0].answer.reason is Reason.CONDITION_ERROR
        assert "no such key: nope" in decision.calls[0].answer.message
    else:
        assert world.called() == called


def test_a_changed_object_is_evaluated_again():
    """The result holds for the object that it was made for."""
    pair = [policy("a"), policy("b", index=1, match_conditions=(LONG,)), policy("c", index=2, match_conditions=(LONG,))]
    _, world = decide(pair, {"a": Allow(), "b": label("x"), "c": Allow()}, on=large())
    assert world.called() == ["a", "b", "c"]
    assert len(world.lookups) == 2


def test_many_short_conditions_are_no_long_one():
    """What takes more than its share together is finished by the driver, one after the other."""
    short = [
        MatchCondition(name=f"c{number}", condition=compile_condition(f"{number} >= 0 && {QUADRATIC}"))
        for number in range(8)
    ]
    each = policy("a", match_conditions=tuple(short))
    _, world = decide([each], {"a": Allow()}, on=large(60))
    assert world.called() == ["a"]
    assert 4 <= len(world.lookups) <= 8
    _, world = decide([each], {"a": Allow()}, on=large(5))
    assert (world.called(), world.lookups) == (["a"], [])


def test_a_long_evaluation_is_waited_for_no_longer_than_the_policys_time():
    """The failure names the condition."""
    decision, _ = decide([policy("a", timeout=1.0, match_conditions=(LONG,))], {}, on=large(), lookup_latency=NEVER)
    assert decision.ended - decision.started == 1.0
    assert decision.calls[0].answer.reason is Reason.CONDITION_ERROR
    assert "matchCondition 'long'" in decision.calls[0].answer.message
