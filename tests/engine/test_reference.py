"""The state machine against a reference: the same chain, written as one plain loop that calls, waits and applies."""

import json

import jsonpatch
import pytest

from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.patching.equality import equal
from gateway.policies.model import Mode, Phase
from gateway.reasons import Reason
from tests.engine.reference import Serial, cases, kinds, outcome_of, refuses, run, seen

BLOCKS = 13
"""Of cases: together they make 13,000 in `make properties`."""

LATE = {Reason.BUDGET_EXHAUSTED, Reason.WORKER_TIMEOUT}

EARLY = pytest.mark.parametrize("prefetch", [False, True], ids=["in turn", "early"])
BOTH = pytest.mark.parametrize("phase", list(Phase))
JUDGED = {Allow.__name__, Deny.__name__}


@pytest.mark.property
@EARLY
@pytest.mark.parametrize("block", range(BLOCKS))
def test_the_mutating_chain_is_kubernetes_serial_chain(block, prefetch):
    """Same turns in the same order with the same outcome, same object, same answer, and never later, wherever the
    serial chain ends within its budget; under a smaller budget, all that the serial chain judges is judged alike.
    """
    for case in cases(block):
        decision, _ = run(case, prefetch=prefetch)
        serial = Serial(case).walk()
        got, expected = seen(decision), serial.kinds
        if serial.timely == len(expected):
            assert got == expected, case
            assert decision.response.allowed is not serial.refused, case
            assert equal(decision.object, serial.object), case
            assert decision.ended <= serial.ended + 1e-9, case
        else:
            assert got[: serial.timely] == expected[: serial.timely], case
            judged = [sum(what in JUDGED for _, _, what in turns) for turns in (got, expected)]
            assert judged[0] >= judged[1], case


@pytest.mark.property
@pytest.mark.parametrize("block", range(BLOCKS))
def test_prefetch_changes_nothing_but_the_time(block):
    """The whole answer is the same, to the last byte of patch, warnings and annotations, if the walk in turn ends
    within its budget; and it comes no later.
    """
    for case in cases(block):
        serial, _ = run(case, prefetch=False)
        prefetched, _ = run(case, prefetch=True)
        assert prefetched.ended <= serial.ended + 1e-9, case
        if serial.ended < serial.started + case.budget:
            assert prefetched.response == serial.response, case
            assert [call.changes for call in prefetched.calls] == [call.changes for call in serial.calls], case


@pytest.mark.property
@EARLY
def test_the_patch_gives_what_was_predicted(prefetch):
    """Applied by another library to what came, it gives the object that the gateway says."""
    for case in cases(0):
        decision, _ = run(case, prefetch=prefetch)
        if decision.response.patch is not None:
            patched = jsonpatch.apply_patch(case.request.object, json.loads(decision.response.patch))
            assert equal(patched, decision.object), case
            assert not equal(patched, case.request.object), case


@pytest.mark.property
def test_the_fan_out_calls_all_matching_policies_at_once():
    """Only its own timeout decides whether an answer counts, unless another's verdict comes in time."""
    for case in cases(0, Phase.VALIDATING):
        decision, _ = run(case, prefetch=True)
        turns, ends = [], [0.0]
        for index, each in enumerate(case.chain):
            own = Serial(case)
            matched = own.matches(each)
            if isinstance(matched, Failure):
                turns.append((0, index, matched))
            elif matched:
                said, _ = outcome_of(each, case, own.labels, own.now)
                turns.append((0, index, said))
            ends.append(own.now if matched is not True else outcome_of(each, case, own.labels, own.now)[1])
        alone = {index: what for _, index, what in kinds(turns)}
        together = {index: what for _, index, what in seen(decision)}
        if len({each.policy for each in case.chain}) == len(case.chain):
            assert together == alone, case
            assert decision.ended == pytest.approx(max(ends)), case
        else:
            # An open call is shared: the later policy has its verdict sooner than alone.
            assert together.keys() <= alone.keys(), case
            assert all(together.get(index) == what for index, what in alone.items() if what not in LATE), case
            assert decision.ended <= max(ends) + 1e-9, case


@pytest.mark.property
@BOTH
def test_a_policy_under_fail_that_denied_or_could_not_judge_is_never_followed_by_an_allow(phase):
    """A policy under Ignore that could not judge is always reported."""
    for case in cases(0, phase):
        decision, _ = run(case, prefetch=True)
        refusing = [call for call in decision.calls if refuses(call.policy, call.answer)]
        assert decision.response.allowed is (not refusing), case
        for call in decision.calls:
            if isinstance(call.answer, Failure) and call.policy.mode is Mode.ENFORCE and call not in refusing:
                assert any(call.label in text for text in decision.response.warnings), case
                assert any(key.startswith(call.label) for key in decision.response.audit_annotations), case


@pytest.mark.property
@EARLY
@BOTH
def test_every_decision_comes_before_the_budget_ends(phase, prefetch):
    """Whatever workers do. (In a budget of no time at all, at once.)"""
    for case in cases(0, phase):
        decision, world = run(case, prefetch=prefetch)
        assert decision.ended <= case.budget, case
        assert all(policy_call.deadline <= case.budget for _, policy_call in world.calls), case


@pytest.mark.property
@EARLY
@BOTH
def test_every_call_is_answered_or_cancelled_unless_it_has_side_effects(phase, prefetch):
    """A call whose answer has not come when the review is decided, or when its time is over, is cancelled."""
    for case in cases(0, phase):
        decision, world = run(case, prefetch=prefetch)
        cancelled = {call_id for _, call_id in world.cancels}
        for called, policy_call in world.calls:
            done = called + case.latencies[policy_call.policy.policy]
            if done >= policy_call.deadline or done > decision.ended:
                assert (policy_call.id in cancelled) is policy_call.cancellable, case
            assert policy_call.cancellable or policy_call.id not in cancelled, case


@pytest.mark.property
@pytest.mark.parametrize("prefetch", [True])
def test_a_policy_with_side_effects_is_called_neither_before_its_turn_nor_twice(prefetch):
    """As many calls as turns, and each in its turn."""
    for case in cases(0):
        decision, world = run(case, prefetch=prefetch)
        calls = [(when, policy_call.policy.index) for when, policy_call in world.calls if not policy_call.cancellable]
        turns = [
            (call.started, call.index)
            for call in decision.calls
            if call.document_size and any(index == call.index for _, index in calls)
        ]
        assert [index for _, index in calls] == [index for _, index in turns], case
        assert all(called >= started for (called, _), (started, _) in zip(calls, turns, strict=True)), case
