"""mode: a policy's verdict is a warning (warn) or an audit annotation (audit), and is not enforced."""

import pytest

from gateway.cel.program import EvaluationError
from gateway.engine.answer_source import Source
from gateway.engine.decision import Outcome
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import FailurePolicy, Mode, Phase, ReinvocationPolicy, Requirement, Selector, SideEffects
from gateway.reasons import Reason
from tests.world import condition, decide, label, patch, policy, request

PHASES = pytest.mark.parametrize("phase", list(Phase))
UNENFORCED = pytest.mark.parametrize("mode", [Mode.WARN, Mode.AUDIT])
BROKEN = Failure(reason=Reason.WORKER_FAILURE, message="it broke")
NAME = "a.test.example.com"


def one(answer, mode, **fields):
    decision, _ = decide([policy("a", mode=mode, **fields)], {"a": answer})
    return decision


@PHASES
@UNENFORCED
def test_a_denial_refuses_nothing(mode, phase):
    """The request is allowed; the decision has the denial."""
    decision = one(Deny(message="no"), mode, phase=phase)
    assert (decision.outcome, decision.response.allowed, decision.response.status) == (Outcome.ALLOWED, True, None)
    assert decision.calls[0].answer == Deny(message="no")
    assert decision.response.audit_annotations == {f"{NAME}_would-deny": "no"}


@PHASES
def test_under_warn_a_denial_is_a_warning(phase):
    """With the policy's name, its words, and that nothing came of it; after the worker's own warnings."""
    decision = one(Deny(message="no", warnings=("careful",)), Mode.WARN, phase=phase)
    assert decision.response.warnings == ("careful", f"{NAME}: no (mode warn: not enforced)")


@pytest.mark.parametrize("answer", [Deny(message="no", warnings=("x",)), Allow(warnings=("x",)), BROKEN])
def test_under_audit_there_is_no_warning(answer):
    """Not even what the worker itself would warn of."""
    assert one(answer, Mode.AUDIT).response.warnings == ()


@UNENFORCED
def test_a_workers_own_annotations_are_kept_beside_ours(mode):
    """Both modes write to the audit log; ours comes first under its key."""
    decision = one(Deny(message="no", audit_annotations={"k": "v", "would-deny": "never"}), mode)
    assert decision.response.audit_annotations == {f"{NAME}_would-deny": "no", f"{NAME}_k": "v"}


@PHASES
@UNENFORCED
@pytest.mark.parametrize("failure_policy", list(FailurePolicy))
def test_a_failure_refuses_nothing(mode, phase, failure_policy):
    """failurePolicy has no say: said as a warning under warn, an annotation under both."""
    decision = one(BROKEN, mode, phase=phase, failure_policy=failure_policy)
    reported = (f"{NAME}: could not judge this request: WORKER_FAILURE (mode warn: not enforced)",)
    assert decision.response.allowed
    assert decision.response.warnings == (reported if mode is Mode.WARN else ())
    assert decision.response.audit_annotations == {f"{NAME}_failed": "WORKER_FAILURE"}
    assert (decision.calls[0].failed_open, decision.calls[0].failed_closed) == (False, False)


@UNENFORCED
def test_a_denial_does_not_stop_the_chain(mode):
    """The next policy is called, and its change counts."""
    chain = [policy("a", mode=mode), policy("b", index=1)]
    decision, world = decide(chain, {"a": Deny(), "b": label("two")})
    assert world.called() == ["a", "b"]
    assert decision.object["metadata"]["labels"] == {"two": "1"}


@UNENFORCED
def test_a_change_is_recorded_and_not_applied(mode):
    """The next policy does not see it, nothing of it goes out, and the record has what it would have been."""
    seen = []
    chain = [policy("a", mode=mode), policy("b", index=1)]
    decision, _ = decide(chain, {"a": label("one"), "b": lambda document: seen.append(document["object"]) or Allow()})
    assert seen == [request().object]
    assert decision.response.patch is None
    assert (decision.calls[0].changes, [each.path for each in decision.calls[0].would_change]) == (
        (),
        ["/metadata/labels/one"],
    )
    assert decision.response.audit_annotations == {f"{NAME}_would-change": "add /metadata/labels/one"}


