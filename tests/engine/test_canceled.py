"""The client hangs up: what the record of the review has, although there is no answer."""

from gateway.engine.answer_source import Source
from gateway.engine.decision import Outcome
from gateway.engine.engine import Engine
from gateway.engine.trace_context import TraceContext
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import FailurePolicy, Phase, Rule
from gateway.reasons import Reason
from tests.world import label, plan, policy, request

TRACE = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-00", "has_span": True, "slow_seconds": 2.0}
OTHERS = (Rule(operations=("*",), api_groups=("apps",), api_versions=("v1",), resources=("deployments",)),)


def started(*policies, prefetch=False, **options):
    """An engine after its first event, at 100 s, and its calls."""
    engine = Engine(request(), plan(*policies), ends=110.0, prefetch=prefetch, received=99.0, **options)
    return engine, engine.start(100.0).calls


def canceled(engine, now=103.0):
    """What the engine records of a review whose client leaves."""
    decision = engine.abandoned(now).decision
    assert decision.outcome is Outcome.CANCELED
    assert (decision.response.allowed, decision.response.status, decision.patch) == (False, None, ())
    return decision


def test_the_record_has_the_call_that_had_no_answer():
    """Whose it was, when it was made, and what its worker was sent; no verdict."""
    engine, (call,) = started(policy("a", phase=Phase.VALIDATING))
    decision = canceled(engine)
    (turn,) = decision.calls
    assert (turn.matched, turn.answer, turn.source, turn.version) == (True, None, Source.CALLED, "1")
    assert (turn.call.called_at, turn.call.answered_at, turn.document_key) == (100.0, None, call.document.digest)
    assert (turn.started, turn.ended, decision.started, decision.ended) == (100.0, 103.0, 99.0, 103.0)


def test_the_record_has_what_was_answered():
    """In chain order, also where another policy was slower."""
    pair = [policy(name, phase=Phase.VALIDATING, index=index) for index, name in enumerate("ab")]
    engine, calls = started(*pair)
    engine.answered(calls[1], Deny(message="no"), 101.0)
    decision = canceled(engine)
    assert [(turn.policy.policy, turn.answer) for turn in decision.calls] == [("a", None), ("b", Deny(message="no"))]


def test_what_comes_after_the_open_turn_is_not_reached():
    """In the mutating chain; a change of the object so far is in no answer."""
    chain = [policy("a"), policy("b", index=1), policy("c", index=2), policy("d", index=3)]
    engine, calls = started(*chain)
    engine.answered(calls[0], label("x"), 101.0)
    decision = canceled(engine)
    assert [(turn.policy.policy, turn.answer is None) for turn in decision.all_calls] == [("a", False), ("b", True)]
    assert decision.object["metadata"]["labels"] == {"x": "1"}


def test_a_prefetched_call_is_the_call_of_its_turn():
    """Its turn has followed it."""
    engine, calls = started(policy("a"), policy("b", index=1), prefetch=True)
    assert len(calls) == 2
    engine.answered(calls[0], Allow(), 101.0)
    waiting = canceled(engine).calls[-1]
    assert (waiting.policy.policy, waiting.prefetched, waiting.call.number) == ("b", True, calls[1].id)


def test_a_review_that_was_never_begun_has_no_turns():
    """It waited to be read: nothing is known of any policy, not even which have a rule about the request."""
    chain = plan(policy("a"), policy("b", index=1, rules=OTHERS))
    decision = canceled(Engine(request(), chain, ends=110.0, received=99.0))
    assert (decision.calls, decision.all_calls, decision.started, decision.ended) == ((), (), 99.0, 103.0)


def test_a_decided_review_is_not_canceled():
    """The decision was made before; there is only one."""
    engine, (call,) = started(policy("a"))
    assert engine.answered(call, Allow(), 101.0).decision.outcome is Outcome.ALLOWED
    assert engine.abandoned(102.0).decision is None


def test_who_leaves_soon_is_not_traced():
    """Unless it is sampled; slow ones are always, and those in which a policy has failed."""
    for sampled, now, expected in ((False, 100.5, False), (True, 100.5, True), (False, 103.0, True)):
        engine, _ = started(policy("a"), trace=TraceContext(sampled=sampled, **TRACE))
        assert canceled(engine, now).is_traced is expected
    failing = [policy(name, phase=Phase.VALIDATING, index=index) for index, name in enumerate("ab")]
    engine, calls = started(*failing, trace=TraceContext(**TRACE))
    engine.answered(calls[0], Failure(reason=Reason.WORKER_UNAVAILABLE, message="away"), 100.1)
    assert canceled(engine, 100.5).is_traced


def test_an_ignored_failure_of_a_canceled_review_lets_nothing_pass():
    """No warning, no annotation, no allow."""
    pair = [
        policy(name, phase=Phase.VALIDATING, index=index, failure_policy=FailurePolicy.IGNORE)
        for index, name in enumerate("ab")
    ]
    engine, calls = started(*pair)
    engine.answered(calls[0], Failure(reason=Reason.WORKER_UNAVAILABLE, message="away"), 100.1)
    decision = canceled(engine)
    assert decision.calls[0].failed_open
    assert (decision.response.warnings, dict(decision.response.audit_annotations)) == ((), {})
