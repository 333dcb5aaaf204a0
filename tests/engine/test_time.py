"""Deadlines, on a clock that jumps: the answer is decided when the time is over, never later."""

import pytest

from gateway.engine.decision import Outcome
from gateway.engine.engine import Engine
from gateway.engine.plan import Described
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import FailurePolicy, Phase, Requirement, Selector, SideEffects
from gateway.reasons import Reason
from tests.world import decide, label, plan, policy, request

NEVER = float("inf")
IGNORE = {"failure_policy": FailurePolicy.IGNORE}


def test_a_slow_worker_is_a_timeout_of_its_policy_at_its_own_time():
    """timeoutSeconds ends it, and the call is cancelled."""
    decision, world = decide([policy("a", timeout=0.5)], {}, latencies={"a": NEVER})
    assert decision.ended - decision.started == 0.5
    assert decision.calls[0].answer.reason is Reason.WORKER_TIMEOUT
    assert world.cancels == [(100.5, 1)]


@pytest.mark.parametrize("first", ["engine", "transport"])
def test_a_timeout_has_the_words_of_the_workers_kind_from_engine_and_transport(first):
    """A webhook's is "context deadline exceeded" in every run: the engine and the transport keep the same deadline."""
    late = Failure(reason=Reason.WORKER_TIMEOUT, message="context deadline exceeded")
    one = policy("a", timeout=1.0)
    engine = Engine(
        request(),
        plan(one, availabilities={one.qualified_name: Described(version="1", timeout_failure=late)}),
        ends=200.0,
    )
    policy_call = engine.start(100.0).calls[0]
    reported = Failure(reason=Reason.WORKER_TIMEOUT, message="in other words")
    step = engine.expired(101.0) if first == "engine" else engine.answered(policy_call, reported, 101.0)
    assert step.decision.calls[0].answer == late


def test_when_the_budget_ends_first_it_is_the_budgets_fault():
    """429 with retryAfterSeconds: it may well pass the next time."""
    decision, _ = decide([policy("a", timeout=5.0)], {}, latencies={"a": NEVER}, budget=2.0)
    assert decision.ended - decision.started == 2.0
    assert decision.calls[0].answer.reason is Reason.BUDGET_EXHAUSTED
    status = decision.response.status
    assert (status.code, status.reason, status.details["retryAfterSeconds"]) == (429, "TooManyRequests", 1)


def test_a_policy_that_had_its_time_but_for_a_little_is_late_by_itself():
    """As registered: timeoutSeconds 3 is an entry's 4, of which 3 s are left, and the answer takes 50 ms."""
    late = Failure(reason=Reason.WORKER_TIMEOUT, message="it was ended; see its log")
    for answers in ({}, {"a": late}):
        one = policy("a", timeout=3.0)
        decision, _ = decide([one], answers, latencies={"a": 2.94 if answers else NEVER}, budget=2.95)
        assert decision.calls[0].answer.reason is Reason.WORKER_TIMEOUT
        assert decision.response.status.code == 500


def test_a_policy_whose_turn_came_late_is_not():
    """The budget ends a second policy that takes what a first one has left of it."""
    chain = [policy("a", timeout=3.0), policy("b", index=1, timeout=3.0)]
    decision, _ = decide(chain, {"a": label("one")}, latencies={"a": 0.5, "b": NEVER}, budget=2.95, prefetch=False)
    assert decision.calls[1].answer.reason is Reason.BUDGET_EXHAUSTED


def test_a_timeout_reported_by_the_transport_first_is_still_the_budgets():
    """The worker's deadline is the same instant, and may be noticed there first."""
    late = Failure(reason=Reason.WORKER_TIMEOUT, message="grpc says so")
    decision, _ = decide([policy("a", timeout=5.0)], {"a": late}, latencies={"a": 1.9}, budget=2.0)
    assert decision.calls[0].answer.reason is Reason.BUDGET_EXHAUSTED


def test_each_policy_of_a_chain_has_its_own_time_from_its_own_turn():
    """Two policies may take longer together than either alone."""
    chain = [policy("a", timeout=1.0), policy("b", index=1, timeout=1.0)]
    decision, _ = decide(chain, {"a": Allow(), "b": Allow()}, latencies={"a": 0.9, "b": 0.9})
    assert decision.outcome is Outcome.ALLOWED


def test_policies_behind_the_end_of_the_budget_go_to_their_failure_policies():
    """Those judged count; the rest are failures, called or not; under Ignore the chain goes on through them."""
    chain = [policy(name, index=index, timeout=5.0, **IGNORE) for index, name in enumerate("abc")]
    decision, world = decide(chain, {"a": label("one")}, latencies={"b": NEVER}, budget=2.0)
    assert world.called() == ["a", "b"]
    assert [getattr(call.answer, "reason", None) for call in decision.calls] == [
        None,
        Reason.BUDGET_EXHAUSTED,
        Reason.BUDGET_EXHAUSTED,
    ]
    assert decision.object["metadata"]["labels"] == {"one": "1"}
    assert len(decision.response.warnings) == 2


