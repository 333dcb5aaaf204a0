"""An error is not a verdict: what becomes of failures, and how loudly."""

import pytest

from gateway.engine.decision import Outcome
from gateway.engine.engine import Engine
from gateway.engine.plan import Described
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import FailurePolicy, Phase, ReinvocationPolicy
from gateway.reasons import Reason
from tests.world import decide, label, plan, policy, request

IGNORE = {"failure_policy": FailurePolicy.IGNORE}
FAILURES = [reason for reason in Reason if reason is not Reason.DENIED]
STATUSES = {
    Reason.BUDGET_EXHAUSTED: (429, "TooManyRequests"),
    Reason.OVERLOADED: (429, "TooManyRequests"),
    Reason.CONDITION_ERROR: (403, "Forbidden"),
    Reason.NAMESPACE_UNKNOWN: (404, "NotFound"),
    Reason.DRY_RUN_UNSUPPORTED: (400, "BadRequest"),
}


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("reason", FAILURES)
def test_under_fail_every_kind_of_failure_refuses_with_its_reason_code(phase, reason):
    """500 InternalError, 429 where it passes by itself, kube-apiserver's own code where it has one; the word is in the
    message."""
    failure = Failure(reason=reason, message="what happened")
    decision, _ = decide([policy("a", phase=phase)], {"a": failure})
    status = decision.response.status
    assert decision.outcome is Outcome.FAILED
    assert status.message == f"{reason.value}: what happened"
    assert (status.code, status.reason) == STATUSES.get(reason, (500, "InternalError"))
    assert status.details["causes"] == [{"reason": reason.value, "message": "what happened"}]


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("reason", FAILURES)
def test_under_ignore_every_kind_of_failure_passes_loudly(phase, reason):
    """A warning to the user and an audit annotation, both with the reason code."""
    failure = Failure(reason=reason, message="what happened")
    decision, _ = decide([policy("a", phase=phase, **IGNORE)], {"a": failure})
    assert decision.response.allowed
    reported = f"a.test.example.com: could not judge this request: {reason.value} (failurePolicy Ignore: let pass)"
    assert decision.response.warnings == (reported,)
    assert decision.response.audit_annotations == {"a.test.example.com_failed-open": reason.value}


def test_no_annotation_of_a_worker_hides_a_failure():
    """Whichever key it chooses, in whichever round."""
    hiding = iter(
        [Allow(audit_annotations={"failed-open": "never"}), Failure(reason=Reason.WORKER_FAILURE, message="x")]
    )
    chain = [
        policy("a", reinvocation_policy=ReinvocationPolicy.IF_NEEDED, **IGNORE),
        policy("b", index=1),
    ]
    decision, _ = decide(chain, {"a": lambda _: next(hiding), "b": label("one")})
    assert decision.response.audit_annotations["a.test.example.com_failed-open"] == "WORKER_FAILURE"


@pytest.mark.parametrize("phase", list(Phase))
def test_a_denial_is_never_subject_to_the_failure_policy(phase):
    """Ignore ignores failures, not verdicts."""
    decision, _ = decide([policy("a", phase=phase, **IGNORE)], {"a": Deny(message="no")})
    assert decision.outcome is Outcome.DENIED


TEAPOT = Deny(
    code=418, reason="", message="short and stout", details={"name": "p", "causes": [{"field": "spec", "message": "m"}]}
)


def test_a_policy_alone_has_its_own_words_and_its_cause():
    """Code, reason and message go out untouched; details.causes has the policy's own, and one that says DENIED."""
    decision, _ = decide([policy("a")], {"a": TEAPOT})
    status = decision.response.status
    assert (status.code, status.reason, status.message) == (418, "", "short and stout")
    causes = [*TEAPOT.details["causes"], {"reason": "DENIED", "message": "short and stout"}]
    assert status.details == {"name": "p", "causes": causes}


def test_an_existing_webhook_alone_has_its_denial_sent_untouched():
    """Nothing shows that a gateway stood between."""
    decision, _ = decide([policy("a", is_existing=True)], {"a": TEAPOT})
    assert decision.response.status.details == TEAPOT.details
    decision, _ = decide([policy("a", is_existing=True)], {"a": Deny(message="no")})
    assert decision.response.status.details is None


def test_a_denial_without_words_says_so_among_several():
    """The line must not be empty."""
    decision, _ = decide([policy("a"), policy("b", index=1)], {"a": Deny(reason=""), "b": Allow()})
    assert decision.response.status.message == "a.test.example.com: denied without explanation"


