"""Prefetched calls: all policies are called at once, and only the time differs."""

import pytest

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.documents.verdict_key import key_prefix
from gateway.engine.answer_source import Source
from gateway.engine.decision import Outcome
from gateway.engine.engine import Engine
from gateway.engine.plan import Described, make_plan
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import (
    Cache,
    FailurePolicy,
    Mode,
    Phase,
    ReinvocationPolicy,
    Requirement,
    Selector,
    SideEffects,
)
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from tests.world import condition, decide, label, patch, plan, policy, request, when_authorized

NEVER = float("inf")
IGNORE = {"failure_policy": FailurePolicy.IGNORE}
BROKEN = Failure(reason=Reason.WORKER_FAILURE, message="it broke")
HAS_ONE = Selector(requirements=(Requirement(key="one", operator="Exists"),))
LACKS_ONE = Selector(requirements=(Requirement(key="one", operator="DoesNotExist"),))


def sees(*keys):
    return Inputs(places=PointerSet(("object", "metadata", "labels", key) for key in keys))


def prefetched(chain, behaviours, **fields):
    return decide(chain, behaviours, prefetch=True, **fields)


def chain_of_eight(inputs):
    chain = [policy(f"p{index}", index=index, inputs=inputs(index)) for index in range(8)]
    return chain, {each.policy: label(f"l{each.index}") for each in chain}, {each.policy: 0.010 for each in chain}


def test_eight_policies_that_do_not_touch_each_others_inputs_take_as_long_as_one():
    """At most 1.3 times; in fact all answers come at the same moment."""
    chain, behaviours, latencies = chain_of_eight(lambda index: sees(f"l{index}"))
    decision, world = prefetched(chain, behaviours, latencies=latencies)
    assert decision.ended - decision.started == pytest.approx(0.010)
    assert len(world.calls) == 8
    assert len(decision.object["metadata"]["labels"]) == 8


def test_eight_policies_that_all_depend_on_each_other_take_the_serial_time():
    """Each early answer but the first is about another object than the one that counts."""
    chain, behaviours, latencies = chain_of_eight(lambda _: Inputs.EVERYTHING)
    decision, world = prefetched(chain, behaviours, latencies=latencies)
    assert decision.ended - decision.started == pytest.approx(0.080)
    assert len(world.calls) == 8 + 7
    assert len(decision.object["metadata"]["labels"]) == 8


def test_without_prefetch_the_chain_is_serial():
    """One call at a time, whatever the inputs."""
    chain, behaviours, latencies = chain_of_eight(lambda index: sees(f"l{index}"))
    decision, world = decide(chain, behaviours, latencies=latencies, prefetch=False)
    assert decision.ended - decision.started == pytest.approx(0.080)
    assert len(world.calls) == 8


def test_a_policy_that_waits_in_the_chain_shares_its_prefetched_call():
    """Called at 0 and answered at 3, its turn at 1: it is settled at 3, and was called once."""
    pair = [policy("a", inputs=sees()), policy("b", index=1, inputs=sees())]
    decision, world = prefetched(pair, {"a": label("one"), "b": label("two")}, latencies={"a": 1.0, "b": 3.0})
    assert decision.ended - decision.started == 3.0
    assert world.called() == ["a", "b"]
    assert [(call.source, call.prefetched) for call in decision.calls] == [
        (Source.CALLED, False),
        (Source.CALLED, True),
    ]


def test_only_the_first_to_use_a_prefetched_answer_has_called():
    """The second policy with the same question has it from the memo."""
    same = {"worker": "one", "policy": "same", "inputs": sees()}
    chain = [policy("a"), policy("b", index=1, **same), policy("c", index=2, **same)]
    decision, world = prefetched(chain, {"a": Allow(), "same": Allow()}, latencies={"a": 1.0})
    assert world.called() == ["a", "same"]
    assert [call.source for call in decision.calls] == [Source.CALLED, Source.CALLED, Source.MEMO]


