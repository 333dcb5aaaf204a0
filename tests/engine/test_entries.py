"""Plans of one entry: what the API server has checked by the registration is not checked again."""

import pytest

from gateway.cel.program import EvaluationError
from gateway.engine.plan import Described, make_plan
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import Phase, Requirement, Rule, Selector, SideEffects
from gateway.reasons import Reason
from tests.world import condition, decide, policy, request

ELSEWHERE = Rule(operations=("*",), api_groups=("x",), api_versions=("v9",), resources=("y",))
SELECTOR = Selector(requirements=(Requirement(key="env", operator="Exists"),))
NARROW = {
    "rules": {"rules": (ELSEWHERE,)},
    "version": {"rules": (Rule(operations=("*",), api_groups=("",), api_versions=("v9",), resources=("pods",)),)},
    "objectSelector": {"object_selector": SELECTOR},
    "namespaceSelector": {"namespace_selector": SELECTOR},
    "a false condition": {"match_conditions": (condition(False),)},
    "a condition error": {"match_conditions": (condition(EvaluationError(message="x")),)},
}


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("fields", NARROW.values(), ids=NARROW)
def test_a_policy_called_through_its_own_entry_is_called(fields, phase):
    """Whatever its rules, selectors and conditions would say here."""
    chosen = policy("a", phase=phase, isolate=True, **fields)
    decision, world = decide([chosen], {"a": Deny(message="no")}, registered=True)
    assert (world.called(), world.lookups) == (["a"], [])
    assert decision.response.status.message == "no"


@pytest.mark.parametrize("fields", NARROW.values(), ids=NARROW)
def test_the_same_policy_behind_a_path_for_all_is_matched(fields):
    """The registration of all says nothing about one."""
    _, world = decide([policy("a", isolate=True, **fields)], {"a": Allow()})
    assert world.called() == []


def test_what_is_not_registered_is_checked_all_the_same():
    """A dry run, and a policy that cannot be called."""
    effects = policy("a", side_effects=SideEffects.SOME)
    dry, _ = decide([effects], {"a": Allow()}, registered=True, on=request(dryRun=True))
    assert dry.calls[0].answer.reason is Reason.DRY_RUN_UNSUPPORTED
    faulty, _ = decide([policy("a", fault="x")], {"a": Allow()}, registered=True)
    assert faulty.calls[0].answer.reason is Reason.CONFIGURATION


def test_members_of_an_ordinary_plan_are_not_registered():
    """The default; and a plan that fails for overload keeps what it was."""
    one = policy("a")
    ordinary, own = (
        make_plan(one.phase, [one], {one.qualified_name: Described(version="1")}, registered=registered)
        for registered in (False, True)
    )
    elsewhere = request(resource={"group": "apps", "version": "v1", "resource": "deployments"})
    assert [bool(each.index.concerned(elsewhere)) for each in (ordinary, own)] == [False, True]
    failing = own.failing(Failure(reason=Reason.OVERLOADED, message="full"))
    assert failing.index is own.index
    assert own.members[0].version == "1"


def test_namesakes_are_distinguished():
    """v1beta1 permits two webhooks of one name in one configuration."""
    twins = [policy("a"), policy("a", index=1, namesake=True)]
    decision, _ = decide(twins, {"a": Allow()})
    assert [call.label for call in decision.calls] == ["test/a.test.example.com", "test/a.test.example.com[1]"]
