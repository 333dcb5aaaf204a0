"""Refusals that kube-apiserver itself has words for: its code, its reason, its message, its details."""

import pytest

from gateway.cel.program import EvaluationError
from gateway.engine.decision import Outcome
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import FailurePolicy, Phase, ReinvocationPolicy, Requirement, Selector, SideEffects
from gateway.reasons import Reason
from tests.world import condition, decide, label, policy, request

PHASES = pytest.mark.parametrize("phase", list(Phase))
FAILURE_POLICIES = pytest.mark.parametrize("failure_policy", list(FailurePolicy))
IGNORE = {"failure_policy": FailurePolicy.IGNORE}
NOPE = condition(EvaluationError(message="no such key: nope"), expression="object.nope == 1")
PROD = Selector(requirements=(Requirement(key="env", operator="In", values=("prod",)),))
DRY = request(dryRun=True)
BROKEN = Failure(reason=Reason.WORKER_FAILURE, message="it broke")


# ------------------------------------------------------------------------------------------------ conditions


@PHASES
def test_a_condition_error_under_fail_is_forbidden_in_the_api_servers_words(phase):
    """The message untouched where the policy is alone; the reason code stands in the causes."""
    decision, world = decide([policy("a", phase=phase, match_conditions=(NOPE,))], {}, on=request(name="c24"))
    status = decision.response.status
    assert (decision.outcome, status.code, status.reason) == (Outcome.FAILED, 403, "Forbidden")
    assert status.message == (
        """pods "c24" is forbidden: expression 'object.nope == 1' resulted in error: no such key: nope"""
    )
    assert (status.details["name"], status.details["kind"]) == ("c24", "pods")
    assert [cause["reason"] for cause in status.details["causes"]] == ["CONDITION_ERROR"]
    assert world.called() == []


@PHASES
def test_a_condition_error_under_ignore_skips_the_policy_loudly(phase):
    """Not called, and said."""
    decision, world = decide([policy("a", phase=phase, match_conditions=(NOPE,), **IGNORE)], {"a": Allow()})
    assert world.called() == []
    assert decision.response.allowed
    assert decision.response.audit_annotations == {"a.test.example.com_failed-open": "CONDITION_ERROR"}


def test_a_policy_skipped_by_a_condition_error_was_not_called():
    """So it is not reinvoked, although it would match then."""
    unless = condition(
        lambda variables, _: bool(variables.object["metadata"]["labels"]) or EvaluationError(message="none")
    )
    chain = [
        policy("a", match_conditions=(unless,), reinvocation_policy=ReinvocationPolicy.IF_NEEDED, **IGNORE),
        policy("b", index=1),
    ]
    _, world = decide(chain, {"a": Allow(), "b": label("one")})
    assert world.called() == ["b"]


def test_in_the_second_round_a_condition_error_under_fail_refuses_an_unmarked_policy_too():
    """ "matching is evaluated before the mark"."""
    only_without = condition(
        lambda variables, _: EvaluationError(message="set") if variables.object["metadata"]["labels"] else False
    )
    chain = [policy("a", match_conditions=(only_without,)), policy("b", index=1)]
    decision, _ = decide(chain, {"b": label("one")})
    assert decision.outcome is Outcome.FAILED
    assert [(call.round, call.policy.policy) for call in decision.calls if call.refuses] == [(1, "a")]


def test_among_several_policies_the_reason_code_stands_in_the_line_too():
    """One line a policy, as with every other failure; code and reason are the first's."""
    phase = {"phase": Phase.VALIDATING}
    pair = [policy("a", match_conditions=(NOPE,), **phase), policy("b", index=1, **phase)]
    status = decide(pair, {"b": BROKEN}, on=request(name="p"))[0].response.status
    assert (status.code, status.reason) == (403, "Forbidden")
    first, second = status.message.split("\n")
    assert first.startswith('a.test.example.com: CONDITION_ERROR: pods "p" is forbidden: ')
    assert second == "b.test.example.com: WORKER_FAILURE: it broke"
    assert [cause["reason"] for cause in status.details["causes"]] == ["CONDITION_ERROR", "WORKER_FAILURE"]
    assert status.details["kind"] == "pods"


# ------------------------------------------------------------------------------------------------ namespaces


@PHASES
@FAILURE_POLICIES
def test_an_unknown_namespace_is_not_found_whatever_failure_policy_says(phase, failure_policy):
    """An error of matching, not of a call; our hint stands in the cause."""
    chosen = policy("a", phase=phase, namespace_selector=PROD, failure_policy=failure_policy)
    decision, _ = decide([chosen], {}, namespaces={"t": None})
    status = decision.response.status
    assert (decision.outcome, status.code, status.reason) == (Outcome.FAILED, 404, "NotFound")
    assert status.message == 'namespaces "t" not found'
    assert (status.details["name"], status.details["kind"]) == ("t", "namespaces")
    (cause,) = status.details["causes"]
    assert cause["reason"] == "NAMESPACE_UNKNOWN"
    assert "add a Namespace document" in cause["message"]


# --------------------------------------------------------------------------------------------------- dry run