def test_a_policy_whose_document_changed_is_called_again_and_its_prefetched_call_cancelled():
    """The early answer would be about an object that is none any more."""
    pair = [policy("a"), policy("b", index=1)]
    decision, world = prefetched(pair, {"a": label("one"), "b": Allow()}, latencies={"a": 1.0, "b": 3.0})
    assert [(when, policy_call.policy.policy) for when, policy_call in world.calls] == [
        (100.0, "a"),
        (100.0, "b"),
        (101.0, "b"),
    ]
    assert world.cancels == [(101.0, 2)]
    assert decision.calls[1].prefetched is False


def test_a_prefetched_answer_of_a_policy_that_no_longer_matches_is_dropped():
    """With its warnings and annotations, and its denial."""
    pair = [policy("a"), policy("b", index=1, object_selector=LACKS_ONE)]
    no = Deny(message="no", warnings=("oh",), audit_annotations={"k": "v"})
    decision, world = prefetched(pair, {"a": label("one"), "b": no}, latencies={"a": 1.0})
    assert world.called() == ["a", "b"]
    assert decision.outcome is Outcome.ALLOWED
    assert decision.response.warnings == ()
    assert not any(key.startswith("b.") for key in decision.response.audit_annotations)


def test_an_open_prefetched_call_of_a_policy_that_no_longer_matches_is_cancelled():
    """No policy can use it any more."""
    chain = [policy("a"), policy("b", index=1, object_selector=LACKS_ONE), policy("c", index=2)]
    _, world = prefetched(chain, {"a": label("one"), "c": Allow()}, latencies={"a": 1.0, "b": NEVER, "c": 5.0})
    assert (101.0, 2) in world.cancels


def test_a_policy_that_matches_only_after_a_change_is_called_in_its_turn():
    """Matching is decided on the object as it then is."""
    pair = [policy("a"), policy("b", index=1, object_selector=HAS_ONE)]
    _, world = prefetched(pair, {"a": label("one"), "b": Allow()}, latencies={"a": 1.0})
    assert [(when, policy_call.policy.policy) for when, policy_call in world.calls] == [(100.0, "a"), (101.0, "b")]


def test_after_a_refusal_all_prefetched_calls_are_cancelled_in_the_deciding_step():
    """A call that was answered already is not cancelled."""
    chain = [policy("a"), policy("b", index=1), policy("c", index=2)]
    answers = {"a": Deny(message="no"), "b": Allow(warnings=("b says",))}
    decision, world = prefetched(chain, answers, latencies={"a": 1.0, "b": 0.5, "c": 2.0})
    assert world.cancels == [(101.0, 3)]
    assert decision.response.warnings == ()
    assert [call.label for call in decision.calls] == ["a.test.example.com"]


def test_a_prefetched_call_that_another_policy_may_use_is_not_cancelled():
    """Two policies with the same question: the first no longer matches, the second waits for the same answer."""
    same = {"worker": "one", "policy": "same", "inputs": sees()}
    chain = [policy("a"), policy("b", index=1, object_selector=LACKS_ONE, **same), policy("c", index=2, **same)]
    decision, world = prefetched(chain, {"a": label("one"), "same": Allow()}, latencies={"a": 1.0, "same": 2.0})
    assert world.called() == ["a", "same"]
    assert world.cancels == []
    assert decision.ended - decision.started == 2.0


def test_a_turn_does_not_share_a_prefetched_call_with_less_time_than_its_policy_has():
    """The same call was made for a policy with half a second; the worker takes three."""
    same = {"worker": "one", "policy": "same", "inputs": sees()}
    chain = [
        policy("a"),
        policy("b", index=1, object_selector=LACKS_ONE, timeout=0.5, **same),
        policy("c", index=2, timeout=5.0, **same),
    ]
    decision, world = prefetched(chain, {"a": label("one"), "same": Allow()}, latencies={"a": 0.25, "same": 3.0})
    assert [(when, policy_call.policy.policy) for when, policy_call in world.calls] == [
        (100, "a"),
        (100, "same"),
        (100.25, "same"),
    ]
    assert world.cancels == [(100.25, 2)]
    assert decision.ended - decision.started == 3.25