def test_answers_that_are_there_count_when_the_budget_ends():
    """A denial that came in time is the outcome, although another policy could not judge."""
    pair = [policy("a", phase=Phase.VALIDATING), policy("b", index=1, phase=Phase.VALIDATING)]
    decision, _ = decide(pair, {"b": Deny(message="no")}, latencies={"a": NEVER, "b": 1.0}, budget=2.0)
    assert decision.outcome is Outcome.DENIED
    assert decision.ended - decision.started == 2.0


def test_an_answer_after_its_deadline_is_no_answer():
    """Even if it reaches the engine before the timer does."""
    engine = Engine(request(), plan(policy("a", timeout=1.0)), ends=200.0)
    policy_call = engine.start(100.0).calls[0]
    decision = engine.answered(policy_call, Allow(), 101.5).decision
    assert decision.calls[0].answer.reason is Reason.WORKER_TIMEOUT


def test_a_timer_that_comes_early_changes_nothing():
    """A clock may be coarse: the engine says again when to wake."""
    engine = Engine(request(), plan(policy("a", timeout=1.0)), ends=200.0)
    wake_at = engine.start(100.0).wake_at
    step = engine.expired(wake_at - 0.001)
    assert (step.decision, step.wake_at) == (None, wake_at)


def test_answers_to_calls_that_were_given_up_change_nothing():
    """The driver cannot always cancel in time."""
    pair = plan(policy("a", timeout=1.0, **IGNORE), policy("b", index=1))
    engine = Engine(request(), pair, ends=200.0, prefetch=False)
    first = engine.start(100.0).calls[0]
    second = engine.expired(101.0).calls[0]
    assert engine.answered(first, Deny(), 101.1).decision is None
    assert engine.answered(second, Allow(), 101.2).decision.outcome is Outcome.ALLOWED
    assert engine.answered(second, Deny(), 101.3).decision is None


def test_a_policys_time_runs_from_its_turn_not_from_when_the_request_came():
    """A body that took three seconds to arrive leaves a policy of one second its second."""
    engine = Engine(request(), plan(policy("a", timeout=1.0)), ends=110.0, received=97.0)
    step = engine.start(100.0)
    assert step.calls[0].deadline == 101.0
    assert engine.expired(101.0).decision.started == 97.0


def test_an_calls_deadline_is_the_policys_or_the_budgets_end():
    """min(called + its timeout, end of budget)."""
    engine = Engine(request(), plan(policy("a", timeout=1.0)), ends=100.4)
    assert engine.start(100.0).calls[0].deadline == 100.4
    engine = Engine(request(), plan(policy("a", timeout=1.0)), ends=200.0)
    assert engine.start(100.0).calls[0].deadline == 101.0


def test_a_review_that_comes_with_no_time_left_is_decided_at_once():
    """No policy is called; failure policies decide."""
    decision, world = decide([policy("a")], {}, budget=0.0)
    assert world.calls == []
    assert decision.calls[0].answer.reason is Reason.BUDGET_EXHAUSTED


def test_when_the_api_server_hangs_up_all_calls_are_cancelled_but_those_with_side_effects():
    """The engine does not wait for the others."""
    pair = [
        policy("a", phase=Phase.VALIDATING),
        policy("b", index=1, phase=Phase.VALIDATING, side_effects=SideEffects.NONE_ON_DRY_RUN),
    ]
    engine = Engine(request(), plan(*pair), ends=200.0)
    calls = engine.start(100.0).calls
    step = engine.abandoned(100.5)
    assert step.cancels == (calls[0],)
    assert engine.answered(calls[1], Allow(), 101.0).decision is None


# ------------------------------------------------------------------------------------------------ namespaces

PROD = Selector(requirements=(Requirement(key="env", operator="In", values=("prod",)),))


@pytest.mark.parametrize(("labels", "called"), [({"env": "prod"}, ["a"]), ({"env": "dev"}, []), ({}, [])])
def test_a_namespace_selector_looks_up_the_namespace(labels, called):
    """A fact that the engine lacks is a lookup, and matching goes on when it is found."""
    decision, world = decide([policy("a", namespace_selector=PROD)], {"a": Allow()}, namespaces={"t": labels})
    assert [lookup.namespace for lookup in world.lookups] == ["t"]
    assert world.called() == called
    assert decision.outcome is Outcome.ALLOWED


def test_a_namespace_is_looked_up_once_for_a_whole_review():
    """Two policies, one lookup."""
    pair = [policy(n, index=i, phase=Phase.VALIDATING, namespace_selector=PROD) for i, n in enumerate("ab")]
    _, world = decide(pair, {"a": Allow(), "b": Allow()}, namespaces={"t": {"env": "prod"}})
    assert len(world.lookups) == 1
    assert world.called() == ["a", "b"]


def test_an_unknown_namespace_is_a_failure_not_a_mismatch():
    """Not knowing is not allowing."""
    decision, _ = decide([policy("a", namespace_selector=PROD)], {}, namespaces={"t": None})
    assert decision.calls[0].answer.reason is Reason.NAMESPACE_UNKNOWN
    assert not decision.response.allowed