@PHASES
@FAILURE_POLICIES
@pytest.mark.parametrize("side_effects", [SideEffects.SOME, SideEffects.UNKNOWN])
def test_a_dry_run_of_a_policy_with_side_effects_is_refused(phase, failure_policy, side_effects):
    """400 in the API server's words, under Ignore as well; no policy is called."""
    chosen = policy("a", phase=phase, failure_policy=failure_policy, side_effects=side_effects)
    decision, world = decide([chosen], {"a": Allow()}, on=DRY)
    status = decision.response.status
    assert world.called() == []
    assert (decision.outcome, status.code, status.reason) == (Outcome.FAILED, 400, "BadRequest")
    assert status.message == 'admission webhook "a.test.example.com" does not support dry run'
    assert [cause["reason"] for cause in status.details["causes"]] == ["DRY_RUN_UNSUPPORTED"]


@pytest.mark.parametrize("side_effects", [SideEffects.NONE, SideEffects.NONE_ON_DRY_RUN])
def test_a_dry_run_of_a_policy_without_side_effects_is_judged(side_effects):
    """That is what the two promise."""
    decision, world = decide([policy("a", side_effects=side_effects)], {"a": Allow()}, on=DRY)
    assert (world.called(), decision.response.allowed) == (["a"], True)


@pytest.mark.parametrize("side_effects", [SideEffects.SOME, SideEffects.UNKNOWN])
def test_outside_of_a_dry_run_such_a_policy_has_side_effects(side_effects):
    """Neither shared nor cancelled."""
    _, world = decide([policy("a", side_effects=side_effects)], {"a": Allow()})
    assert [policy_call.cancellable for _, policy_call in world.calls] == [False]


def test_a_dry_run_ends_the_chain():
    """The policies after it are not called; those before it were."""
    chain = [policy("a"), policy("b", index=1, side_effects=SideEffects.SOME, **IGNORE), policy("c", index=2)]
    decision, world = decide(chain, dict.fromkeys("abc", Allow()), on=DRY)
    assert world.called() == ["a"]
    assert decision.response.status.code == 400


def test_a_dry_run_that_does_not_match_is_not_refused():
    """It is none of the policy's business."""
    chosen = policy("a", side_effects=SideEffects.SOME, match_conditions=(condition(False),))
    assert decide([chosen], {}, on=DRY)[0].response.allowed


def test_a_dry_run_comes_before_a_policy_that_cannot_be_called():
    """kube-apiserver looks at sideEffects before it makes a client."""
    chosen = policy("a", side_effects=SideEffects.SOME, fault="x", **IGNORE)
    assert decide([chosen], {}, on=DRY)[0].calls[0].answer.reason is Reason.DRY_RUN_UNSUPPORTED


# ---------------------------------------------------------------------------------------------- whom to ask

HELP = {"phase": Phase.VALIDATING, "contact": "us, #us", "documentation": "https://example.com/a"}


def test_a_denial_ends_with_whom_to_ask_what_to_read_and_the_uid():
    """Also that of a policy alone; its causes have the policy's words only."""
    decision, _ = decide([policy("a", **HELP)], {"a": Deny(message="no")}, on=request(uid="u-1"))
    status = decision.response.status
    assert status.message == "no (contact: us, #us; documentation: https://example.com/a; uid: u-1)"
    assert [cause["message"] for cause in status.details["causes"]] == ["no"]


def test_each_of_several_denials_has_its_own():
    """A policy without a contact keeps its words, and so does a failure."""
    chain = [policy("a", phase=Phase.VALIDATING), policy("b", index=1, **HELP | {"documentation": ""})]
    denials = {"a": Deny(message="no"), "b": Deny(message="never")}
    status = decide(chain, denials, on=request(uid="u-1"))[0].response.status
    assert status.message == "a.test.example.com: no\nb.test.example.com: never (contact: us, #us; uid: u-1)"
    failed = decide(chain, {"a": Deny(message="no"), "b": BROKEN})[0].response.status
    assert failed.message.endswith("b.test.example.com: WORKER_FAILURE: it broke")


@pytest.mark.parametrize("details", [None, {"causes": [{"message": "why"}]}])
def test_a_denial_of_an_existing_webhook_or_hook_has_it_too(details):
    """If its operator wrote it into a policy of our own kinds: the message gets it, and nothing else changes."""
    chosen = policy("a", is_existing=True, **HELP)
    denial = Deny(message="no", code=409, reason="Conflict", details=details)
    status = decide([chosen], {"a": denial}, on=request(uid="u-1"))[0].response.status
    assert status.message == "no (contact: us, #us; documentation: https://example.com/a; uid: u-1)"
    assert (status.code, status.reason, status.details) == (409, "Conflict", details)


def test_a_denial_without_a_message_ends_with_them_too():
    """After its reason, which the API server shows instead of a message."""
    decision, _ = decide([policy("a", **HELP)], {"a": Deny(reason="Invalid")}, on=request(uid="u-1"))
    assert decision.response.status.message.startswith("Invalid (contact: us, #us; ")