def test_a_prefetched_failure_is_dropped_and_the_timeout_runs_from_the_turn():
    """It failed before its turn; in its turn it has its whole time, and judges."""
    pair = [policy("a"), policy("b", index=1, timeout=1.0)]
    answers = iter([BROKEN, Allow()])
    decision, world = prefetched(pair, {"a": Allow(), "b": lambda _: next(answers)}, latencies={"a": 3.0, "b": 0.5})
    assert decision.outcome is Outcome.ALLOWED
    assert [(when, policy_call.deadline) for when, policy_call in world.calls if policy_call.policy.policy == "b"] == [
        (100, 101),
        (103, 104),
    ]


def test_a_prefetched_call_ends_with_its_timeout_and_the_policy_is_called_in_its_turn():
    """The engine wakes up for it; it is cancelled, and no policy gets an answer."""
    pair = [policy("a"), policy("b", index=1, timeout=1.0)]
    decision, world = prefetched(pair, {"a": Allow()}, latencies={"a": 3.0, "b": NEVER})
    assert world.cancels == [(101.0, 2), (104.0, 3)]
    assert decision.calls[1].answer.reason is Reason.WORKER_TIMEOUT


def test_a_turn_whose_prefetched_call_fails_calls_again_as_long_as_the_serial_chain_would_have_waited():
    """Called at 0, its turn at 1, failed at 3: a call at 1 would have failed at 4. There is none in between."""
    pair = [policy("a", inputs=sees()), policy("b", index=1)]
    decision, world = prefetched(pair, {"a": Allow(), "b": BROKEN}, latencies={"a": 1.0, "b": 3.0})
    assert [(when, policy_call.deadline) for when, policy_call in world.calls if policy_call.policy.policy == "b"] == [
        (100, 105),
        (103, 104),
    ]
    assert decision.calls[1].answer == BROKEN
    assert decision.ended - decision.started == 4.0


def test_a_turn_whose_prefetched_call_failed_takes_a_verdict_that_comes_in_that_time():
    """It may have failed only because so many were called at once."""
    engine = Engine(request(), plan(policy("a"), policy("b", index=1)), ends=200.0)
    first, ahead = engine.start(100.0).calls
    engine.answered(first, Allow(), 101.0)
    again = engine.answered(ahead, BROKEN, 101.5).calls[0]
    assert again.deadline == 102.5
    assert engine.answered(again, Allow(), 101.6).decision.outcome is Outcome.ALLOWED


def test_answers_that_are_there_count_after_the_end_of_the_budget():
    """The second policy uses the whole budget up; the third has its early answer, the fourth has none."""
    chain = [policy(name, index=index, timeout=5.0, **IGNORE) for index, name in enumerate("abcd")]
    answers = {"a": Allow(), "c": label("three")}
    decision, _ = prefetched(chain, answers, latencies={"a": 0.1, "b": NEVER, "c": 0.2, "d": NEVER}, budget=2.0)
    reasons = [getattr(call.answer, "reason", None) for call in decision.calls]
    assert reasons == [None, Reason.BUDGET_EXHAUSTED, None, Reason.BUDGET_EXHAUSTED]
    assert decision.object["metadata"]["labels"] == {"three": "1"}
    assert decision.ended - decision.started == 2.0


@pytest.mark.parametrize(
    "fields",
    [
        {"side_effects": SideEffects.SOME},
        {"side_effects": SideEffects.NONE_ON_DRY_RUN},
        {"object_selector": HAS_ONE},
        {"rules": ()},
    ],
)
def test_who_has_side_effects_or_does_not_match_is_not_called_early(fields):
    """Its turn may never come."""
    _, world = prefetched(
        [policy("a"), policy("b", index=1, **fields)], {"a": Deny(message="no")}, latencies={"a": 1.0}
    )
    assert world.called() == ["a"]


def test_a_policy_without_side_effects_in_a_dry_run_is_prefetched_in_one():
    """That is what NoneOnDryRun promises."""
    pair = [policy("a"), policy("b", index=1, side_effects=SideEffects.NONE_ON_DRY_RUN)]
    _, world = prefetched(pair, {"a": Deny()}, latencies={"a": 1.0, "b": 2.0}, on=request(dryRun=True))
    assert world.called() == ["a", "b"]