def test_what_would_change_is_what_would_change_now():
    """On the object as the policies before it left it."""
    remove = patch({"op": "remove", "path": "/metadata/labels/one"})
    chain = [policy("a"), policy("b", index=1, mode=Mode.AUDIT)]
    decision, _ = decide(chain, {"a": label("one"), "b": remove})
    assert [(each.op, each.path) for each in decision.calls[1].would_change] == [("remove", "/metadata/labels/one")]


def test_a_long_list_of_changes_is_cut_in_the_annotation():
    """The record has them all."""
    operations = [{"op": "add", "path": f"/metadata/labels/l{number}", "value": "1"} for number in range(60)]
    decision = one(patch(*operations), Mode.AUDIT)
    assert decision.response.audit_annotations[f"{NAME}_would-change"].endswith(", and 10 more")
    assert len(decision.calls[0].would_change) == 60


@UNENFORCED
def test_a_change_that_does_not_apply_is_a_failure_that_refuses_nothing(mode):
    """It is applied, so that its conflicts are known before the policy is enforced."""
    decision = one(patch({"op": "remove", "path": "/nowhere"}), mode)
    assert decision.calls[0].answer.reason is Reason.INVALID_PATCH
    assert decision.response.allowed


@UNENFORCED
def test_a_change_never_marks_for_reinvocation(mode):
    """An unchanged verdict is not repeated."""
    chain = [policy("a", reinvocation_policy=ReinvocationPolicy.IF_NEEDED), policy("b", index=1, mode=mode)]
    _, world = decide(chain, {"a": Allow(), "b": label("one")})
    assert world.called() == ["a", "b"]


def test_an_unenforced_policy_may_be_reinvoked():
    """What it says of the object in the end is what it would say when enforced."""
    chain = [
        policy("a", mode=Mode.AUDIT, reinvocation_policy=ReinvocationPolicy.IF_NEEDED),
        policy("b", index=1),
    ]
    decision, world = decide(chain, {"a": label("one"), "b": label("two")})
    assert world.called() == ["a", "b", "a"]
    assert decision.object["metadata"]["labels"] == {"two": "1"}


@PHASES
@UNENFORCED
def test_a_refused_dry_run_is_not_enforced_either(mode, phase):
    """The worker is not called, since it would have side effects; the request passes."""
    chosen = policy("a", mode=mode, phase=phase, side_effects=SideEffects.SOME)
    decision, world = decide([chosen], {"a": Allow()}, on=request(dryRun=True))
    assert world.called() == []
    assert decision.response.allowed
    assert decision.calls[0].source is Source.NONE
    assert decision.response.audit_annotations == {f"{NAME}_failed": "DRY_RUN_UNSUPPORTED"}
    assert len(decision.response.warnings) == (1 if mode is Mode.WARN else 0)


def test_an_unknown_namespace_is_not_enforced_either():
    """Nor anything else that failurePolicy could not ignore."""
    selector = Selector(requirements=(Requirement(key="env", operator="Exists"),))
    decision, _ = decide([policy("a", mode=Mode.WARN, namespace_selector=selector)], {}, namespaces={"t": None})
    assert decision.response.allowed


@UNENFORCED
def test_a_policy_that_would_not_be_reinvoked_reports_no_match_error(mode):
    """Under Fail, an enforced policy would refuse here."""
    only_without = condition(
        lambda variables, _: EvaluationError(message="set") if variables.object["metadata"]["labels"] else False
    )
    chain = [policy("a", mode=mode, match_conditions=(only_without,)), policy("b", index=1)]
    decision, _ = decide(chain, {"b": label("one")})
    assert [(call.round, call.policy.policy) for call in decision.calls] == [(0, "a"), (0, "b")]
    assert decision.response.warnings == ()


def test_only_enforced_policies_stand_in_a_refusal():
    """One line, one cause: of the policy that refuses."""
    phase = {"phase": Phase.VALIDATING}
    trio = [
        policy("a", mode=Mode.WARN, **phase),
        policy("b", index=1, **phase),
        policy("c", index=2, mode=Mode.AUDIT, **phase),
    ]
    decision, _ = decide(trio, dict.fromkeys("abc", Deny(message="no")))
    assert decision.response.status.message == "b.test.example.com: no"
    assert [cause["reason"] for cause in decision.response.status.details["causes"]] == ["DENIED"]
