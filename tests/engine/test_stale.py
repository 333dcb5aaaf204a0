"""A stale verdict stands in where calling has failed, and says so."""

import pytest

from gateway.engine.answer_source import Origin, Source
from gateway.engine.decision import Outcome
from gateway.engine.engine import Engine
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import FailurePolicy, Mode
from gateway.reasons import Reason
from tests.world import decide, label, patch, plan, policy, request

NEVER = float("inf")
BROKEN = Failure(reason=Reason.WORKER_FAILURE, message="it broke")
NAME = "a.test.example.com"
FALLBACK = {"a": (label("one"), 90.0)}


@pytest.mark.parametrize(
    ("answers", "world", "reason"),
    [
        ({"a": BROKEN}, {}, Reason.WORKER_FAILURE),
        ({}, {"latencies": {"a": NEVER}}, Reason.WORKER_TIMEOUT),
        ({}, {"latencies": {"a": NEVER}, "budget": 2.0}, Reason.BUDGET_EXHAUSTED),
    ],
)
def test_a_stale_verdict_stands_in_for_every_failure_of_its_call(answers, world, reason):
    """The failure is kept beside it."""
    decision, _ = decide([policy("a", timeout=5.0)], answers, fallbacks=FALLBACK, **world)
    call = decision.calls[0]
    assert decision.outcome is Outcome.ALLOWED
    assert decision.object["metadata"]["labels"] == {"one": "1"}
    assert (call.source, call.instead_of.reason) == (Source.STALE, reason)
    assert call.age == pytest.approx(90.0 + decision.ended - decision.started)


def test_it_is_said_in_a_warning_and_an_annotation():
    """Which policy, how old, what failed; the annotation's value does not depend on the time."""
    decision, _ = decide([policy("a")], {"a": BROKEN}, fallbacks=FALLBACK)
    assert decision.response.warnings == (
        f"{NAME}: could not judge this request: WORKER_FAILURE (staleIfError: its answer from 90 s ago counts)",
    )
    assert decision.response.audit_annotations[f"{NAME}_stale"] == "WORKER_FAILURE"


def test_under_audit_there_is_no_stale_warning():
    """Only the audit log says so."""
    decision, _ = decide([policy("a", mode=Mode.AUDIT)], {"a": BROKEN}, fallbacks=FALLBACK)
    assert decision.response.warnings == ()
    assert decision.response.audit_annotations[f"{NAME}_stale"] == "WORKER_FAILURE"


def test_a_stale_denial_denies():
    """It is the verdict that there is."""
    decision, _ = decide([policy("a")], {"a": BROKEN}, fallbacks={"a": (Deny(message="no"), 1.0)})
    assert decision.outcome is Outcome.DENIED


def test_an_answer_in_time_is_preferred():
    """A fallback is no verdict."""
    decision, _ = decide([policy("a")], {"a": Deny(message="no")}, fallbacks=FALLBACK, latencies={"a": 1.0})
    assert (decision.outcome, decision.calls[0].source) == (Outcome.DENIED, Source.CALLED)


def test_a_change_that_does_not_apply_has_no_fallback():
    """The worker has judged; calling it did not fail."""
    bad = patch({"op": "remove", "path": "/nowhere"})
    decision, _ = decide([policy("a")], {"a": bad}, fallbacks=FALLBACK, latencies={"a": 1.0})
    assert decision.calls[0].answer.reason is Reason.INVALID_PATCH


def test_a_prefetched_failure_with_a_fallback_is_called_again_in_its_turn():
    """The fallback is kept for the question, and counts if that fails as well."""
    pair = [policy("b"), policy("a", index=1)]
    reported = {"prefetch": True, "fallbacks": FALLBACK, "latencies": {"b": 1.0}}
    decision, world = decide(pair, {"b": Allow(), "a": BROKEN}, **reported)
    assert world.called() == ["b", "a", "a"]
    assert decision.calls[1].source is Source.STALE
    answers = iter([BROKEN, Allow()])
    decision, _ = decide(pair, {"b": Allow(), "a": lambda _: next(answers)}, **reported)
    assert decision.calls[1].source is Source.CALLED


def test_a_policy_that_the_budget_leaves_no_time_to_call_has_its_fallback_too():
    """Its prefetched call had brought one."""
    ignore = {"failure_policy": FailurePolicy.IGNORE, "timeout": 5.0}
    pair = [policy("b", **ignore), policy("a", index=1, **ignore)]
    decision, _ = decide(
        pair, {"a": BROKEN}, prefetch=True, fallbacks=FALLBACK, latencies={"b": NEVER, "a": 0.1}, budget=2.0
    )
    assert (decision.calls[1].source, decision.calls[1].instead_of.reason) == (Source.STALE, Reason.BUDGET_EXHAUSTED)


def test_a_verdict_of_the_cache_has_its_source_and_age():
    """And another turn with the same question has it from the memo, as old."""
    same = {"worker": "one", "policy": "same"}
    engine = Engine(request(), plan(policy("a", **same), policy("b", index=1, **same)), ends=200.0)
    policy_call = engine.start(100.0).calls[0]
    decision = engine.answered(policy_call, Allow(), 100.0, Origin(source=Source.REDIS, age=7.0)).decision
    assert [(call.source, call.age) for call in decision.calls] == [(Source.REDIS, 7.0), (Source.MEMO, 7.0)]


def test_a_fallback_for_a_call_that_was_given_up_changes_nothing():
    """The driver cannot always cancel in time."""
    engine = Engine(request(), plan(policy("a", timeout=1.0, failure_policy=FailurePolicy.IGNORE)), ends=200.0)
    policy_call = engine.start(100.0).calls[0]
    assert engine.expired(101.0).decision.calls[0].instead_of is None
    assert engine.fallback(policy_call, Allow(), Origin(source=Source.STALE, age=1.0), 101.1).decision is None