@pytest.mark.parametrize("mode", [Mode.WARN, Mode.AUDIT])
def test_a_policy_that_is_not_enforced_is_prefetched_too(mode):
    """It is called like any other."""
    decision, world = prefetched([policy("a"), policy("b", index=1, mode=mode)], {"a": Allow(), "b": Deny()})
    assert [when for when, _ in world.calls] == [100.0, 100.0]
    assert decision.outcome is Outcome.ALLOWED


def test_a_prefetched_answer_serves_the_second_round_too():
    """A policy whose document is what it was costs no call."""
    a = policy("a", inputs=sees(), reinvocation_policy=ReinvocationPolicy.IF_NEEDED)
    decision, world = prefetched([a, policy("b", index=1)], {"a": Allow(), "b": label("one")}, latencies={"b": 1.0})
    assert world.called() == ["a", "b"]
    assert [(call.round, call.source) for call in decision.calls if call.label == "a.test.example.com"] == [
        (0, Source.CALLED),
        (1, Source.MEMO),
    ]


def test_a_namespace_and_an_authorization_are_looked_up_early():
    """While the first policy is called; and each once."""
    check = AuthorizationCheck(verb="get", resource="pods")
    prod = Selector(requirements=(Requirement(key="env", operator="In", values=("prod",)),))
    chain = [
        policy("a"),
        policy("b", index=1, namespace_selector=prod),
        policy("c", index=2, match_conditions=(condition(when_authorized(check)),)),
    ]
    decision, world = prefetched(
        chain,
        {"a": Allow(), "b": Allow(), "c": Allow()},
        latencies={"a": 3.0, "b": 1.0, "c": 1.0},
        namespaces={"t": {"env": "prod"}},
        authorizations={check: Authorization(allowed=True)},
        lookup_latency=1.0,
    )
    assert [(when, policy_call.policy.policy) for when, policy_call in world.calls] == [
        (100.0, "a"),
        (101.0, "b"),
        (101.0, "c"),
    ]
    assert len(world.lookups) == 2
    assert decision.ended - decision.started == 3.0


def test_a_condition_is_weighed_once_while_the_object_is_the_one_that_came():
    """What was matched early holds in the policy's turn."""
    weighed = []
    chain = [policy("a"), policy("b", index=1, match_conditions=(condition(lambda *_: weighed.append(1) or True),))]
    prefetched(chain, {"a": Allow(), "b": Allow()}, latencies={"a": 1.0})
    assert len(weighed) == 1


def test_an_unreadable_member_that_only_a_later_policy_reads_does_not_fail_the_review():
    """A denial before it stands: its turn never comes."""
    unreadable = request(options=7)
    reads = policy("b", index=1, match_conditions=(condition(lambda variables, _: bool(variables.request)),))
    decision, _ = prefetched([policy("a"), reads], {"a": Deny(message="no")}, on=unreadable, latencies={"a": 1.0})
    assert decision.outcome is Outcome.DENIED


def test_a_chain_of_one_policy_calls_once():
    """There is nothing to be early for."""
    decision, world = prefetched([policy("a")], {"a": patch()})
    assert (len(world.calls), decision.prefetches) == (1, 0)


def test_the_decision_says_how_many_calls_were_early():
    """And the calls, which of them were of use."""
    chain = [policy(name, index=index) for index, name in enumerate("abc")]
    decision, _ = prefetched(chain, {"a": Allow(), "b": label("one"), "c": Allow()}, latencies={"a": 1.0})
    assert decision.prefetches == 2
    assert [call.prefetched for call in decision.calls] == [False, True, False]


def test_an_call_says_which_question_it_is():
    """Version and identity are the worker's and the configuration's; a policy with side effects has no cache."""
    cache = Cache(ttl=60)
    chain = [policy("a", cache=cache), policy("b", index=1, cache=cache, side_effects=SideEffects.SOME)]
    availabilities = {each.qualified_name: Described(version="7", identity=b"id") for each in chain}
    engine = Engine(request(), make_plan(Phase.MUTATING, chain, availabilities), ends=200.0)
    first = engine.start(100.0).calls[0]
    second = engine.answered(first, Allow(), 101.0).calls[0]
    prefix = key_prefix(phase="mutating", identity=b"id", version="7")
    assert (first.version, first.key_prefix, first.cache) == ("7", prefix, cache)
    assert second.cache is None