def test_two_policies_of_the_same_name_are_distinguished():
    """Names are unique in a configuration only."""
    twins = [policy("a"), policy("a", configuration="other")]
    decision, _ = decide(twins, {"a": Allow(audit_annotations={"k": "v"})})
    assert decision.calls[0].label == "test/a.test.example.com"
    assert len(decision.response.audit_annotations) == 2


# ------------------------------------------------------------------------------------- not knowing is not allowing


def run(chain, availabilities, on=None):
    engine = Engine(on or request(), plan(*chain, availabilities=availabilities), ends=110.0)
    return engine.start(100.0)


def test_a_policy_whose_worker_was_never_described_fails():
    """Unknown is CONFIGURATION, under its failurePolicy."""
    decision = run([policy("a")], {}).decision
    assert decision.calls[0].answer.reason is Reason.CONFIGURATION
    assert not decision.response.allowed


def test_a_policy_with_an_error_fails_where_it_would_have_judged():
    """Its place in the chain is its own; and where it doesn't match, it has no effect."""
    faulty = policy("a", fault="policies[0].timeoutSeconds: Invalid value: 31")
    decision = run([faulty], {faulty.qualified_name: Described(version="1")}).decision
    assert "timeoutSeconds" in decision.response.status.message
    elsewhere = request(subResource="status")
    assert run([faulty], {faulty.qualified_name: Described(version="1")}, elsewhere).decision.response.allowed


def test_a_failing_standing_keeps_the_chains_order():
    """An earlier policy's denial comes first."""
    chain = [policy("a"), policy("b", index=1)]
    step = run(chain, {chain[0].qualified_name: Described(version="1")})
    decision = None
    engine = Engine(
        request(), plan(*chain, availabilities={chain[0].qualified_name: Described(version="1")}), ends=110.0
    )
    policy_call = engine.start(100.0).calls[0]
    decision = engine.answered(policy_call, Deny(message="no"), 100.1).decision
    assert step.decision is None
    assert [call.label for call in decision.calls] == ["a.test.example.com"]


def test_an_overloaded_plan_refuses_by_failure_policy():
    """Full means a decided refusal, not a stall; a policy that doesn't match still says nothing."""
    overloaded = Failure(reason=Reason.OVERLOADED, message="full")
    for fields, allowed in (({}, False), (IGNORE, True)):
        full = plan(policy("a", **fields)).failing(overloaded)
        decision = Engine(request(), full, ends=110.0).start(100.0).decision
        assert decision.response.allowed is allowed
        assert decision.calls[0].answer is overloaded


# ------------------------------------------------------------------------------------------ exceptions of our own


def test_when_the_heart_breaks_every_policy_not_yet_judged_fails_internal():
    """What was judged stays judged."""
    chain = [policy(name, index=index, **IGNORE) for index, name in enumerate("abc")]
    engine = Engine(request(), plan(*chain), ends=200.0, prefetch=False)
    first = engine.start(100.0).calls[0]
    second = engine.answered(first, label("one"), 100.1).calls[0]
    step = engine.broken("KeyError", 100.2)
    assert step.cancels == (second,)
    assert [getattr(call.answer, "reason", None) for call in step.decision.calls] == [
        None,
        Reason.INTERNAL,
        Reason.INTERNAL,
    ]
    assert step.decision.response.allowed
    assert step.decision.object["metadata"]["labels"] == {"one": "1"}


@pytest.mark.parametrize("phase", list(Phase))
def test_a_broken_heart_with_a_policy_under_fail_refuses(phase):
    """Never followed by an allow."""
    chain = [policy("a", phase=phase, **IGNORE), policy("b", phase=phase, index=1)]
    engine = Engine(request(), plan(*chain), ends=200.0)
    engine.start(100.0)
    assert engine.broken("KeyError", 100.2).decision.outcome is Outcome.FAILED


def test_a_heart_that_breaks_while_it_applies_a_change_has_not_judged_that_policy(monkeypatch):
    """An allow whose change was never applied is no allow."""
    engine = Engine(request(), plan(policy("a"), policy("b", index=1, **IGNORE)), ends=200.0)
    policy_call = engine.start(100.0).calls[0]
    monkeypatch.setattr("gateway.engine.object_state.apply_change", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        engine.answered(policy_call, label("one"), 100.1)
    decision = engine.broken("ZeroDivisionError", 100.2).decision
    assert (decision.outcome, decision.calls[0].answer.reason) == (Outcome.FAILED, Reason.INTERNAL)
