"""The validating phase: policies are called in parallel, the engine waits for all, all refusals are reported."""

import pytest

from gateway.engine.answer_source import Source
from gateway.engine.decision import Outcome
from gateway.engine.engine import Engine
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny, Failure
from gateway.policies.model import Cache, FailurePolicy, Phase, SideEffects
from gateway.reasons import Reason
from tests.world import decide, plan, policy, request

IGNORE = {"failure_policy": FailurePolicy.IGNORE}
BROKEN = Failure(reason=Reason.WORKER_FAILURE, message="it broke")


def validating(name, index=0, **fields):
    return policy(name, phase=Phase.VALIDATING, index=index, **fields)


A, B, C = validating("a"), validating("b", 1), validating("c", 2)
SAME = {"worker": "one", "policy": "same"}


def test_all_are_called_at_the_same_moment():
    """No policy waits for another."""
    _, world = decide([A, B, C], {"a": Allow(), "b": Allow(), "c": Allow()}, latencies={"a": 3.0, "b": 1.0})
    assert [(when, policy_call.policy.policy) for when, policy_call in world.calls] == [
        (100.0, "a"),
        (100.0, "b"),
        (100.0, "c"),
    ]


def test_it_takes_as_long_as_the_slowest():
    """kube-apiserver waits for all, and so do we: a late denial is a denial."""
    decision, _ = decide([A, B], {"a": Allow(), "b": Deny(message="no")}, latencies={"a": 3.0, "b": 1.0})
    assert decision.ended - decision.started == 3.0
    assert decision.outcome is Outcome.DENIED


def test_all_denials_are_gathered_in_chain_order():
    """The denial has all refusals at once; code, reason and details are the first policy's, however late it
    was."""
    decision, _ = decide(
        [A, B, C],
        {"a": Deny(code=422, reason="Invalid", message="too big"), "b": Allow(), "c": Deny(message="too late")},
        latencies={"a": 3.0, "c": 1.0},
    )
    status = decision.response.status
    assert (status.code, status.reason) == (422, "Invalid")
    assert status.message == "a.test.example.com: too big\nc.test.example.com: too late"
    assert [cause["message"] for cause in status.details["causes"]] == status.message.split("\n")


def test_a_denial_outranks_a_failure():
    """Code and reason are the denial's; the failure is reported too."""
    decision, _ = decide([A, B], {"a": BROKEN, "b": Deny(message="no")})
    status = decision.response.status
    assert (decision.outcome, status.code, status.reason) == (Outcome.DENIED, 403, "Forbidden")
    assert status.message == "b.test.example.com: no\na.test.example.com: WORKER_FAILURE: it broke"


def test_a_change_while_validating_is_a_failure():
    """ "validating webhook may not return response.patch"."""
    changing = Allow(change=Change(kind=ChangeKind.JSON_PATCH, content=b"[]"))
    decision, _ = decide([A], {"a": changing})
    assert decision.calls[0].answer.reason is Reason.INVALID_RESPONSE


@pytest.mark.parametrize("latency", [0.0, 1.0])
def test_the_same_question_is_called_once(latency):
    """Two policies with the same worker, policy, settings and document share one verdict."""
    pair = [validating("x", **SAME), validating("y", 1, **SAME)]
    decision, world = decide(pair, {"same": Deny(message="no")}, latencies={"same": latency})
    assert len(world.calls) == 1
    assert [call.source for call in decision.calls] == [Source.CALLED, Source.SHARED]
    assert decision.response.status.message.count("no") == 2


def test_other_settings_are_another_question():
    """Settings are part of the question."""
    pair = [validating("x", **SAME), validating("y", 1, settings=b'{"a":1}', **SAME)]
    _, world = decide(pair, {"same": Allow()})
    assert len(world.calls) == 2


def test_if_a_shared_call_fails_each_follower_calls_for_itself():
    """A failure is never shared."""
    answers = iter([BROKEN, Allow(), Deny(message="no")])
    trio = [validating(name, index, **SAME, **IGNORE) for index, name in enumerate("xyz")]
    decision, world = decide(trio, {"same": lambda _: next(answers)})
    assert len(world.calls) == 3
    assert [type(call.answer) for call in decision.calls] == [Failure, Allow, Deny]


