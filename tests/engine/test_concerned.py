"""A review touches the policies that have a rule for its request; the others are recorded on demand."""

import pytest

from gateway.engine.engine import Engine
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import Phase, ReinvocationPolicy, Rule
from gateway.reasons import Reason
from tests.world import decide, label, plan, policy, request

OTHERS = Rule(operations=("*",), api_groups=("",), api_versions=("v1",), resources=("secrets",))
PHASES = pytest.mark.parametrize("phase", Phase)


def chain(phase, *names):
    """Policies in a row; those with an upper-case name are about something else."""
    return [
        policy(name.lower(), phase=phase, index=index, **({"rules": (OTHERS,)} if name.isupper() else {}))
        for index, name in enumerate(names)
    ]


def reported(decision):
    return [(call.round, call.policy.policy, call.why) for call in decision.all_calls]


@PHASES
def test_nothing_is_made_for_policies_that_are_about_something_else(monkeypatch, phase):
    """Of a thousand and two policies, two have a turn and a record."""
    made = {"gateway.engine.chain.PolicyInvocation": 0, "gateway.engine.review_state.InvocationRecord": 0}

    def counted(where, kind):
        def make(**fields):
            made[where] += 1
            return kind(**fields)

        return make

    for where in made:
        module, _, name = where.rpartition(".")
        kind = getattr(__import__(module, fromlist=[name]), name)
        monkeypatch.setattr(where, counted(where, kind))
    policies = chain(phase, "a", *["X"] * 1000, "b")
    decision, _ = decide(policies, {"a": Allow(), "b": Allow()})
    assert list(made.values()) == [2, 2]
    assert [call.index for call in decision.calls] == [0, 1001]


@PHASES
def test_all_calls_record_the_others_in_their_places(phase):
    """Each policy is recorded once, in chain order, with the field that says no."""
    decision, _ = decide(chain(phase, "X", "a", "Y", "b", "Z"), {"a": Allow(), "b": Allow()})
    assert reported(decision) == [(0, "x", "rules"), (0, "a", ""), (0, "y", "rules"), (0, "b", ""), (0, "z", "rules")]
    assert decision.all_calls is decision.all_calls


def test_after_a_refusal_no_policy_is_recorded():
    """In a mutating chain; the turn of who stands behind has not come."""
    decision, _ = decide(chain(Phase.MUTATING, "X", "a", "Y", "b"), {"a": Deny(message="no"), "b": Allow()})
    assert reported(decision) == [(0, "x", "rules"), (0, "a", "")]


def test_while_validating_a_refusal_ends_nothing():
    """All of them are recorded."""
    decision, _ = decide(chain(Phase.VALIDATING, "X", "a", "Y", "b"), {"a": Deny(message="no"), "b": Allow()})
    assert [who for _, who, _ in reported(decision)] == ["x", "a", "y", "b"]


def test_a_refusal_in_the_second_round_lies_behind_the_whole_first_one():
    """The others are recorded once, in the first round."""
    answers = iter([Allow(), Deny(message="no")])
    chosen = chain(Phase.MUTATING, "X", "a", "Y", "b", "Z")
    chosen[1] = policy("a", index=1, reinvocation_policy=ReinvocationPolicy.IF_NEEDED)
    decision, _ = decide(chosen, {"a": lambda _: next(answers), "b": label("x")})
    assert reported(decision)[:5] == [
        (0, "x", "rules"),
        (0, "a", ""),
        (0, "y", "rules"),
        (0, "b", ""),
        (0, "z", "rules"),
    ]
    assert [(round_, who) for round_, who, _ in reported(decision)[5:]] == [(1, "a")]


@PHASES
def test_an_overloaded_gateway_refuses_for_those_who_are_concerned(phase):
    """A policy without a rule for the request refuses nothing."""
    full = Failure(reason=Reason.OVERLOADED, message="full")
    policies = chain(phase, "X", "a")
    refused = Engine(request(), plan(*policies).failing(full), ends=110.0).start(100.0).decision
    assert [call.answer for call in refused.calls] == [full]
    assert [call.policy.policy for call in refused.calls] == ["a"]
    assert Engine(request(), plan(policies[0]).failing(full), ends=110.0).start(100.0).decision.response.allowed