def test_a_policy_with_side_effects_is_neither_shared_nor_cancelled():
    """Its call does something in the world."""
    effects = {"side_effects": SideEffects.NONE_ON_DRY_RUN, "timeout": 1.0}
    pair = [validating("x", **SAME, **effects), validating("y", 1, **SAME, **effects)]
    _, world = decide(pair, {"same": Allow()}, latencies={"same": 5.0})
    assert len(world.calls) == 2
    assert not any(policy_call.cancellable for _, policy_call in world.calls)
    assert world.cancels == []


def test_under_a_dry_run_nonenondryrun_has_no_side_effects():
    """That is what it promises."""
    effects = {"side_effects": SideEffects.NONE_ON_DRY_RUN}
    pair = [validating("x", **SAME, **effects), validating("y", 1, **SAME, **effects)]
    _, world = decide(pair, {"same": Allow()}, on=request(dryRun=True))
    assert len(world.calls) == 1
    assert world.calls[0][1].cancellable


def test_a_review_without_a_matching_policy_is_allowed():
    """No policy matches: nothing to say."""
    decision, _ = decide([A], {}, on=request(operation="CREATE", subResource="status"))
    assert decision.response.allowed
    assert decision.calls == ()
    assert decision.all_calls[0].why == "rules"


def test_warnings_and_annotations_of_all_policies_are_kept_with_a_denial_too():
    """As kube-apiserver keeps them."""
    decision, _ = decide(
        [A, B],
        {
            "a": Allow(warnings=("careful",), audit_annotations={"k": "v"}),
            "b": Deny(message="no", warnings=("beware",), audit_annotations={"k": "w"}),
        },
    )
    assert decision.response.warnings == ("careful", "beware")
    assert decision.response.audit_annotations == {"a.test.example.com_k": "v", "b.test.example.com_k": "w"}


def test_a_follower_whose_own_call_fails_takes_the_verdict_that_another_has_had_for_the_same_question():
    """The shared call fails, each has its own, one has its verdict, and the other's worker never answers: an answer
    that is there counts.
    """
    trio = [validating(name, index, timeout=5.0, **SAME) for index, name in enumerate("xyz")]
    engine = Engine(request(), plan(*trio), ends=2.0)
    (shared,) = engine.start(0.0).calls
    one, _ = engine.answered(shared, BROKEN, 0.5).calls
    engine.answered(one, Allow(), 1.0)
    decision = engine.expired(2.0).decision
    assert [type(call.answer) for call in decision.calls] == [Failure, Allow, Allow]
    assert [call.source for call in decision.calls] == [Source.CALLED, Source.CALLED, Source.MEMO]


def test_policies_whose_caches_differ_call_for_themselves():
    """Another review's verdict may be fresh for one of them, and absent or too old for the other."""
    caches = (None, Cache(ttl=5.0), Cache(ttl=60.0), Cache(ttl=60.0))
    four = [
        validating(name, index, cache=cache, **SAME)
        for index, (name, cache) in enumerate(zip("wxyz", caches, strict=True))
    ]
    _, world = decide(four, {"same": Allow()})
    assert [policy_call.cache for _, policy_call in world.calls] == list(caches[:3])


def test_a_call_with_less_time_than_the_policy_has_is_not_shared():
    """The worker takes 0.9 s, the first policy has half a second and the second one a whole: it is judged, as alone."""
    pair = [validating("x", timeout=0.5, **SAME, **IGNORE), validating("y", 1, timeout=1.0, **SAME)]
    decision, world = decide(pair, {"same": Deny(message="no")}, latencies={"same": 0.9})
    assert [policy_call.deadline for _, policy_call in world.calls] == [100.5, 101.0]
    assert [type(call.answer) for call in decision.calls] == [Failure, Deny]


def test_who_has_less_time_follows_a_call_that_was_given_more_until_its_own_time_ends():
    """And the call goes on for the other."""
    pair = [validating("x", timeout=1.0, **SAME), validating("y", 1, timeout=0.5, **SAME, **IGNORE)]
    decision, world = decide(pair, {"same": Deny(message="no")}, latencies={"same": 0.9})
    assert len(world.calls) == 1
    assert [type(call.answer) for call in decision.calls] == [Deny, Failure]
